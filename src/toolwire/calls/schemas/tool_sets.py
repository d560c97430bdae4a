"""Whether the tools of a request were looked at before: a conversation sends the same ones each time, in the same bytes.

To look at forty schemas again costs more than all the rest of a request. So the bytes of a list of tools that was found good are
kept, with their place, counted from the start of the body and from its end: clients write the list before the messages or
after them, and one of the two places stays. Comparing them there costs a few microseconds. Bytes that are equal at an unequal
place cost a look, never a mistake; and so do tools that a conversation has added to its list, or taken from it.

Whoever repeats the known bytes elsewhere in a body, and offers other tools beside them, deceives only himself: what is remembered
of a list comes from requests whose own list it is.
"""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import AbstractContextManager, nullcontext
from operator import is_
from typing import Any

import msgspec

from ...types import Json, Request
from .cache import Schemas

_MOST = 64
_MOST_KEPT = 8  # things about one list
_MAX_BYTES = 8 << 20


class _Body(msgspec.Struct):
    tools: msgspec.Raw = msgspec.Raw(b"")


_decoder = msgspec.json.Decoder(_Body)


class _Known(msgspec.Struct, frozen=True):
    wire: bytes
    start: int
    behind: int  # bytes between its end and the end of the body
    memory: dict[Hashable, Any] = msgspec.field(default_factory=dict)

    def is_in(self, body: bytes) -> bool:
        from_end = len(body) - self.behind - len(self.wire)
        return body.startswith(self.wire, self.start) or (from_end >= 0 and body.startswith(self.wire, from_end))


class ToolSet:
    """The tools of one request, and what was found out about the same list before: a matter of their places alone."""

    def __init__(self, request: Request, known: _Known | None = None) -> None:
        self.tools = request.tools
        self._body = request.wire
        self._known = known

    def recall(self, key: Hashable) -> Any:
        """None where nothing is known."""
        return None if self._known is None else self._known.memory.get((key, len(self.tools)))

    def remember(self, key: Hashable, value: Any) -> None:
        known = self._known
        if known is None or _wire_of(self._body) != known.wire:
            return
        if len(known.memory) >= _MOST_KEPT:
            known.memory.clear()
        known.memory[key, len(self.tools)] = value


class ToolSets:
    """Those that were good, the last used first. lock: held while they are looked through, where several threads use them."""

    def __init__(self, schemas: Schemas, lock: AbstractContextManager[object] | None = None) -> None:
        self._schemas = schemas
        self._lock = lock or nullcontext()
        self._known: list[_Known] = []

    def check(self, request: Request) -> ToolSet:
        """For a request as it was decoded. Raises BadRequest for the first tool whose schema cannot be understood."""
        body = request.wire
        is_listed = bool(body) and _are_listed(request)
        if is_listed and (known := self._find(body)) is not None:
            return ToolSet(request, known)
        for number, tool in enumerate(request.tools):
            if tool.kind == "function":
                self._schemas.check(tool, f"tools[{number}]")
        return ToolSet(request, self._keep(body) if is_listed else None)

    def has(self, request: Request) -> bool:
        """Whether its tools, if it has any, are known to be good."""
        if not request.tools:
            return True
        return bool(request.wire) and _are_listed(request) and self._find(request.wire) is not None

    def _find(self, body: bytes) -> _Known | None:
        with self._lock:
            place = next((place for place, known in enumerate(self._known) if known.is_in(body)), -1)
            if place < 0:
                return None
            self._known.insert(0, self._known.pop(place))
            return self._known[0]

    def _keep(self, body: bytes) -> _Known | None:
        wire = _wire_of(body)
        start = body.find(wire)
        if len(wire) <= 2 or start < 0:
            return None
        known = _Known(wire, start, len(body) - start - len(wire))
        with self._lock:
            self._known.insert(0, known)
            while len(self._known) > _MOST or sum(len(known.wire) for known in self._known) > _MAX_BYTES:
                self._known.pop()
        return known


def _wire_of(body: bytes) -> bytes:
    """The list itself, as it was written."""
    try:
        return bytes(_decoder.decode(body).tools)
    except (msgspec.DecodeError, RecursionError):
        return b""


def _are_listed(request: Request) -> bool:
    """Whether the tools are those of the list, all of them and in its order: items of a conversation may declare more."""
    listed = request.source.get("tools")
    if not isinstance(listed, list):
        return False
    values = [None if tool.source is None else tool.source.value for tool in request.tools]
    return _are_same(values, listed) or _are_same(values, [one for item in listed for one in _flat(item)])


def _are_same(values: list[Json], others: list[Json]) -> bool:
    return len(values) == len(others) and all(map(is_, values, others))


def _flat(item: Json) -> list[Json]:
    """A namespace is a list in the list."""
    inner = item.get("tools") if isinstance(item, dict) else None
    return inner if isinstance(inner, list) else [item]
