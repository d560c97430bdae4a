"""One answer's way out: headers once, one write an event, and a sign of life while the back end thinks."""

from __future__ import annotations

import asyncio

from .body import Send

_SSE_HEADERS = [(b"cache-control", b"no-cache"), (b"x-accel-buffering", b"no")]


class Outlet:
    """Nothing is committed until the first write or the first heartbeat; is_started tells."""

    def __init__(self, send: Send, headers: list[tuple[bytes, bytes]], heartbeat: bytes, interval: float) -> None:
        self._send = send
        self._headers = headers
        self._heartbeat = heartbeat
        self._interval = interval
        self._loop = asyncio.get_running_loop()
        self._last = self._loop.time()
        self._timer = self._loop.call_later(interval, self._tick)
        self._beat: asyncio.Task[None] | None = None
        self._starting: asyncio.Lock = asyncio.Lock()
        self.is_started = False

    def add_headers(self, headers: list[tuple[bytes, bytes]]) -> None:
        """What is known only once the back end has answered; too late after the first byte."""
        self._headers += headers

    async def write(self, data: bytes, *, is_last: bool = False) -> None:
        self._last = self._loop.time()
        if not self.is_started:
            await self._start()
        await self._send({"type": "http.response.body", "body": data, "more_body": not is_last})

    def close(self) -> None:
        self._timer.cancel()
        if self._beat is not None:
            self._beat.cancel()

    async def _start(self) -> None:
        if self.is_started:
            return
        self.is_started = True
        head = [(b"content-type", b"text/event-stream; charset=utf-8"), *_SSE_HEADERS, *self._headers]
        await self._send({"type": "http.response.start", "status": 200, "headers": head})

    def _tick(self) -> None:
        """Re-armed lazily: writes only note the time, they do not touch the timer."""
        quiet = self._loop.time() - self._last
        if quiet >= self._interval * 0.98:
            self._last = self._loop.time()
            self._beat = self._loop.create_task(self._write_heartbeat())
            quiet = 0.0
        self._timer = self._loop.call_later(max(0.05, self._interval - quiet), self._tick)

    async def _write_heartbeat(self) -> None:
        await self._start()
        await self._send({"type": "http.response.body", "body": self._heartbeat, "more_body": True})
