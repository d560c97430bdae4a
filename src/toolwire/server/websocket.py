"""A connection that has become a WebSocket: frames on one side, messages of an ASGI application on the other.

server.protocol parses the request that asks for it and hands the connection over. Three things more than ASGI has: the application finds an event
in its scope that is set when the server is to end, so that it can close in order when its work is done; `websocket.accept` with `compression`
accepts a client's offer of permessage-deflate; `websocket.ping` sends a ping.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias

from ..backends.mounts import SHUTDOWN, Receive, Send
from ..wire.websocket import (
    CLOSE,
    PING,
    PONG,
    TEXT,
    BadFrame,
    FrameReader,
    Incoming,
    accept_of,
    accepted_extension,
    close_payload,
    compressed_frame,
    frame,
    is_key,
    parse_close,
)
from .http_request import closing_response

_MUCH, _LITTLE = 4 << 20, 1 << 20  # bytes that the application has not taken: reading stops, and goes on
_PARTING = 1.0  # seconds in which the client may answer our close frame
_MESSAGE = 256  # what one costs beside its text
_STALL_SECONDS = 300.0  # a client that reads nothing for so long is disconnected

Application: TypeAlias = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]


class Disconnected(OSError):
    """The client has closed the connection. An OSError, as ASGI requires."""


class WebSocketConnection(asyncio.Protocol):
    """scope is the one of the HTTP request. longest: bytes of a message."""

    def __init__(
        self, application: Application, scope: MutableMapping[str, Any], connections: set[Any], longest: int
    ) -> None:
        self._application = application
        self._connections = connections
        self._leaving = asyncio.Event()
        self._scope = {
            **scope,
            "type": "websocket",
            "scheme": "ws",
            "subprotocols": [],
            "extensions": {"websocket.http.response": {}, SHUTDOWN: {"event": self._leaving}},
        }
        self._headers: dict[str, str] = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        self._frames = FrameReader(longest, is_server=True)
        self._messages: deque[tuple[MutableMapping[str, Any], int]] = deque()
        self._waiting = 0
        self._arrived = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._frame: Callable[[int, bytes], bytes] = frame
        self._stall: asyncio.TimerHandle | None = None
        self._is_open = False  # the handshake is done, and neither side has sent a close frame
        self._is_answered = False  # the handshake, either way
        self._is_over = False  # the disconnect message was queued for the application
        self._refusal: MutableMapping[str, Any] | None = None
        self._is_reading = True
        self.deadline = math.inf  # an idle socket has no deadline
        self.is_idle = False
        self.transport: asyncio.Transport

    async def run(self) -> None:
        """The application, from the handshake to the end of the connection."""
        self._put({"type": "websocket.connect"}, 0)
        try:
            await self._application(self._scope, self._receive, self._send)
        except Disconnected:
            pass
        except asyncio.CancelledError:  # the shutdown time-out is over: close without waiting for the client
            self.transport.close()
            raise
        finally:
            if self._is_open:
                self._goodbye(1011, "")
            elif not self._is_answered and not self.transport.is_closing():
                self._refuse(500, b"", [])

    def expire(self, now: float) -> None:
        """Never: there is no deadline."""

    def shutdown(self) -> None:
        """The server stops. uvicorn waits until the connection ends, up to the configured time."""
        self._leaving.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._connections.add(self)
        self.transport = transport  # type: ignore[assignment] # that of uvloop only looks like one

    def data_received(self, data: bytes) -> None:
        try:
            for incoming in self._frames.feed(data):
                self._take(incoming)
        except BadFrame as fault:
            if self._is_over or not self._is_open:
                self.transport.abort()
            else:
                self._fail(fault.code, f"{fault}.")

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.discard(self)
        self._end(1006, "the connection was lost")
        self.resume_writing()

    def pause_writing(self) -> None:
        self._writable.clear()
        self._stall = asyncio.get_running_loop().call_later(_STALL_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        self._writable.set()
        if self._stall is not None:
            self._stall.cancel()

    @property
    def _key(self) -> str:
        return self._headers.get("sec-websocket-key", "").strip()

    def _take(self, incoming: Incoming) -> None:
        if incoming.kind == CLOSE:
            code, reason = parse_close(incoming.data)
            if self._is_open:
                self.transport.write(
                    frame(CLOSE, close_payload(code if 1000 <= code < 5000 and code != 1005 else 1000))
                )
            self._end(code, reason)
            self.transport.close()
        elif not self._is_open:
            pass  # the client sent it before it received our close frame
        elif incoming.kind == PING:
            if self._writable.is_set():  # no unbounded queue of pongs for a client that does not read
                self.transport.write(frame(PONG, incoming.data))
        elif incoming.kind == TEXT:
            self._heard(incoming.data)
        elif incoming.kind != PONG:
            self._fail(1003, "found a binary message; expected text.")

    def _heard(self, data: bytes) -> None:
        try:
            self._put({"type": "websocket.receive", "text": data.decode()}, len(data))
        except UnicodeDecodeError:
            self._fail(1007, "found text that is not UTF-8.")

    def _put(self, message: MutableMapping[str, Any], size: int) -> None:
        self._messages.append((message, size + _MESSAGE))
        self._waiting += size + _MESSAGE
        if self._waiting > _MUCH and self._is_reading:
            self._is_reading = False
            self.transport.pause_reading()
        self._arrived.set()

    async def _receive(self) -> MutableMapping[str, Any]:
        while not self._messages:
            self._arrived.clear()
            await self._arrived.wait()
        message, size = self._messages.popleft()
        self._waiting -= size
        if not self._is_reading and self._waiting < _LITTLE:
            self._is_reading = True
            with suppress(RuntimeError):  # closed meanwhile
                self.transport.resume_reading()
        return message

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        match message["type"]:
            case "websocket.accept":
                self._accept(has_compression=message.get("compression", False))
            case "websocket.http.response.start":
                self._refusal = message
            case "websocket.http.response.body":
                assert self._refusal is not None
                self._refuse(self._refusal["status"], message.get("body", b""), self._refusal.get("headers", []))
            case "websocket.send":
                if not self._is_open:
                    raise Disconnected
                self.transport.write(self._frame(TEXT, message["text"].encode()))
                await self._writable.wait()
            case "websocket.ping":
                if self._is_open and self._writable.is_set():
                    self.transport.write(frame(PING, b""))
            case "websocket.close":
                self._goodbye(message.get("code", 1000), message.get("reason") or "")

    def _accept(self, *, has_compression: bool) -> None:
        if self.transport.is_closing():
            raise Disconnected
        if self._headers.get("sec-websocket-version") != "13" or not is_key(self._key):
            self._refuse(426, b"expected a WebSocket handshake of version 13", [(b"sec-websocket-version", b"13")])
            raise Disconnected
        lines = [
            "HTTP/1.1 101 Switching Protocols",
            "upgrade: websocket",
            "connection: upgrade",
            f"sec-websocket-accept: {accept_of(self._key)}",
        ]
        extension, bits = accepted_extension(self._headers.get("sec-websocket-extensions", ""))
        if has_compression and extension:
            lines.append(f"sec-websocket-extensions: {extension}")
            self._frame, self._frames.is_deflating = partial(compressed_frame, bits=bits), True
        self.transport.write("\r\n".join([*lines, "", ""]).encode("ascii"))
        self._is_open = self._is_answered = True

    def _refuse(self, status: int, body: bytes, headers: list[tuple[bytes, bytes]]) -> None:
        self._is_answered = True
        self.transport.write(closing_response(status, body, headers))
        self.transport.close()

    def _fail(self, code: int, reason: str) -> None:
        """The client violated the protocol. The application gets a disconnect message."""
        self._end(code, reason)
        self._goodbye(code, reason)

    def _goodbye(self, code: int, reason: str) -> None:
        """Waits a moment for the client's close frame: closing the connection at once may lose the last message."""
        if self.transport.is_closing():
            return
        self._is_open = False
        self.transport.write(frame(CLOSE, close_payload(code, reason)))
        self._is_reading = True
        with suppress(RuntimeError):  # it was not paused
            self.transport.resume_reading()
        asyncio.get_running_loop().call_later(_PARTING, self.transport.abort)

    def _end(self, code: int, reason: str) -> None:
        """The last message that the application gets, once."""
        if not self._is_over:
            self._is_over = True
            self._put({"type": "websocket.disconnect", "code": code, "reason": reason}, 0)
        self._is_open = False
