"""A small HTTP/1.1 server on loopback for the two halves of a run, and for unary calls."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from msgspec import Struct

from tests.backends.cursor.http2_server import config
from tests.backends.http.loopback import Loopback
from toolwire.backends.cursor.wire import agent
from toolwire.config.file import BackendConfig
from toolwire.wire.connect import ConnectDecoder, ConnectFrame

OPEN = b"HTTP/1.1 200 OK\r\ncontent-type: application/connect+proto\r\ntransfer-encoding: chunked\r\n\r\n"


class HttpRequest(Struct):
    path: str
    headers: dict[str, str]
    body: bytes
    writer: asyncio.StreamWriter

    def answer(self, body: bytes = b"", status: int = 200, kind: str = "application/proto") -> None:
        head = f"HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
        self.writer.write(head.encode() + body)

    def open(self) -> None:
        self.writer.write(OPEN)

    def send(self, data: bytes) -> None:
        self.writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def end(self) -> None:
        self.writer.write(b"0\r\n\r\n")


class Http1Server(Loopback):
    """Every request goes to the handler, one after the other on each connection."""

    def __init__(self, handler: Callable[[HttpRequest], Awaitable[None]]) -> None:
        super().__init__(self._connected)
        self.requests: list[HttpRequest] = []
        self._answer = handler

    @property
    def target(self) -> BackendConfig:
        return config(base_url=f"http://127.0.0.1:{self.port}", client_type="cli", connect_timeout=20.0)

    def named(self, word: str) -> list[HttpRequest]:
        return [request for request in self.requests if request.path.endswith(word)]

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            request = HttpRequest(head[0].split(" ")[1], headers, body, writer)
            self.requests.append(request)
            await self._answer(request)
            await writer.drain()


class Halves:
    """RunSSE and BidiAppend as the service has them: messages in the order of their numbers, a reply once there is news."""

    def __init__(self, *, is_silent: bool = False) -> None:
        self.is_silent = is_silent  # no head before there is news
        self.request_id = ""
        self.numbers: list[int] = []
        self.messages: list[bytes] = []
        self.order: list[str] = []
        self.reply: HttpRequest | None = None
        self.refusal: tuple[int, bytes] | None = None
        self.delay = 0.0

    async def __call__(self, request: HttpRequest) -> None:
        self.order.append(request.path.rpartition("/")[2])
        if request.path.endswith("RunSSE"):
            [item] = ConnectDecoder().feed(request.body)
            assert isinstance(item, ConnectFrame)
            self.request_id = agent.BidiRequestId.FromString(item.data).request_id
            self.reply = request
            if not self.is_silent:
                request.open()
            return
        assert request.path.endswith("BidiAppend")
        append = agent.BidiAppendRequest.FromString(request.body)
        assert append.data == append.data.lower()
        await asyncio.sleep(self.delay)
        if self.refusal is not None:
            request.answer(self.refusal[1], self.refusal[0], "application/json")
            return
        self.numbers.append(append.append_seqno)
        self.messages.append(bytes.fromhex(append.data))
        request.answer()
        if self.is_silent and len(self.numbers) == 1 and self.reply is not None:
            self.reply.open()

    def send(self, data: bytes) -> None:
        assert self.reply is not None
        self.reply.send(data)

    def end(self) -> None:
        assert self.reply is not None
        self.reply.end()
