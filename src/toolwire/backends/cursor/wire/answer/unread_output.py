"""Cursor: what the model says while nobody listens: kept in order until the next answer begins, and bounded."""

from __future__ import annotations

from collections import deque
from typing import Any

from msgspec import Struct

from ..execs import Exec, key_of

MOST_BYTES = 64 * 1024 * 1024
MOST_EXECS = 1024
_OVERHEAD = 512  # what an entry costs beside its message


class Said(Struct, frozen=True):
    """Something of the model's: an update by its name, or an exec; data is the message it came in."""

    kind: str
    value: Any
    data: bytes


class Kept:
    """execs are those among it that the server still wants."""

    def __init__(self) -> None:
        self.execs: dict[tuple[int, str], Exec] = {}
        self._said: deque[Said] = deque()
        self._size = 0

    def __bool__(self) -> bool:
        return bool(self._said)

    @property
    def first(self) -> Said:
        return self._said[0]

    def add(self, said: Said) -> bool:
        """False: it is too much."""
        self._size += len(said.data) + _OVERHEAD
        if self._size > MOST_BYTES or len(self.execs) >= MOST_EXECS:
            return False
        self._said.append(said)
        if said.kind == "exec":
            self.execs[key_of(said.value)] = said.value
        return True

    def drop_first(self) -> None:
        said = self._said.popleft()
        self._size -= len(said.data) + _OVERHEAD
        if said.kind == "exec":
            self.execs.pop(key_of(said.value), None)

    def is_wanted(self, said: Said) -> bool:
        return said.kind != "exec" or self.execs.get(key_of(said.value)) is said.value

    def abort(self, number: int) -> None:
        """The server no longer wants these; nobody has been told of them."""
        for key in [key for key in self.execs if key[0] == number]:
            del self.execs[key]
