"""The first user opens it, the last one closes it, in each event loop."""

from __future__ import annotations

import asyncio
import threading
from contextlib import AsyncExitStack

import pytest

from toolwire.agent.shared_resource import SharedResource


class Door:
    """A resource whose opening and closing each wait for an event."""

    def __init__(self, fails: int = 0) -> None:
        self.log: list[str] = []
        self.may_open, self.may_close = asyncio.Event(), asyncio.Event()
        self.may_open.set()
        self.may_close.set()
        self._fails = fails

    async def open(self, stack: AsyncExitStack) -> str:
        self.log.append("open")
        stack.push_async_callback(self._close)
        await self.may_open.wait()
        if self._fails:
            self._fails -= 1
            raise ValueError("stuck")
        return "room"

    async def _close(self) -> None:
        await self.may_close.wait()
        self.log.append("close")


async def let_tasks_run() -> None:
    """Lets every task run until it waits."""
    for _ in range(10):
        await asyncio.sleep(0)


def test_concurrent_users_share_it() -> None:
    async def main() -> None:
        door = Door()
        shared = SharedResource(door.open)
        leave = [asyncio.Event() for _ in range(3)]

        async def use(event: asyncio.Event) -> None:
            async with shared.use() as room:
                assert room == "room"
                await event.wait()

        users = [asyncio.create_task(use(event)) for event in leave]
        for event in leave:
            await let_tasks_run()
            assert door.log == ["open"]
            event.set()
        await asyncio.gather(*users)
        assert door.log == ["open", "close"]
        async with shared.use():
            assert door.log == ["open", "close", "open"]

    asyncio.run(main())


def test_a_user_that_arrives_while_it_closes_opens_it_again() -> None:
    async def main() -> None:
        door = Door()
        shared = SharedResource(door.open)
        await shared.acquire()
        door.may_close.clear()
        closing = asyncio.create_task(shared.release())
        await let_tasks_run()
        second = asyncio.create_task(shared.acquire())
        await let_tasks_run()
        assert door.log == ["open"]
        door.may_close.set()
        await asyncio.gather(closing, second)
        assert door.log == ["open", "close", "open"]
        await shared.release()
        assert door.log == ["open", "close"] * 2

    asyncio.run(main())


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
        door.may_open.clear()
        task = asyncio.create_task(shared.acquire())
        await let_tasks_run()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        door.may_open.set()
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
