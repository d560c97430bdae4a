"""What is opened by the first who needs it and closed by the last, in each event loop for itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")


class Opening(Generic[T]):
    """open puts what must be closed on the stack that it is given."""

    def __init__(self, open: Callable[[AsyncExitStack], Awaitable[T]]) -> None:
        self._open = open
        self._places: WeakKeyDictionary[asyncio.AbstractEventLoop, _Place[T]] = WeakKeyDictionary()

    @asynccontextmanager
    async def used(self) -> AsyncIterator[T]:
        opened = await self.enter()
        try:
            yield opened
        finally:
            await self.leave()

    async def enter(self) -> T:
        """Whoever enters leaves, in the same loop."""
        place = self._places.setdefault(asyncio.get_running_loop(), _Place())
        place.users += 1  # before anything is awaited: who leaves meanwhile must not close it
        try:
            async with place.lock:
                if place.opened is None:
                    place.opened = await self._begun(place)
                return place.opened
        except BaseException:
            place.users -= 1
            raise

    async def leave(self) -> None:
        place = self._places[asyncio.get_running_loop()]
        place.users -= 1
        if place.users:
            return
        async with place.lock:
            if not place.users:
                place.opened = None
                await place.stack.aclose()

    async def _begun(self, place: _Place[T]) -> T:
        try:
            return await self._open(place.stack)
        except BaseException:
            await place.stack.aclose()
            raise


class _Place(Generic[T]):
    """One loop's."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.stack = AsyncExitStack()
        self.opened: T | None = None
        self.users = 0
