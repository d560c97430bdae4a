"""Writes statistics to the store in small batches, outside of requests, and reads them.

A day is one conversation of an owner that no client can have; its items are the lines of that day. A line that is written again replaces its
older version, lines of several processes do not collide, and the store expires a day as a whole.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterable
from itertools import count, groupby, islice

from ..errors import GatewayError, InternalError
from ..ids import new_id
from ..memory.store import Entry, Item, Store
from ..memory.store.base import CONVERSATION
from ..telemetry.hourly import HOUR, HourLine, HourlyCounts
from ..telemetry.quality import CallQuality

OWNER = "stats:"  # a client's is empty or a hash
EVERY = 30.0  # seconds
_TOGETHER = 20  # lines of one write: so many go to the store's own thread
_HOURS = 24
_MEASURE_EVERY = 10  # writes


class Recorder:
    """Writes the counts of one process, under a unique name, and updates quality with the counts of all processes. report gets the first
    unexpected error."""

    def __init__(
        self,
        store: Store,
        history: HourlyCounts,
        report: Callable[[InternalError, str], None],
        quality: CallQuality | None = None,
        every: float = EVERY,
    ) -> None:
        self._store = store
        self._history = history
        self._report = report
        self._quality = quality
        self._has_reported = False
        self._every = every
        self._process = new_id("process_")
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="what was counted")

    async def stop(self) -> None:
        """Writes the remaining counts. If the store fails, only these counts are lost."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        await self._attempt(self.write)

    async def write(self) -> None:
        """Writes all new counts. What the store does not accept is tried again the next time."""
        with contextlib.suppress(GatewayError):
            for day, lines in groupby(self._history.unwritten(), key=lambda line: line.hour // _HOURS):
                while together := list(islice(lines, _TOGETHER)):
                    await self._append(day_name(day), [Item(self._name(line), line.encode()) for line in together])
                    for line in together:
                        self._history.wrote(line)

    async def read(self, days: Iterable[int]) -> list[HourLine]:
        """What all processes have written on these days, in days since 1970."""
        return await recorded(self._store, days)

    async def measure(self) -> None:
        """Update the quality of tool calls from the counts of today and yesterday."""
        if self._quality is not None:
            today = int(time.time()) // (HOUR * _HOURS)
            with contextlib.suppress(GatewayError):
                self._quality.update(await self.read((today - 1, today)))

    async def _run(self) -> None:
        for number in count():
            if number % _MEASURE_EVERY == 0:
                await self._attempt(self.measure)
            await asyncio.sleep(self._every)
            await self._attempt(self.write)

    async def _attempt(self, step: Callable[[], Awaitable[None]]) -> None:
        try:
            await step()
        except Exception as fault:  # the next attempt may succeed, and no request depends on this one
            if not self._has_reported:
                self._has_reported = True
                error = InternalError("the counts for `toolwire stats` could not be written or read.")
                error.__cause__ = fault
                self._report(error, "")

    async def _append(self, day: str, items: list[Item]) -> None:
        if not await self._store.append(OWNER, day, items):
            await self._store.put(Entry(owner=OWNER, id=day, kind=CONVERSATION, created=time.time()))
            await self._store.append(OWNER, day, items)

    def _name(self, line: HourLine) -> str:
        owner = f"{line.owner} " if line.owner else ""  # a key's name has no space
        return f"{line.hour} {self._process} {owner}{line.backend} {line.model}"


def day_name(day: int) -> str:
    """day is in days since 1970."""
    return f"counts of day {day}"


async def recorded(store: Store, days: Iterable[int]) -> list[HourLine]:
    """All lines of these days, of all processes."""
    items = [item for day in days for item in await store.items(OWNER, day_name(day))]
    return [line for item in items if (line := HourLine.decode(item.value)) is not None]
