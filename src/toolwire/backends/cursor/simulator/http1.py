"""One HTTP request and its answer, and HTTP/1.1 as the simulator serves it."""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias

import httptools

from ....types import JsonObject

_READ = 65536


class HungUp(Exception):
    """The client has disconnected."""


class HttpExchange(ABC):
    """status is 0 until the answer starts. task: the one that answers."""

    version: str
    status = 0

    def __init__(self, method: str, path: str, headers: dict[str, str]) -> None:
        self.method = method
        self.path = path
        self.headers = headers
        self.task: asyncio.Task[None] | None = None
        self._pieces: asyncio.Queue[bytes | None] = asyncio.Queue()  # None: disconnected
        self._is_read = False

    def feed(self, data: bytes | None) -> None:
        """A piece of the body, b"" at its end."""
        self._pieces.put_nowait(data)

    def hang_up(self) -> None:
        """The stream was reset or the connection lost."""
        self.feed(None)
        if self.task is not None:
            self.task.cancel()

    async def read(self) -> bytes:
        """The next piece of the body, b"" at its end. Raises Hungup."""
        if self._is_read:
            return b""
        piece = await self._pieces.get()
        if piece is None:
            raise HungUp
        self._is_read = not piece
        return piece

    async def body(self) -> bytes:
        pieces = []
        while piece := await self.read():
            pieces.append(piece)
        return b"".join(pieces)

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

    async def answer(self, status: int, content_type: str, body: bytes) -> None:
        """Send a complete answer."""
        await self.start(status, {"content-type": content_type, "content-length": str(len(body))}, is_last=not body)
        if body:
            await self.write(body)
            await self.finish()

    async def answer_json(self, status: int, value: JsonObject) -> None:
        await self.answer(status, "application/json", json.dumps(value).encode())


Handler: TypeAlias = Callable[[HttpExchange], Awaitable[None]]


async def flush(writer: asyncio.StreamWriter, data: bytes) -> None:
    """Raises Hungup."""
    try:
        writer.write(data)
        await writer.drain()
    except ConnectionError:
        raise HungUp from None
    if writer.transport.is_closing():
        raise HungUp


async def hang_up(exchanges: Iterable[HttpExchange]) -> None:
    """The connection is lost: end all of its exchanges."""
    open_exchanges = list(exchanges)
    for exchange in open_exchanges:
        exchange.hang_up()
    tasks = [exchange.task for exchange in open_exchanges if exchange.task is not None]
    await asyncio.gather(*tasks, return_exceptions=True)


class Http1Exchange(HttpExchange):
    version = "1.1"

    def __init__(self, method: str, path: str, headers: dict[str, str], writer: asyncio.StreamWriter) -> None:
        super().__init__(method, path, headers)
        self._writer = writer
        self._is_counted = False
        self.is_whole = False

    async def start(self, status: int, headers: dict[str, str], *, is_last: bool = False) -> None:
        self.status = status
        self._is_counted = "content-length" in headers or is_last
        framing = {"content-length": "0"} if is_last else {} if self._is_counted else {"transfer-encoding": "chunked"}
        lines = [f"{name}: {value}\r\n" for name, value in {**headers, **framing}.items()]
        self.is_whole = is_last
        await flush(self._writer, f"HTTP/1.1 {status} Simulated\r\n{''.join(lines)}\r\n".encode("latin-1"))

    async def write(self, data: bytes) -> None:
        await flush(self._writer, data if self._is_counted else b"%x\r\n%b\r\n" % (len(data), data))

    async def finish(self) -> None:
        self.is_whole = True
        if not self._is_counted:
            await flush(self._writer, b"0\r\n\r\n")

    async def cut(self, how: str) -> None:
        if how == "goaway":
            self._writer.close()
        else:
            self._writer.transport.abort()


class _Connection:
    """Requests of one connection, which are answered one after the other. The parser calls the methods on_..."""

    def __init__(self, writer: asyncio.StreamWriter, handler: Handler) -> None:
        self.parser = httptools.HttpRequestParser(self)
        self.exchanges: list[Http1Exchange] = []  # without an answer
        self._turn = asyncio.Lock()
        self._writer = writer
        self._handler = handler

    def on_message_begin(self) -> None:
        self._url, self._headers = b"", dict[str, str]()

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        method, path = self.parser.get_method().decode(), self._url.decode("latin-1")
        self._received = Http1Exchange(method, path, self._headers, self._writer)
        self._received.task = asyncio.create_task(self._handle(self._received))
        self.exchanges.append(self._received)

    def on_body(self, body: bytes) -> None:
        self._received.feed(body)

    def on_message_complete(self) -> None:
        self._received.feed(b"")

    async def _handle(self, exchange: Http1Exchange) -> None:
        async with self._turn:
            await self._handler(exchange)
        self.exchanges.remove(exchange)
        if not exchange.is_whole or exchange.headers.get("connection", "").lower() == "close":
            self._writer.close()


async def serve_http1(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, handler: Handler, ahead: bytes
) -> None:
    """Serves until the client or an answer closes the connection. ahead: bytes that were already read."""
    connection, data = _Connection(writer, handler), ahead
    try:
        while data:
            connection.parser.feed_data(data)
            data = await reader.read(_READ)
    except (httptools.HttpParserError, ConnectionError):
        pass
    finally:
        await hang_up(connection.exchanges)
