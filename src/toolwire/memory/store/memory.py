"""The store in memory, lost with the process: for tests, and where nothing can or should be written to disk."""

from __future__ import annotations

import time
from collections.abc import Callable

from .sqlite import SqliteStore


class MemoryStore(SqliteStore):
    """SQLite without a file, so that both stores evict and expire alike. Each process has its own."""

    def __init__(self, *, max_bytes: int, max_age: float, clock: Callable[[], float] = time.time) -> None:
        super().__init__(None, max_bytes=max_bytes, max_age=max_age, clock=clock)
