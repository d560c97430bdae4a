"""A server's GOAWAY, taken out of its bytes before the HTTP/2 engine sees it; and what cannot be HTTP/2 is found at once.

The engine takes one for the end of everything. By the protocol only streams that the server has not seen end there; the others go
on, and a run that waits for a tool's result must not be lost because a balancer wants its connection back. It also looks at the
size of a frame only when it has all of it, so that a server of another protocol would just be waited for.

Frames are also counted here. One costs the engine about ten microseconds, and a server can send millions that carry nothing (settings, pings,
window updates, empty data), each of them legal. So there is a budget: a frame costs one, data earns one for each eight bytes, and the
connection earns what its own work makes a server send. A server that uses the budget up is given up.
"""

from __future__ import annotations

from msgspec import Struct

_HEAD = 9
_SETTINGS = 4
_GOAWAY = 7
_LARGEST = 16384  # bytes of a frame: as the protocol has it where nobody has asked for more
_KEPT = 8 + 200  # of a farewell: the two numbers, and as much of its words as anybody reads
_PROTOCOL_ERROR = 1
_DATA = 0
_PADDED = 0x8
_LONGEST_PADDING = 256
_BYTES_PER_FRAME = 8
BUDGET = 2000  # frames


class Farewell(Struct, frozen=True):
    """last is the highest stream that the server has seen."""

    last: int
    code: int
    words: str = ""


class Misfit(ValueError):
    """These bytes are not HTTP/2."""


class Flood(Misfit):
    """More frames without data than the server may send."""


class Sieve:
    """Frames from the server, cut anywhere."""

    def __init__(self) -> None:
        self._is_first = True
        self._head = bytearray()
        self._left = 0  # bytes of the present frame still to come
        self._farewell: bytearray | None = None
        self._budget = BUDGET

    def refill(self, frames: int = BUDGET) -> None:
        """The server may send so many frames more, up to the whole budget."""
        self._budget = min(BUDGET, self._budget + frames)

    def feed(self, data: bytes) -> tuple[bytes, list[Farewell]]:
        """The bytes without their farewells, and those. Up to eight bytes, a frame's cut head, wait for the next call.

        Raises Misfit, and Flood where the budget is used up.
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
            self._count(head[3], head[4])
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

    def _count(self, kind: int, flags: int) -> None:
        size = self._left - _LONGEST_PADDING if flags & _PADDED else self._left
        if kind == _DATA and size > 0:
            self.refill(size // _BYTES_PER_FRAME)
        self._budget -= 1
        if self._budget < 0:
            raise Flood(f"{BUDGET} frames without data")


def _farewell_of(payload: bytes) -> Farewell:
    if len(payload) < 8:
        return Farewell(0, _PROTOCOL_ERROR)
    last = int.from_bytes(payload[:4], "big") & 0x7FFFFFFF
    return Farewell(last, int.from_bytes(payload[4:8], "big"), payload[8:].decode("utf-8", "replace"))
