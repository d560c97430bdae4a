"""The server's half of a run on the wire: messages, heartbeats, the end frame, and the faults that break them."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from ....wire.connect import end, frame
from .http1 import HttpExchange, HungUp
from .settings import Error, SimulatorFaults

_UNKNOWN = (b"\xfa\x3f\x03abc", b"\x0a\x05\xfa\x3f\x02hi", b"\xa2\x06\x00")  # fields 1023, 1.1023 and 100


class StreamBroken(Exception):
    """A fault of the simulator has broken the stream."""


class RunWriter:
    """Writes one frame at a time, so that a heartbeat never interrupts a message."""

    def __init__(self, exchange: HttpExchange, faults: SimulatorFaults) -> None:
        self.faults = faults
        self.is_silent = False
        self.failure = ""  # the fault that broke the stream
        self._exchange = exchange
        self._lock = asyncio.Lock()
        self._may_zip = "gzip" in exchange.headers.get("connect-accept-encoding", "")

    async def start(self) -> None:
        zipped = {"connect-content-encoding": "gzip"} if self._zips else {}
        await self._exchange.start(200, {"content-type": "application/connect+proto", **zipped})

    async def send(self, message: Any) -> None:
        await self.send_raw(message.SerializeToString())

    async def send_raw(self, data: bytes) -> None:
        if self.faults.slow:
            await asyncio.sleep(self.faults.slow)
        if self.faults.unknown:
            for extra in _UNKNOWN:
                await self._write(frame(extra))
        await self._write(frame(data, is_zipped=self._zips))

    async def end(self, error: Error | None = None) -> None:
        await self._write(end(None if error is None else error.as_fault(), is_zipped=self._zips))
        await self._exchange.finish()

    async def fail(self, how: str) -> None:
        """Raises StreamBroken, or never returns."""
        if how in ("stall", "silence"):
            self.is_silent = how == "silence"
            await asyncio.Event().wait()
        frames = {
            "half_frame": b"\x00\x00\x00\x01\x00\x0a\x07",
            "huge_frame": b"\x00\x40\x00\x00\x00" + b"\x0a" * 100,
            "junk_frame": frame(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
        }
        self.failure = how
        with contextlib.suppress(HungUp):
            if how in frames:
                await self._write(frames[how])
            if how in frames or how == "close":
                await self._exchange.finish()
            else:
                await self._exchange.cut(how)
        raise StreamBroken(how)

    @property
    def _zips(self) -> bool:
        return self._may_zip and self.faults.gzip

    async def _write(self, data: bytes) -> None:
        async with self._lock:
            for piece in (bytes([byte]) for byte in data) if self.faults.split else (data,):
                await self._exchange.write(piece)
