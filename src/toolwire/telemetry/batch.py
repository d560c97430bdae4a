"""Closed records go to metrics, counts and log together, a moment later.

Their code then runs for many requests in succession instead of between two pieces of an answer, which halves its cost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from .record import Record

_SECONDS = 0.1
_MOST = 200  # records that wait


class RecordBatch:
    """Belongs to one event loop. close: called with each record, in the order in which the requests ended."""

    def __init__(self, close: Callable[[Record], None], seconds: float = _SECONDS) -> None:
        self._close = close
        self._seconds = seconds
        self._records: list[Record] = []
        self._timer: asyncio.TimerHandle | None = None

    def add(self, record: Record) -> None:
        self._records.append(record)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self.flush)
        elif len(self._records) >= _MOST:
            self.flush()

    def flush(self) -> None:
        """Hand over what waits. Metrics and counts are complete after it."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        records, self._records = self._records, []
        for record in records:
            self._close(record)
