"""Iterates an asynchronous generator in a program without an event loop. The generator runs in a thread, one step per item that is read.

The event loop keeps running between two steps, so that tools and connections continue while the reader does something else. The generator
runs in one task, as with `async for`.
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
    """error: the exception of the generator."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


def iterate(make: Callable[[], AsyncGenerator[T, None]]) -> Iterator[T]:
    """Yields the items of the generator. If the reader stops, it waits until the generator is closed."""
    worker = _Worker(make)
    thread = threading.Thread(target=worker.run, name="toolwire-agent", daemon=True)
    thread.start()
    try:
        while True:
            worker.step()
            item = worker.items.get()
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
        self._requests: asyncio.Queue[None] = asyncio.Queue()
        self._loop = asyncio.new_event_loop()
        self._task = self._loop.create_task(self._work())
        self.items: SimpleQueue[T | _End] = SimpleQueue()

    def run(self) -> None:
        """Runs in the thread. Exceptions are raised in the reader's thread."""
        error: BaseException | None = None
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            try:
                runner.run(_wait(self._task))
            except asyncio.CancelledError:
                pass
            except BaseException as fault:
                error = fault
        self.items.put(_End(error))

    def step(self) -> None:
        self._soon(self._requests.put_nowait, None)

    def stop(self) -> None:
        self._soon(self._task.cancel)

    def _soon(self, function: Callable[..., object], *arguments: object) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(function, *arguments)

    async def _work(self) -> None:
        async with aclosing(self._make()) as items:
            await self._requests.get()
            async for item in items:
                self.items.put(item)
                await self._requests.get()


async def _wait(task: asyncio.Task[None]) -> None:
    await task
