"""An asynchronous generator for programs without an event loop: it runs in a thread of its own, one step for each that is read.

The loop goes on between two steps, so that what the generator has begun (tools, connections) does not stand still while the reader
does something else. All of it is one task, as it would be with `async for`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, suppress
from queue import SimpleQueue
from typing import Generic, TypeVar

T = TypeVar("T")


class _End:
    """error: what the generator raised."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


def iterate(make: Callable[[], AsyncGenerator[T, None]]) -> Iterator[T]:
    """What it yields. A reader who stops closes it, and goes on when it has been closed."""
    worker = _Worker(make)
    thread = threading.Thread(target=worker.run, name="toolwire-agent", daemon=True)
    thread.start()
    try:
        while True:
            worker.step()
            item = worker.given.get()
            if not isinstance(item, _End):
                yield item
                continue
            if item.error is not None:
                raise item.error
            return
    finally:
        worker.stop()
        thread.join()


class _Worker(Generic[T]):
    def __init__(self, make: Callable[[], AsyncGenerator[T, None]]) -> None:
        self._make = make
        self._wanted: asyncio.Queue[None] = asyncio.Queue()
        self._loop = asyncio.new_event_loop()
        self._task = self._loop.create_task(self._work())
        self.given: SimpleQueue[T | _End] = SimpleQueue()

    def run(self) -> None:
        """In the thread. What is raised is the reader's, who has no other way to learn of it."""
        error: BaseException | None = None
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            try:
                runner.run(_ended(self._task))
            except asyncio.CancelledError:
                pass
            except BaseException as fault:
                error = fault
        self.given.put(_End(error))

    def step(self) -> None:
        self._soon(self._wanted.put_nowait, None)

    def stop(self) -> None:
        self._soon(self._task.cancel)

    def _soon(self, function: Callable[..., object], *arguments: object) -> None:
        with suppress(RuntimeError):  # the loop has ended, and there is nothing to be told
            self._loop.call_soon_threadsafe(function, *arguments)

    async def _work(self) -> None:
        async with aclosing(self._make()) as items:
            await self._wanted.get()
            async for item in items:
                self.given.put(item)
                await self._wanted.get()


async def _ended(task: asyncio.Task[None]) -> None:
    await task
