"""OpenAI Responses: output items under construction, and which of them a final object shows."""

from __future__ import annotations

from collections import deque
from typing import Any

from ...types import JsonObject, Part, ToolCall
from ...wire.exact import object_of
from ..assembly import Growing

CALLS = ("function_call", "custom_tool_call")


class OpenItem:
    """One output item under construction: its parts by their place in it."""

    __slots__ = ("counts", "held", "id", "is_done", "last", "parts", "value")

    def __init__(self, value: JsonObject, item_id: str) -> None:
        self.value = value
        self.id = item_id
        self.is_done = False
        self.parts: dict[tuple[str, int], Growing] = {}
        self.counts: dict[str, int] = {}  # parts by slot
        self.last: Growing | None = None  # a reasoning part whose end waits for what the item's end tells
        self.held: list[str] = []  # arguments of a call whose name is not known yet

    @property
    def is_nameless(self) -> bool:
        """A call that never started, because nobody can call a tool without a name."""
        return not self.is_done and not self.parts and (bool(self.held) or self.value.get("type") in CALLS)

    @property
    def is_cut(self) -> bool:
        """A call whose end never came, and whose arguments are not complete."""
        call = None if self.is_done else self.parts.get(("call", 0))
        if call is None or not isinstance(call.part, ToolCall) or call.part.kind != "function":
            return False
        return bool(call.content.strip()) and object_of(call.content) is None

    def is_told_again(self, value: JsonObject) -> bool:
        """Whether this is the same item once more, not another one under its id."""
        is_same = all(text_in(self.value, key) == text_in(value, key) for key in ("type", "call_id"))
        return is_same and not (self.is_done and value.get("type") == "message")

    def place(self, slot: str, action: str, given: Any) -> int:
        """Which part of the item is meant; one that is not numbered is the next where it opens, and else the last."""
        if isinstance(given, int):
            return given
        count = self.counts.get(slot, 0)
        return count if action == "open" else max(count - 1, 0)


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


def text_in(value: JsonObject, key: str) -> str:
    text = value.get(key)
    return text if isinstance(text, str) else ""
