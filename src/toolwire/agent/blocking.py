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
from typing import TypeVar

T = TypeVar("T")


class _End:
    """error: the exception of the generator."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


def iterate(make: Callable[[], AsyncGenerator[T, None]]) -> Iterator[T]:
    """Yields the items of the generator. If the reader stops, it waits until the generator is closed."""
    loop = asyncio.new_event_loop()
    requests: asyncio.Queue[None] = asyncio.Queue()
    items: SimpleQueue[T | _End] = SimpleQueue()

    async def work() -> None:
        async with aclosing(make()) as made:
            await requests.get()
            async for item in made:
                items.put(item)
                await requests.get()

    task = loop.create_task(work())

    async def wait() -> None:
        await task

    def run() -> None:
        """Runs in the thread. Exceptions are raised in the reader's thread."""
        error: BaseException | None = None
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            try:
                runner.run(wait())
            except asyncio.CancelledError:
                pass
            except BaseException as fault:
                error = fault
        items.put(_End(error))

    def soon(function: Callable[..., object], *arguments: object) -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(function, *arguments)

    thread = threading.Thread(target=run, name="toolwire-agent", daemon=True)
    thread.start()
    try:
        while True:
            soon(requests.put_nowait, None)
            item = items.get()
            if not isinstance(item, _End):
                yield item
            elif item.error is not None:
                raise item.error
            else:
                return
    finally:
        soon(task.cancel)
        thread.join()
