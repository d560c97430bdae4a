"""Opened by the first, closed by the last, in each loop for itself."""

from __future__ import annotations

import asyncio
import threading
from contextlib import AsyncExitStack

import pytest

from toolwire.agent.shared_resource import Opening


class Door:
    def __init__(self, fails: int = 0) -> None:
        self.told: list[str] = []
        self._fails = fails

    async def open(self, stack: AsyncExitStack) -> str:
        self.told.append("open")
        stack.push_async_callback(self._close)
        await asyncio.sleep(0.01)
        if self._fails:
            self._fails -= 1
            raise ValueError("stuck")
        return "room"

    async def _close(self) -> None:
        await asyncio.sleep(0.01)
        self.told.append("close")


def test_at_once_they_share_it() -> None:
    door = Door()
    opening = Opening(door.open)

    async def use(seconds: float) -> None:
        async with opening.used() as room:
            assert room == "room"
            await asyncio.sleep(seconds)
            assert door.told == ["open"]

    async def main() -> None:
        await asyncio.gather(use(0.01), use(0.05), use(0.03))
        assert door.told == ["open", "close"]
        await use_again()

    async def use_again() -> None:
        async with opening.used():
            assert door.told == ["open", "close", "open"]

    asyncio.run(main())


def test_whoever_comes_while_it_closes_opens_it_again() -> None:
    door = Door()
    opening = Opening(door.open)

    async def main() -> None:
        await opening.enter()
        closing = asyncio.create_task(opening.leave())
        await asyncio.sleep(0.002)
        await opening.enter()
        assert door.told == ["open", "close", "open"]
        await closing
        await opening.leave()

    asyncio.run(main())
    assert door.told == ["open", "close"] * 2


def test_what_failed_half_open_is_closed_and_may_be_tried_again() -> None:
    door = Door(fails=1)
    opening = Opening(door.open)

    async def main() -> None:
        with pytest.raises(ValueError, match="stuck"):
            await opening.enter()
        assert door.told == ["open", "close"]
        async with opening.used() as room:
            assert room == "room"

    asyncio.run(main())
    assert door.told == ["open", "close"] * 2


def test_whoever_is_cancelled_while_it_opens_is_not_counted() -> None:
    door = Door()
    opening = Opening(door.open)

    async def main() -> None:
        task = asyncio.create_task(opening.enter())
        await asyncio.sleep(0.002)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with opening.used():
            pass

    asyncio.run(main())
    assert door.told == ["open", "close"] * 2


def test_each_loop_has_its_own() -> None:
    door = Door()
    opening = Opening(door.open)
    together = threading.Barrier(2, timeout=10)

    async def main() -> None:
        async with opening.used():
            await asyncio.to_thread(together.wait)

    threads = [threading.Thread(target=lambda: asyncio.run(main())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(door.told) == ["close", "close", "open", "open"]
