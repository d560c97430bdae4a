"""The stream of changes for the inspector: flows that begin, grow and end, as server-sent events."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator

import msgspec

from ...flows.record import FlowSummary
from ...flows.recorder import FlowRecorder

TICK = 0.1  # seconds: an open flow is sent at most this often
_BEAT = 15.0
_MAX_WAITING = 2000  # events for a reader that does not read; then it starts again
_RESET = b"event: reset\ndata: {}\n\n"


class LiveFeeds:
    """The readers of a process."""

    def __init__(self, flows: FlowRecorder, most: int = 32) -> None:
        self._flows = flows
        self._most = most
        self._feeds: set[_Feed] = set()

    @property
    def is_full(self) -> bool:
        return len(self._feeds) >= self._most

    async def follow(self) -> AsyncGenerator[bytes]:
        """Pieces of the stream, until close()."""
        feed = _Feed(self._flows)
        self._feeds.add(feed)
        self._flows.listeners.add(feed.take)
        try:
            async for piece in feed.pieces():
                yield piece
        finally:
            self._flows.listeners.discard(feed.take)
            self._feeds.discard(feed)

    def close(self) -> None:
        """End all streams: the server stops."""
        for feed in self._feeds:
            feed.is_closed = True


class _Feed:
    def __init__(self, flows: FlowRecorder) -> None:
        self._flows = flows
        self._waiting: deque[bytes] = deque()
        self._seen: dict[int, int] = {}  # progress of open flows, as it was sent
        self.is_closed = False

    def take(self, flow: FlowSummary | None) -> None:
        """A flow has ended, or flows were deleted."""
        if flow is None or len(self._waiting) >= _MAX_WAITING:
            self._waiting.clear()
            self._waiting.append(_RESET)
            return
        self._seen.pop(flow.seq, None)
        self._waiting.append(_event(flow))

    async def pieces(self) -> AsyncGenerator[bytes]:
        loop = asyncio.get_running_loop()
        yield b": live\n\n"
        last = loop.time()
        while not self.is_closed:
            self._look()
            if self._waiting:
                piece = b"".join(self._waiting)
                self._waiting.clear()
                yield piece
                last = loop.time()
            elif loop.time() - last > _BEAT:
                yield b": keep-alive\n\n"
                last = loop.time()
            await asyncio.sleep(TICK)

    def _look(self) -> None:
        for draft in self._flows.drafts():
            if self._seen.get(draft.seq) != draft.progress:
                self._seen[draft.seq] = draft.progress
                self._waiting.append(_event(self._flows.summarize(draft)))


def _event(flow: FlowSummary) -> bytes:
    return b"event: flow\ndata: " + msgspec.json.encode(flow) + b"\n\n"
