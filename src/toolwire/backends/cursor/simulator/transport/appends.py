"""The client's messages of a run over RunSSE: each comes as a request of its own, with its number."""

from __future__ import annotations

from ..faults import refused
from ..turn import Turn


class Appends:
    """Numbers start at 0 and have no gaps. is_ordered: what comes too early is kept until its turn."""

    def __init__(self, turn: Turn, *, is_ordered: bool) -> None:
        self._turn = turn
        self._is_ordered = is_ordered
        self._next = 0
        self._early: dict[int, bytes] = {}
        self._is_closed = False

    def take(self, number: int, data: bytes) -> None:
        """Raises Refused for a number that is not the next."""
        if self._is_closed:
            raise refused("not_found", "The run of this request id is over")
        if number < self._next or number in self._early:
            raise self._refused(f"Duplicate append_seqno {number}; expected {self._next}")
        if number > self._next and not self._is_ordered:
            raise self._refused(f"append_seqno {number} is out of order; expected {self._next}")
        self._early[number] = data
        while self._next in self._early:
            message = self._early.pop(self._next)
            self._next += 1
            self._turn.run.appends += 1
            self._turn.receive(message)

    def close(self) -> None:
        self._is_closed = True
        self._early.clear()

    def _refused(self, why: str) -> Exception:
        self._turn.run.offences.append(why)
        return refused("invalid_argument", why)
