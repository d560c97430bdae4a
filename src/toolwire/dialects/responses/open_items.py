"""OpenAI Responses: output items under construction, and which of them an event or a final object is about.

An event is matched to its item by item id, then by call_id, then by output_index. An event without any of these belongs to the item that was
added last; an item's end, which carries the whole item, belongs to the first open item that it is consistent with.
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import Any

from ...types import JsonObject, Part, ToolCall
from ...wire.exact_json import object_of
from ...wire.fields import text_in
from ..shared.answer_in import OpenPart

CALLS = ("function_call", "custom_tool_call")
_LOOKED_AT = 64  # open items compared with an end that has no id and no index


class OpenItem:
    """One output item under construction: its parts by their place in it."""

    __slots__ = ("counts", "held", "id", "is_done", "is_left", "last", "parts", "value")

    def __init__(self, value: JsonObject, item_id: str) -> None:
        self.value = value
        self.id = item_id
        self.is_done = False
        self.is_left = False  # its texts were ended early by an event for another item; more text starts a new part
        self.parts: dict[tuple[str, int], OpenPart] = {}
        self.counts: dict[str, int] = {}  # parts by slot
        self.last: OpenPart | None = None  # a reasoning part that ends with the item
        self.held: list[str] = []  # arguments of a call whose name is not known yet

    @property
    def is_nameless(self) -> bool:
        """A call that never started, because it has no name."""
        return not self.is_done and not self.parts and (bool(self.held) or self.value.get("type") in CALLS)

    @property
    def is_cut(self) -> bool:
        """A call whose end never came, and whose arguments are not complete."""
        call = None if self.is_done else self.parts.get(("call", 0))
        if call is None or not isinstance(call.part, ToolCall) or call.part.kind != "function":
            return False
        return bool(call.content.strip()) and object_of(call.content) is None

    def is_repeated_by(self, value: JsonObject) -> bool:
        """Whether this is the same item once more, not another one under its id."""
        is_same = all(text_in(self.value, key) == text_in(value, key) for key in ("type", "call_id"))
        return is_same and not (self.is_done and value.get("type") == "message")

    def may_become(self, value: JsonObject) -> bool:
        """Whether this whole item is consistent with what was streamed so far."""
        is_same = all(text_in(self.value, key) in ("", text_in(value, key)) for key in ("type", "call_id", "name"))
        growing = self.parts.get(("call", 0))
        streamed = "".join(self.held) if growing is None else growing.content
        arguments = text_in(value, "arguments") or text_in(value, "input")
        return is_same and (not arguments or arguments.startswith(streamed))

    def place(self, slot: str, action: str, given: Any) -> int:
        """The index of a part of the item; without a number it is the next one if it opens, otherwise the last."""
        if isinstance(given, int):
            return given
        count = self.counts.get(slot, 0)
        return count if action == "open" else max(count - 1, 0)


class OpenItems:
    """The items of one answer in order, and how to find them. current: the one that the last event was about."""

    def __init__(self) -> None:
        self.all: list[OpenItem] = []
        self.current: OpenItem | None = None
        self._by_index: dict[int, OpenItem] = {}
        self._by_id: dict[str, OpenItem] = {}
        self._by_call_id: dict[str, deque[OpenItem]] = {}
        self._open: dict[OpenItem, None] = {}

    def add(self, item: OpenItem, index: int | None, item_id: str) -> None:
        self.all.append(item)
        self._open[item] = None
        if index is not None:
            self._by_index[index] = item
        if item_id:
            self._by_id[item_id] = item
        if call_id := text_in(item.value, "call_id"):
            self._by_call_id.setdefault(call_id, deque()).append(item)

    def end(self, item: OpenItem) -> None:
        item.is_done = True
        self._open.pop(item, None)

    def at(self, index: int) -> OpenItem | None:
        return self._by_index.get(index)

    def named(self, item_id: str) -> OpenItem | None:
        return self._by_id.get(item_id)

    def find(self, value: JsonObject, index: int | None) -> OpenItem | None:
        """Which item an event is about; None: one that no event has added yet."""
        given = value.get("item")
        shown: JsonObject = given if isinstance(given, dict) else {}
        item_id = text_in(value, "item_id") or text_in(shown, "id")
        call_id = text_in(shown, "call_id") or text_in(value, "call_id")
        if item_id in self._by_id:
            return self._by_id[item_id]
        at_index = self._by_index.get(index) if index is not None else None
        if call_id in self._by_call_id and (at_index is None or text_in(at_index.value, "call_id") != call_id):
            return self._called(call_id)
        if index is None:
            at_index = self._shown_by(shown) if shown else self.all[-1] if self.all else None
        if at_index is not None and at_index.is_done and _is_other(at_index, item_id, call_id):
            return None
        return at_index

    def _called(self, call_id: str) -> OpenItem:
        """The first open call of this id, else the last one."""
        calls = self._by_call_id[call_id]
        while calls[0].is_done and len(calls) > 1:
            calls.popleft()
        return calls[0]

    def _shown_by(self, shown: JsonObject) -> OpenItem | None:
        """The first open item that this whole item is consistent with, else the last item."""
        found = (item for item in islice(self._open, _LOOKED_AT) if item.may_become(shown))
        return next(found, self.all[-1] if self.all else None)


def _is_other(item: OpenItem, item_id: str, call_id: str) -> bool:
    """Whether an event with these ids is about another item than this one, which is done."""
    own = text_in(item.value, "call_id")
    return bool(item_id and item.id) or bool(call_id and own and call_id != own)


def matched(given: list[JsonObject], items: list[OpenItem]) -> list[tuple[JsonObject, OpenItem | None]]:
    """Each final item with the streamed one that it shows: by id, by call_id, else the next of its kind."""
    found: dict[int, OpenItem] = {}
    taken: set[int] = set()
    for key in ("id", "call_id", "type"):
        waiting: dict[tuple[str, str], deque[int]] = {}
        for number, item in enumerate(items):
            if number not in taken:
                waiting.setdefault((text_in(item.value, "type"), text_in(item.value, key)), deque()).append(number)
        for place, value in enumerate(given):
            numbers = waiting.get((text_in(value, "type"), text_in(value, key))) if text_in(value, key) else None
            if numbers and place not in found:
                found[place] = items[numbers[0]]
                taken.add(numbers.popleft())
    return [(value, found.get(place)) for place, value in enumerate(given)]


def same_part(whole: list[Part], part: Part) -> Part | None:
    """The first of the finished parts that this one can have become; it is taken out of the list."""
    for place, found in enumerate(whole):
        is_summary = getattr(part, "is_summary", None)
        if type(found) is type(part) and getattr(found, "is_summary", None) == is_summary:
            return whole.pop(place)
    return None
