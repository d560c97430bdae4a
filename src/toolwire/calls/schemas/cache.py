"""Schemas compiled once: tools recur in every request of a conversation, and most of them are never called.

A schema is known by its own JSON, which costs a few microseconds to write; a hash would cost as much again and be less exact.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

from ...errors import BadRequest, quote
from ...types import JsonObject, Tool
from ...wire.exact_json import BadJson, encode
from .checker import Checker
from .keywords import pointer
from .reader import Uncheckable, Unreadable, read

MAX_BYTES = 32 << 20  # of memory, estimated
MAX_SCHEMAS = 1000  # the tools of some twenty agents; small schemas would take long to reach the bound in bytes
_PER_BYTE = 30  # a compiled schema weighs about so much for each byte of its JSON
_LARGEST = 2 << 20


class Compiled(NamedTuple):
    """One of the two: a checker, or the reason why there is none. fault: the schema means nothing at this path."""

    checker: Checker | None
    reason: str = ""
    fault: Unreadable | None = None


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
    except Unreadable as fault:
        return Compiled(None, f"at {pointer(fault.path)}: {fault.words}", fault), size
    except Uncheckable as reason:
        return Compiled(None, str(reason)), size
    except (ValueError, RecursionError) as error:
        return Compiled(None, f"it cannot be compiled: {str(error).splitlines()[0][:200]}"), size
