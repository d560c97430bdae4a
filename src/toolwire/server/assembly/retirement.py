"""Closes what a new configuration does not have any more, as soon as the requests that may use it have ended."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Protocol


class Closable(Protocol):
    async def close(self) -> None: ...


class Retirement:
    """Belongs to one event loop."""

    def __init__(self) -> None:
        self._open: set[int] = set()
        self._waiting: list[tuple[set[int], Sequence[Closable]]] = []
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def count(self) -> int:
        """Of open requests."""
        return len(self._open)

    def opened(self, request: Any) -> None:
        """request: any object that lives until closed() is called with it."""
        self._open.add(id(request))

    def closed(self, request: Any) -> None:
        self._open.discard(id(request))
        if self._waiting:
            for users, _ in self._waiting:
                users.discard(id(request))
            self._close_unused()

    def retire(self, closables: Sequence[Closable]) -> None:
        """Requests that begin from now on do not use them."""
        if closables:
            self._waiting.append((self._open.copy(), closables))
            self._close_unused()

    async def stop(self) -> None:
        """Close what still waits."""
        for users, _ in self._waiting:
            users.clear()
        self._close_unused()
        if self._closing:
            await asyncio.wait(self._closing)

    def _close_unused(self) -> None:
        unused = [closables for users, closables in self._waiting if not users]
        self._waiting = [(users, closables) for users, closables in self._waiting if users]
        for closables in unused:
            task = asyncio.create_task(_close_all(closables), name="close retired back ends")
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)


async def _close_all(closables: Sequence[Closable]) -> None:
    for closable in closables:
        await closable.close()
