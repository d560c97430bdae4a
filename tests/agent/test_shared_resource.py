"""The first user opens it, the last one closes it, in each event loop."""

from __future__ import annotations

import asyncio
import threading
from contextlib import AsyncExitStack

import pytest

from toolwire.agent.shared_resource import SharedResource


class Door:
    def __init__(self, fails: int = 0) -> None:
        self.log: list[str] = []
        self._fails = fails

    async def open(self, stack: AsyncExitStack) -> str:
        self.log.append("open")
        stack.push_async_callback(self._close)
        await asyncio.sleep(0.01)
        if self._fails:
            self._fails -= 1
            raise ValueError("stuck")
        return "room"

    async def _close(self) -> None:
        await asyncio.sleep(0.01)
        self.log.append("close")


def test_concurrent_users_share_it() -> None:
    door = Door()
    shared = SharedResource(door.open)

    async def use(seconds: float) -> None:
        async with shared.use() as room:
            assert room == "room"
            await asyncio.sleep(seconds)
            assert door.log == ["open"]

    async def main() -> None:
        await asyncio.gather(use(0.01), use(0.05), use(0.03))
        assert door.log == ["open", "close"]
        await use_again()

    async def use_again() -> None:
        async with shared.use():
            assert door.log == ["open", "close", "open"]

    asyncio.run(main())


def test_a_user_that_arrives_while_it_closes_opens_it_again() -> None:
    door = Door()
    shared = SharedResource(door.open)

    async def main() -> None:
        await shared.acquire()
        closing = asyncio.create_task(shared.release())
        await asyncio.sleep(0.002)
        await shared.acquire()
        assert door.log == ["open", "close", "open"]
        await closing
        await shared.release()

    asyncio.run(main())
    assert door.log == ["open", "close"] * 2


def test_a_failed_open_is_closed_and_may_be_retried() -> None:
    door = Door(fails=1)
    shared = SharedResource(door.open)

    async def main() -> None:
        with pytest.raises(ValueError, match="stuck"):
            await shared.acquire()
        assert door.log == ["open", "close"]
        async with shared.use() as room:
            assert room == "room"

    asyncio.run(main())
    assert door.log == ["open", "close"] * 2


def test_a_user_cancelled_during_open_is_not_counted() -> None:
    door = Door()
    shared = SharedResource(door.open)

    async def main() -> None:
        task = asyncio.create_task(shared.acquire())
        await asyncio.sleep(0.002)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with shared.use():
            pass

    asyncio.run(main())
    assert door.log == ["open", "close"] * 2


def test_each_event_loop_has_its_own() -> None:
    door = Door()
    shared = SharedResource(door.open)
    together = threading.Barrier(2, timeout=10)

    async def main() -> None:
        async with shared.use():
            await asyncio.to_thread(together.wait)

    threads = [threading.Thread(target=lambda: asyncio.run(main())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(door.log) == ["close", "close", "open", "open"]
