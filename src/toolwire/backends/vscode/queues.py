"""Bounded queues between a window and its requests: an Inbox for the answer to one request, an Outbox for frames to the window."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TypeAlias

from .wire.frames import MAX_FRAME
from .wire.shapes import Counted, End, Failure, Parts

MAX_INBOX = 16 << 20  # bytes of frames behind the next one to be read, which may be large
_MAX_OUTBOX = 2 * MAX_FRAME
_LOW = 1 << 18  # bytes in an outbox below which room() returns
_FRAME = 256  # memory of one frame beside its text

Heard: TypeAlias = Parts | End | Failure | Counted


class Overflow(Exception):
    """The window sends faster than the client reads."""


class Inbox:
    """Belongs to one event loop, and has one reader."""

    def __init__(self, request_id: str, most: int = MAX_INBOX) -> None:
        self.id = request_id
        self.asker = ""  # id of the client's request, for the log
        self._most = most
        self._frames: deque[tuple[Heard, int]] = deque()
        self._size = 0
        self._fault: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None

    def put(self, frame: Heard, size: int) -> bool:
        """Whether there was room; after an overflow nothing is stored."""
        if self._fault is not None:
            return True  # the request is over
        if self._frames and self._size - self._frames[0][1] + size + _FRAME > self._most:
            self.end(Overflow())
            return False
        self._frames.append((frame, size + _FRAME))
        self._size += size + _FRAME
        self._wake()
        return True

    def end(self, fault: Exception) -> None:
        """Nothing follows. Stored frames can still be read, except after an overflow."""
        if self._fault is None:
            self._fault = fault
        if isinstance(self._fault, Overflow):
            self._frames.clear()
        self._wake()

    async def next(self) -> Heard:
        """Raises SessionLost or Overflow."""
        while not self._frames:
            if self._fault is not None:
                raise type(self._fault)(*self._fault.args)  # the stored one would refer to us by its traceback
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        return self._popped()

    def ready(self) -> list[Heard]:
        """All stored frames, without waiting."""
        return [self._popped() for _ in range(len(self._frames))]

    def _popped(self) -> Heard:
        frame, size = self._frames.popleft()
        self._size -= size
        return frame

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Outbox:
    """full is set when the window does not read fast enough. Belongs to one event loop."""

    def __init__(self, most: int = _MAX_OUTBOX) -> None:
        self._most = most
        self._texts: deque[str] = deque()
        self._size = 0
        self._is_closed = False
        self._filled = asyncio.Event()
        self._drained = asyncio.Event()
        self._drained.set()
        self.full = asyncio.Event()

    def put(self, text: str) -> bool:
        """Whether it was queued."""
        if self._is_closed or self.full.is_set():
            return False
        if self._size and self._size + len(text) > self._most:
            self.full.set()
            return False
        self._texts.append(text)
        self._size += len(text)
        if self._size > _LOW:
            self._drained.clear()
        self._filled.set()
        return True

    async def next(self) -> str | None:
        """The next frame; None after close()."""
        while not self._texts:
            if self._is_closed:
                return None
            self._filled.clear()
            await self._filled.wait()
        text = self._texts.popleft()
        self._size -= len(text)
        if self._size <= _LOW:
            self._drained.set()
        return text

    async def room(self) -> None:
        """Waits until the queue is nearly empty."""
        await self._drained.wait()

    def close(self) -> None:
        """Queued frames can still be read; new ones are refused."""
        self._is_closed = True
        self._filled.set()
        self._drained.set()
