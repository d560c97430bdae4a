"""A resource that the first user opens and the last user closes, one for each event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")


class SharedResource(Generic[T]):
    """open gets a stack, on which it pushes what must be closed."""

    def __init__(self, open: Callable[[AsyncExitStack], Awaitable[T]]) -> None:
        self._open = open
        self._states: WeakKeyDictionary[asyncio.AbstractEventLoop, _State[T]] = WeakKeyDictionary()

    @asynccontextmanager
    async def use(self) -> AsyncIterator[T]:
        resource = await self.acquire()
        try:
            yield resource
        finally:
            await self.release()

    async def acquire(self) -> T:
        """Call release() in the same event loop."""
        state = self._states.setdefault(asyncio.get_running_loop(), _State())
        state.users += 1  # before the first await, so that a concurrent release() does not close it
        try:
            async with state.lock:
                if state.resource is None:
                    try:
                        state.resource = await self._open(state.stack)
                    except BaseException:
                        await state.stack.aclose()
                        raise
                return state.resource
        except BaseException:
            state.users -= 1
            raise

    async def release(self) -> None:
        state = self._states[asyncio.get_running_loop()]
        state.users -= 1
        if state.users:
            return
        async with state.lock:
            if not state.users:
                state.resource = None
                await state.stack.aclose()


class _State(Generic[T]):
    """The resource of one event loop."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.stack = AsyncExitStack()
        self.resource: T | None = None
        self.users = 0
