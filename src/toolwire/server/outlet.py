"""One answer's way out: headers once, one write an event, and a sign of life while the back end thinks."""

from __future__ import annotations

import asyncio

from .reply import HeaderList, Reply

_SSE_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
]


class Outlet:
    """Nothing is committed until the first write or the first heartbeat."""

    def __init__(self, loop: asyncio.AbstractEventLoop, reply: Reply, interval: float) -> None:
        self._reply = reply
        self._send = reply.send
        self.headers: HeaderList = []  # more of them, once the back end has answered; too late after the first byte
        self._interval = interval
        self._loop = loop
        self._last = self._loop.time()
        self._timer = self._loop.call_later(interval, self._tick)
        self._beat: asyncio.Task[None] | None = None
        self._is_writing = False

    @property
    def is_started(self) -> bool:
        return self._reply.is_started

    async def write(self, data: bytes, *, is_last: bool = False) -> None:
        self._is_writing = True
        if not self._reply.is_started:
            await self._start()
        await self._send({"type": "http.response.body", "body": data, "more_body": not is_last})
        self._is_writing = False
        self._last = self._loop.time()

    def close(self) -> None:
        self._timer.cancel()
        if self._beat is not None:
            self._beat.cancel()

    async def _start(self) -> None:
        await self._reply.start(200, [*_SSE_HEADERS, *self._reply.headers(), *self.headers])

    def _tick(self) -> None:
        """Re-armed lazily: writes only note the time, they do not touch the timer.

        A client that reads nothing needs no sign of life: while a write waits for it, heartbeats would only pile up behind.
        """
        quiet = self._loop.time() - self._last
        is_stuck = self._is_writing or (self._beat is not None and not self._beat.done())
        if is_stuck:
            quiet = 0.0
        elif quiet >= self._interval * 0.98:
            self._last = self._loop.time()
            self._beat = self._loop.create_task(self._write_heartbeat())
            quiet = 0.0
        self._timer = self._loop.call_later(max(0.05, self._interval - quiet), self._tick)

    async def _write_heartbeat(self) -> None:
        if not self._reply.is_started:
            await self._start()
        await self._send({"type": "http.response.body", "body": self._reply.dialect.heartbeat, "more_body": True})
