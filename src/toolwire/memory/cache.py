"""Histories of late: whoever goes on within minutes need not wait until they are read and understood again.

They are shared by all requests that go on from the same answer, so nobody may change what is in them.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from ..dialects.shared.memory import PastTurns

MAX_BYTES = 8 << 20  # of JSON; as objects it is several times that
MAX_AGE = 300.0  # seconds: for so long another process may have deleted something in the middle of a history


class HistoryCache:
    """By owner and answer, the oldest use dropped first."""

    def __init__(
        self, max_bytes: int = MAX_BYTES, max_age: float = MAX_AGE, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._max_bytes = max_bytes
        self._max_age = max_age
        self._clock = clock
        self._size = 0
        self.forgotten = 0  # how often something was
        self._known: OrderedDict[tuple[str, str], tuple[float, int, PastTurns]] = OrderedDict()

    def get(self, owner: str, answer_id: str) -> tuple[PastTurns, int] | None:
        """The history up to the end of this answer, and its size."""
        found = self._known.get((owner, answer_id))
        if found is None:
            return None
        since, size, past = found
        if self._clock() - since > self._max_age:
            self._drop((owner, answer_id))
            return None
        self._known.move_to_end((owner, answer_id))
        return past, size

    def put(self, owner: str, answer_id: str, past: PastTurns, size: int) -> None:
        self._drop((owner, answer_id))
        if size > self._max_bytes // 8:  # one must not push out all others
            return
        self._known[owner, answer_id] = (self._clock(), size, past)
        self._size += size
        while self._size > self._max_bytes:
            self._drop(next(iter(self._known)))

    def forget(self, owner: str) -> None:
        """Something of this owner's was deleted, and any of its histories may have held it."""
        self.forgotten += 1
        for key in [key for key in self._known if key[0] == owner]:
            self._drop(key)

    def _drop(self, key: tuple[str, str]) -> None:
        if (known := self._known.pop(key, None)) is not None:
            self._size -= known[1]
