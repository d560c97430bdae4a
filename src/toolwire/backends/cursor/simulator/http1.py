"""One HTTP request and its answer, and HTTP/1.1 as the simulator serves it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from ....types import JsonObject


class Hungup(Exception):
    """The client has disconnected."""


class HttpExchange(ABC):
    """status is 0 until the answer starts."""

    version: str
    method: str
    path: str
    headers: dict[str, str]
    status = 0

    @abstractmethod
    async def read(self) -> bytes:
        """The next piece of the body, b"" at its end. Raises Hungup."""

    @abstractmethod
    async def start(self, status: int, headers: dict[str, str], *, is_last: bool = False) -> None:
        """is_last: there is no body."""

    @abstractmethod
    async def write(self, data: bytes) -> None:
        """Raises Hungup."""

    @abstractmethod
    async def finish(self) -> None: ...

    @abstractmethod
    async def cut(self, how: str) -> None:
        """Break the connection: drop, reset or goaway."""

    async def body(self) -> bytes:
        pieces = []
        while piece := await self.read():
            pieces.append(piece)
        return b"".join(pieces)

    async def answer(self, status: int, content_type: str, body: bytes) -> None:
        """Send a complete answer."""
        await self.start(status, {"content-type": content_type, "content-length": str(len(body))}, is_last=not body)
        if body:
            await self.write(body)
            await self.finish()

    async def answer_json(self, status: int, value: JsonObject) -> None:
        await self.answer(status, "application/json", json.dumps(value).encode())


Handler: TypeAlias = Callable[[HttpExchange], Awaitable[None]]


_LARGEST_BODY = 64 * 1024 * 1024
_DRAIN_SECONDS = 0.3


class Http1Exchange(HttpExchange):
    version = "1.1"

    def __init__(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
        self.method, self.path, _ = first.split(" ")
        pairs = (line.partition(":") for line in lines)
        self.headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        self._reader = reader
        self._writer = writer
        self._is_chunked = self.headers.get("transfer-encoding", "").lower() == "chunked"
        self._left = int(self.headers.get("content-length", "0"))
        self._is_read = asyncio.Event()
        self.ahead = b""  # the first byte of the next request, if it came early
        self._is_counted = False
        self.is_whole = False
        self.must_close = self.headers.get("connection", "").lower() == "close"

    async def read(self) -> bytes:
        try:
            piece = b"" if self._is_read.is_set() else await (self._chunk() if self._is_chunked else self._rest())
        except (asyncio.IncompleteReadError, ConnectionError):
            raise Hungup from None
        if not piece:
            self._is_read.set()
        return piece

    async def watch(self) -> None:
        """Returns when the client disconnects during the answer."""
        await self._is_read.wait()
        with contextlib.suppress(ConnectionError):
            self.ahead = await self._reader.read(1)
            if self.ahead:
                await asyncio.Event().wait()

    async def drain(self) -> bool:
        """Whether the body could be read to its end: closing before that may destroy the answer."""
        try:
            async with asyncio.timeout(_DRAIN_SECONDS):
                await self.body()
        except (Hungup, TimeoutError):
            return False
        return True

    async def start(self, status: int, headers: dict[str, str], *, is_last: bool = False) -> None:
        self.status = status
        self._is_counted = "content-length" in headers or is_last
        framing = {"content-length": "0"} if is_last else {} if self._is_counted else {"transfer-encoding": "chunked"}
        lines = [f"{name}: {value}\r\n" for name, value in {**headers, **framing}.items()]
        self.is_whole = is_last
        await self._send(f"HTTP/1.1 {status} Simulated\r\n{''.join(lines)}\r\n".encode("latin-1"))

    async def write(self, data: bytes) -> None:
        await self._send(data if self._is_counted else b"%x\r\n%b\r\n" % (len(data), data))

    async def finish(self) -> None:
        self.is_whole = True
        if not self._is_counted:
            await self._send(b"0\r\n\r\n")

    async def cut(self, how: str) -> None:
        self.must_close = True
        if how == "goaway":
            self._writer.close()
        else:
            self._writer.transport.abort()

    async def _send(self, data: bytes) -> None:
        try:
            self._writer.write(data)
            await self._writer.drain()
        except ConnectionError:
            raise Hungup from None
        if self._writer.transport.is_closing():
            raise Hungup

    async def _rest(self) -> bytes:
        if self._left > _LARGEST_BODY:
            raise Hungup
        data = await self._reader.readexactly(self._left)
        self._left = 0
        return data

    async def _chunk(self) -> bytes:
        size = int((await self._reader.readuntil(b"\r\n")).split(b";")[0], 16)
        if size > _LARGEST_BODY:
            raise Hungup
        return (await self._reader.readexactly(size + 2))[:-2]


async def serve_http1(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, handler: Handler, ahead: bytes
) -> None:
    """Serves until the client or an answer closes the connection. ahead: bytes that were already read."""
    while True:
        try:
            exchange = Http1Exchange(ahead + await reader.readuntil(b"\r\n\r\n"), reader, writer)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, ValueError):
            return
        await _handle(exchange, handler)
        if exchange.must_close or not exchange.is_whole or not await exchange.drain():
            return
        ahead = exchange.ahead


async def _handle(exchange: Http1Exchange, handler: Handler) -> None:
    """Run the handler; cancel it when the client disconnects."""
    handling = asyncio.ensure_future(handler(exchange))
    watching = asyncio.ensure_future(exchange.watch())
    try:
        await asyncio.wait({handling, watching}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        watching.cancel()
        handling.cancel()
        await asyncio.gather(handling, watching, return_exceptions=True)
