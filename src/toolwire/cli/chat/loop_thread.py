"""An event loop in a thread of its own, so that servers and connections stay alive while the user types."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, TypeVar

_T = TypeVar("_T")
_CLOSE_SECONDS = 15.0
_INTERRUPTED_CLOSE_SECONDS = 2.0  # after Ctrl-C


class LoopThread:
    """A context manager; at its end it closes what hold() opened."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="toolwire-chat", daemon=True)
        self._is_closing = asyncio.Event()
        self._held: list[Future[None]] = []

    def __enter__(self) -> LoopThread:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._is_closing.set)
        try:
            seconds = _INTERRUPTED_CLOSE_SECONDS if kind is KeyboardInterrupt else _CLOSE_SECONDS
            self.start(self._end()).result(seconds)
        except TimeoutError:
            pass  # the daemon thread ends with the process
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(1.0)

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Waits for the result; an interrupt cancels the work."""
        future = self.start(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def start(self, work: Coroutine[Any, Any, _T]) -> Future[_T]:
        """Any thread can cancel the work."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def hold(self, manager: AbstractAsyncContextManager[Any]) -> None:
        """Enters a context manager now and exits it at the end, both in one task, as some of them require."""
        opened: Future[None] = Future()
        held = self.start(self._hold(manager, opened))
        try:
            opened.result()
        except BaseException:
            held.cancel()
            raise
        self._held.append(held)

    async def _hold(self, manager: AbstractAsyncContextManager[Any], opened: Future[None]) -> None:
        try:
            await manager.__aenter__()
        except BaseException as error:
            opened.set_exception(error)
            return
        opened.set_result(None)
        try:
            await self._is_closing.wait()
        finally:
            await manager.__aexit__(None, None, None)

    async def _end(self) -> None:
        await asyncio.gather(*map(asyncio.wrap_future, self._held), return_exceptions=True)
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
