"""Tool lists that were checked before, which recur in every request of a conversation, and what is known about each of them.

A list is found by its bytes at the same position, counted from the start of the body or from its end: clients write it before the messages
or after them, and one of the two positions stays. Checking forty schemas again would cost more than the rest of the request. Equal bytes
at another position are only checked again. A client that repeats the bytes of a known list elsewhere in its body can only mislead itself:
what is stored about a list comes from requests that offered exactly that list.
"""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import msgspec

from ...types import Json, Request, Tool
from ..schemas import Schemas

_MOST_LISTS = 64
_MOST_FACTS = 8  # stored about one list
_MAX_LIST_BYTES = 8 << 20


class _Body(msgspec.Struct):
    tools: msgspec.Raw = msgspec.Raw(b"")


_decoder = msgspec.json.Decoder(_Body)


class _ToolList(msgspec.Struct, frozen=True):
    """A list that was found valid. after: bytes between its end and the end of the body."""

    wire: bytes
    start: int
    after: int
    facts: dict[Hashable, Any] = msgspec.field(default_factory=dict)


class CheckedTools(msgspec.Struct, frozen=True):
    """The tools of one request, with what is stored about the same list."""

    tools: tuple[Tool, ...]
    body: bytes
    known: _ToolList | None = None

    def recall(self, key: Hashable) -> Any:
        """None where nothing is stored."""
        return None if self.known is None else self.known.facts.get((key, len(self.tools)))

    def remember(self, key: Hashable, value: Any) -> None:
        known = self.known
        if known is None or _wire_of(self.body) != known.wire:
            return
        if len(known.facts) >= _MOST_FACTS:
            known.facts.clear()
        known.facts[key, len(self.tools)] = value


class ToolLists:
    """An LRU cache of valid tool lists. lock: guards it where several threads use it."""

    def __init__(self, schemas: Schemas, lock: AbstractContextManager[object] | None = None) -> None:
        self._schemas = schemas
        self._lock = lock or nullcontext()
        self._lists: list[_ToolList] = []

    def check(self, request: Request) -> CheckedTools:
        """For a request as it was decoded. Raises BadRequest for the first tool whose schema is invalid."""
        body = request.wire
        is_listed = bool(body) and _are_listed(request)
        known = self._find(body) if is_listed else None
        if known is None:
            for number, tool in enumerate(request.tools):
                if tool.kind == "function":
                    self._schemas.check(tool, f"tools[{number}]")
            known = self._store(body) if is_listed else None
        return CheckedTools(request.tools, body, known)

    def has(self, request: Request) -> bool:
        """Whether its tools, if it has any, are known to be valid."""
        if not request.tools:
            return True
        return bool(request.wire) and _are_listed(request) and self._find(request.wire) is not None

    def __len__(self) -> int:
        return len(self._lists)

    def _find(self, body: bytes) -> _ToolList | None:
        with self._lock:
            for position, known in enumerate(self._lists):
                from_end = len(body) - known.after - len(known.wire)
                if body.startswith(known.wire, known.start) or (
                    from_end >= 0 and body.startswith(known.wire, from_end)
                ):
                    if position:
                        self._lists.insert(0, self._lists.pop(position))
                    return known
        return None

    def _store(self, body: bytes) -> _ToolList | None:
        wire = _wire_of(body)
        start = body.find(wire)
        if len(wire) <= 2 or start < 0:
            return None
        known = _ToolList(wire, start, len(body) - start - len(wire))
        with self._lock:
            self._lists.insert(0, known)
            while len(self._lists) > _MOST_LISTS or sum(len(one.wire) for one in self._lists) > _MAX_LIST_BYTES:
                self._lists.pop()
        return known


def _wire_of(body: bytes) -> bytes:
    """The bytes of the list."""
    try:
        return bytes(_decoder.decode(body).tools)
    except (msgspec.DecodeError, RecursionError):
        return b""


def _are_listed(request: Request) -> bool:
    """Whether the tools are exactly those of the list, in its order: items of a conversation may declare more."""
    listed = request.source.get("tools")
    if not isinstance(listed, list):
        return False
    return _are_same(request.tools, listed) or _are_same(request.tools, [one for item in listed for one in _flat(item)])


def _are_same(tools: tuple[Tool, ...], values: list[Json]) -> bool:
    if len(tools) != len(values):
        return False
    for tool, value in zip(tools, values, strict=True):
        if (None if tool.source is None else tool.source.value) is not value:
            return False
    return True


def _flat(item: Json) -> list[Json]:
    """A namespace is a list in the list."""
    inner = item.get("tools") if isinstance(item, dict) else None
    return inner if isinstance(inner, list) else [item]
