"""A server's GOAWAY, taken out of its bytes before the HTTP/2 engine sees it; and what cannot be HTTP/2 is found at once.

The engine takes one for the end of everything. By the protocol only streams that the server has not seen end there; the others go
on, and a run that waits for a tool's result must not be lost because a balancer wants its connection back. It also looks at the
size of a frame only when it has all of it, so that a server of another protocol would just be waited for.
"""

from __future__ import annotations

from msgspec import Struct

_HEAD = 9
_SETTINGS = 4
_GOAWAY = 7
_LARGEST = 16384  # bytes of a frame: as the protocol has it where nobody has asked for more
_KEPT = 8 + 200  # of a farewell: the two numbers, and as much of its words as anybody reads
_PROTOCOL_ERROR = 1


class Farewell(Struct, frozen=True):
    """last is the highest stream that the server has seen."""

    last: int
    code: int
    words: str = ""


class Misfit(ValueError):
    """These bytes are not HTTP/2."""


class Sieve:
    """Frames from the server, cut anywhere."""

    def __init__(self) -> None:
        self._is_first = True
        self._head = bytearray()
        self._left = 0  # bytes of the present frame still to come
        self._farewell: bytearray | None = None

    def feed(self, data: bytes) -> tuple[bytes, list[Farewell]]:
        """The bytes without their farewells, and those. Up to eight bytes, a frame's cut head, wait for the next call.

        Raises Misfit.
        """
        passed = bytearray()
        farewells: list[Farewell] = []
        position = 0
        while position < len(data):
            if self._left == 0:
                position = self._read_head(data, position, passed)
            piece = data[position : position + self._left]
            position += len(piece)
            self._left -= len(piece)
            if self._farewell is None:
                passed += piece
            else:
                self._farewell += piece[: _KEPT - len(self._farewell)]
                if self._left == 0:
                    farewells.append(_farewell_of(bytes(self._farewell)))
                    self._farewell = None
        return bytes(passed), farewells

    def _read_head(self, data: bytes, position: int, passed: bytearray) -> int:
        head = self._head
        piece = data[position : position + _HEAD - len(head)]
        head += piece
        if len(head) == _HEAD:
            self._left = int.from_bytes(head[:3], "big")
            self._check(head[3])
            if head[3] == _GOAWAY:
                self._farewell = bytearray()
            else:
                passed += head
            head.clear()
        return position + len(piece)

    def _check(self, kind: int) -> None:
        if self._is_first and kind != _SETTINGS:
            raise Misfit(f"its first frame has the type {kind}; expected its settings")
        if self._left > _LARGEST:
            raise Misfit(f"a frame has {self._left} bytes; at most {_LARGEST} are allowed")
        self._is_first = False


def _farewell_of(payload: bytes) -> Farewell:
    if len(payload) < 8:
        return Farewell(0, _PROTOCOL_ERROR)
    last = int.from_bytes(payload[:4], "big") & 0x7FFFFFFF
    return Farewell(last, int.from_bytes(payload[4:8], "big"), payload[8:].decode("utf-8", "replace"))
