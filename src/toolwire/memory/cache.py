"""LRU caches bounded by bytes, and the one of decoded histories, so that follow-up requests skip decoding."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeAlias, TypeVar

from ..dialects.shared.memory import PastTurns

Key: TypeAlias = tuple[str, str]  # the owner and an id of theirs
V = TypeVar("V")

MAX_BYTES = 8 << 20  # of JSON; as objects it is several times that
MAX_AGE = 300.0  # seconds; another process may have deleted part of a history meanwhile


class ByteCache(Generic[V]):
    """Evicts the least recently used values. A value of more than an eighth of the cache is not stored."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._entries: OrderedDict[Key, tuple[V, int]] = OrderedDict()
        self.size = 0

    def get(self, key: Key) -> tuple[V, int] | None:
        """The value and its size."""
        found = self._entries.get(key)
        if found is not None:
            self._entries.move_to_end(key)
        return found

    def put(self, key: Key, value: V, size: int) -> None:
        self.drop(key)
        if size <= self._max_bytes // 8:
            self._entries[key] = value, size
            self.size += size
            while self.size > self._max_bytes:
                self.drop(next(iter(self._entries)))

    def drop(self, key: Key) -> None:
        if (entry := self._entries.pop(key, None)) is not None:
            self.size -= entry[1]

    def drop_owner(self, owner: str) -> None:
        for key in [key for key in self._entries if key[0] == owner]:
            self.drop(key)


class HistoryCache:
    """Histories up to the end of an answer. They are shared by all requests that continue it, so no request may change one."""

    def __init__(
        self, max_bytes: int = MAX_BYTES, max_age: float = MAX_AGE, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._max_age = max_age
        self._clock = clock
        self._cache = ByteCache[tuple[float, PastTurns]](max_bytes)
        self.deletions = 0  # calls of forget() so far

    def get(self, owner: str, answer_id: str) -> tuple[PastTurns, int] | None:
        """The history and its size."""
        if (found := self._cache.get((owner, answer_id))) is None:
            return None
        (since, past), size = found
        if self._clock() - since > self._max_age:
            self._cache.drop((owner, answer_id))
            return None
        return past, size

    def put(self, owner: str, answer_id: str, past: PastTurns, size: int) -> None:
        self._cache.put((owner, answer_id), (self._clock(), past), size)

    def forget(self, owner: str) -> None:
        """Drop all histories of this owner: any of them may contain what was deleted."""
        self.deletions += 1
        self._cache.drop_owner(owner)
