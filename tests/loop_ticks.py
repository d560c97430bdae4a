"""Count the rounds of an event loop while other work runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Ticks:
    """Rounds of the loop, at most one per millisecond; none while the loop is blocked."""

    def __init__(self) -> None:
        self.count = 0

    async def run(self) -> None:
        while True:
            await asyncio.sleep(0.001)
            self.count += 1


@asynccontextmanager
async def ticking() -> AsyncIterator[Ticks]:
    ticks = Ticks()
    task = asyncio.create_task(ticks.run())
    await asyncio.sleep(0.005)
    ticks.count = 0
    try:
        yield ticks
    finally:
        task.cancel()
