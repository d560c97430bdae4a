"""When the garbage collector runs.

An answer makes thousands of small objects and few reference cycles, so by allocations alone the collector would run far too often for
what it finds, and with high thresholds far too rarely for a gateway with little traffic: what is in a cycle would stay for hours. So the
thresholds are high and a timer collects the young generations. Survivors become old, and Python collects those when they have grown by
a quarter.
"""

from __future__ import annotations

import asyncio
import gc

INTERVAL = 30.0  # seconds
_YOUNG = 1  # generations 0 and 1


class Collector:
    """For one event loop, from start() to stop()."""

    def __init__(self, interval: float = INTERVAL) -> None:
        self._interval = interval
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """What was loaded so far lives as long as the process: the collector need not visit it again."""
        gc.collect()
        gc.freeze()
        gc.set_threshold(20_000, 20, 5)
        self._timer = asyncio.get_running_loop().call_later(self._interval, self._collect)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _collect(self) -> None:
        gc.collect(_YOUNG)
        self._timer = asyncio.get_running_loop().call_later(self._interval, self._collect)
