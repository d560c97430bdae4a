"""Frames on their way to a window: whoever has one to send never waits, and a window that does not read is given up."""

from __future__ import annotations

import asyncio
from collections import deque

from .wire.frames import MAX_FRAME

_MOST = 2 * MAX_FRAME
_LITTLE = 1 << 18  # so much may wait before those who can are asked to


class Outbox:
    """full is set when more was put in than a window that reads leaves there. Belongs to one event loop."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._texts: deque[str] = deque()
        self._size = 0
        self._is_closed = False
        self._filled = asyncio.Event()
        self._drained = asyncio.Event()
        self._drained.set()
        self.full = asyncio.Event()

    def put(self, text: str) -> bool:
        """Whether it will be sent, as far as anybody can tell."""
        if self._is_closed or self.full.is_set():
            return False
        if self._size and self._size + len(text) > self._most:
            self.full.set()
            return False
        self._texts.append(text)
        self._size += len(text)
        if self._size > _LITTLE:
            self._drained.clear()
        self._filled.set()
        return True

    async def next(self) -> str | None:
        """The next one; None when there will be no more."""
        while not self._texts:
            if self._is_closed:
                return None
            self._filled.clear()
            await self._filled.wait()
        text = self._texts.popleft()
        self._size -= len(text)
        if self._size <= _LITTLE:
            self._drained.set()
        return text

    async def room(self) -> None:
        """Until little waits."""
        await self._drained.wait()

    def close(self) -> None:
        """What waits is still given; nothing more is taken."""
        self._is_closed = True
        self._filled.set()
        self._drained.set()
