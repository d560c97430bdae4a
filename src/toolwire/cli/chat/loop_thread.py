"""An event loop in a thread of its own, so that servers and connections stay alive while the user types."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, TypeVar

_T = TypeVar("_T")
_CLOSE_SECONDS = 15.0
_INTERRUPTED_CLOSE_SECONDS = 2.0  # after Ctrl-C


class LoopTask:
    """A task in the loop that any thread can cancel."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.task: asyncio.Task[Any] | None = None

    def cancel(self) -> None:
        self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        if self.task is not None:
            self.task.cancel()


class LoopThread:
    """A context manager; at its end it closes what hold() opened."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="toolwire-chat", daemon=True)
        self._is_closing = asyncio.Event()
        self._held: list[asyncio.Task[None]] = []

    def __enter__(self) -> LoopThread:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._is_closing.set)
        try:
            seconds = _INTERRUPTED_CLOSE_SECONDS if kind is KeyboardInterrupt else _CLOSE_SECONDS
            asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(seconds)
        except TimeoutError:
            pass  # the daemon thread ends with the process
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(1.0)

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Waits for the result; an interrupt cancels the work."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def start(self, work: Coroutine[Any, Any, None]) -> LoopTask:
        job = LoopTask(self._loop)

        def begin() -> None:
            job.task = self._loop.create_task(work)

        self._loop.call_soon_threadsafe(begin)
        return job

    def hold(self, manager: AbstractAsyncContextManager[Any]) -> None:
        """Enters a context manager now and exits it at the end, both in one task, as some of them require."""
        self.run(self._open(manager))

    async def _open(self, manager: AbstractAsyncContextManager[Any]) -> None:
        opened: asyncio.Future[None] = self._loop.create_future()
        task = self._loop.create_task(self._hold(manager, opened))
        try:
            await opened
        except BaseException:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            raise
        self._held.append(task)

    async def _hold(self, manager: AbstractAsyncContextManager[Any], opened: asyncio.Future[None]) -> None:
        try:
            await manager.__aenter__()
        except BaseException as error:
            if not opened.done():
                opened.set_exception(error)
            return
        opened.set_result(None)
        try:
            await self._is_closing.wait()
        finally:
            await manager.__aexit__(None, None, None)

    async def _end(self) -> None:
        await asyncio.gather(*self._held, return_exceptions=True)
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._loop.shutdown_asyncgens()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()
