"""Schemas compiled once: tools recur in every request of a conversation, and most of them are never called.

A schema is known by its own JSON, which costs a few microseconds to write; a hash would cost as much again and be less exact.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from contextlib import AbstractContextManager, nullcontext
from operator import is_
from typing import Any, NamedTuple

import msgspec

from ...errors import BadRequest, quote
from ...types import Json, JsonObject, Request, Tool
from ...wire.exact_json import BadJson, encode
from .checker import Checker
from .keywords import pointer
from .reader import Uncheckable, UnreadableSchema, read

MAX_BYTES = 32 << 20  # of memory, estimated
MAX_SCHEMAS = 1000  # the tools of some twenty agents; small schemas would take long to reach the bound in bytes
_PER_BYTE = 30  # a compiled schema weighs about so much for each byte of its JSON
_LARGEST = 2 << 20


class Compiled(NamedTuple):
    """One of the two: a checker, or the reason why there is none. fault: the schema means nothing at this path."""

    checker: Checker | None
    reason: str = ""
    fault: UnreadableSchema | None = None


class Schemas:
    """The least recently used are dropped first. lock: held while the cache is looked at, where several threads use it."""

    def __init__(self, max_bytes: int = MAX_BYTES, lock: AbstractContextManager[object] | None = None) -> None:
        self._max_bytes = max_bytes
        self._lock = lock or nullcontext()
        self._size = 0
        self._known: OrderedDict[bytes, tuple[int, Compiled]] = OrderedDict()

    def of(self, schema: JsonObject | None) -> Compiled:
        """A tool without a schema takes any object."""
        try:
            key = encode(schema or {})
        except (BadJson, TypeError, ValueError):
            return Compiled(None, "the schema cannot be written as JSON")
        with self._lock:
            found = self._known.get(key)
            if found is not None:
                self._known.move_to_end(key)
                return found[1]
        compiled, weight = _compiled(schema or {}, len(key))
        self._keep(key, weight, compiled)
        return compiled

    def check(self, tool: Tool, where: str = "") -> None:
        """Raises BadRequest where the schema of this tool cannot be understood at all."""
        fault = self.of(tool.schema).fault
        if fault is not None:
            raise BadRequest(
                f"the schema of tool {quote(tool.name)} cannot be read at {quote(pointer(fault.path))}: {fault.words}.",
                where=where,
                code="invalid_tool_schema",
                hint="Mend the schema where the tool is declared.",
            )

    def _keep(self, key: bytes, weight: int, compiled: Compiled) -> None:
        if weight > self._max_bytes // 4:  # one must not push out all others
            return
        with self._lock:
            self._size += weight - self._known.get(key, (0, None))[0]
            self._known[key] = (weight, compiled)
            while self._size > self._max_bytes or len(self._known) > MAX_SCHEMAS:
                self._size -= self._known.popitem(last=False)[1][0]

    def __len__(self) -> int:
        return len(self._known)


def check_schema(tool: Tool, where: str = "") -> None:
    """The same for a single tool, remembered nowhere."""
    Schemas().check(tool, where)


def _compiled(schema: JsonObject, size: int) -> tuple[Compiled, int]:
    if size > _LARGEST:
        return Compiled(None, f"the schema is larger than {_LARGEST >> 20} MB"), size
    try:
        reading = read(schema)
        return Compiled(Checker(reading)), size * _PER_BYTE + reading.patterns.weight
    except UnreadableSchema as fault:
        return Compiled(None, f"at {pointer(fault.path)}: {fault.words}", fault), size
    except Uncheckable as reason:
        return Compiled(None, str(reason)), size
    except (ValueError, RecursionError) as error:
        return Compiled(None, f"it cannot be compiled: {str(error).splitlines()[0][:200]}"), size


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
