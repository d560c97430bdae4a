"""One HTTP request as the ASGI application sees it: receive() returns its body, send() writes its response.

The application gets the request itself as `receive`. A caller that knows this class takes a body that has arrived with take_body(), and
learns by watch() that the client has disconnected: both cost less than waiting for a message. The response's head is written together with the first bytes of its body: one system call and one packet instead of two.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from http import HTTPStatus
from typing import Any, Protocol, TypeAlias

Scope: TypeAlias = MutableMapping[str, Any]
_BODILESS = frozenset({204, 304})
_PHRASES = {status.value: status.phrase for status in HTTPStatus}
_STATUS_LINES = [f"HTTP/1.1 {status} {_PHRASES.get(status, '')}\r\n".encode() for status in range(1000)]
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


def closing_response(status: int, body: bytes, headers: Sequence[tuple[bytes, bytes]]) -> bytes:
    """A whole response after which the connection is closed."""
    fields = [b"%b: %b" % field for field in (*headers, (b"content-length", b"%d" % len(body)))]
    return b"".join([_STATUS_LINES[status], b"\r\n".join([*fields, b"connection: close", b"", b""]), body])


class Connection(Protocol):
    """What a request needs of the connection it came on."""

    loop: asyncio.AbstractEventLoop
    is_leaving: bool  # no request follows those that have arrived
    is_congested: bool  # the client reads more slowly than the application writes

    def write(self, data: bytes) -> None: ...

    async def writable(self) -> None:
        """Waits while the connection is congested."""

    def body_taken(self) -> None:
        """The application has taken what arrived of the body."""

    def answered(self, request: HttpRequest) -> None:
        """The response is complete."""


class HttpRequest:
    """is_complete: the whole body has arrived. is_persistent: the connection can serve another request after this one."""

    def __init__(self, connection: Connection, scope: Scope, *, is_persistent: bool, wants_continue: bool) -> None:
        self.scope = scope
        self.is_complete = False
        self.is_persistent = is_persistent
        self.is_started = False
        self.is_answered = False
        self.is_gone = False
        self.held = 0  # bytes of the body that the application has not taken
        self._connection = connection
        self._wants_continue = wants_continue
        self._on_disconnect: Callable[[], None] | None = None
        self._pieces: list[bytes] = []
        self._news: asyncio.Event | None = None  # created by the first receive() that must wait
        self._is_taken = False  # the application has the whole body
        self._end: asyncio.Future[MutableMapping[str, Any]] | None = None  # that the application waits for
        self._head = b""
        self._is_chunked = False
        self._is_bodiless = False
        self._left: int | None = None  # bytes of the response that content-length announced and are not written yet

    def add_body(self, data: bytes) -> None:
        self._pieces.append(data)
        self.held += len(data)
        if self._news is not None:
            self._news.set()

    def complete(self) -> None:
        """The last byte of the body has arrived."""
        self.is_complete = True
        if self._news is not None:
            self._news.set()

    def disconnect(self) -> None:
        """The client cannot be answered any more: the application hears of it, and what it still sends is dropped."""
        self.is_gone = True
        self._announce_end()
        if self._on_disconnect is not None:
            self._on_disconnect()

    def __call__(self) -> Awaitable[MutableMapping[str, Any]]:
        return self.receive()

    def take_body(self) -> bytes | None:
        """The body if it has arrived as a whole; None if receive() must wait for it, or has returned some of it."""
        if not self.is_complete or self._is_taken or self.is_gone or self.is_answered:
            return None
        return self._take()

    def watch(self, disconnect: Callable[[], None]) -> Callable[[], None]:
        """Call disconnect() once the client has disconnected, also if it has already. The function that is returned ends this."""
        self._on_disconnect = disconnect
        if self.is_gone:
            disconnect()
        return self._unwatch

    def _unwatch(self) -> None:
        self._on_disconnect = None

    def receive(self) -> Awaitable[MutableMapping[str, Any]]:
        """After the whole body only the end can follow. It is awaited by a future, which costs less than a task."""
        is_awaited = self._end is not None and not self._end.done()
        if not self._is_taken or self.is_gone or self.is_answered or is_awaited:
            return self._receive()
        self._end = self._connection.loop.create_future()
        return self._end

    async def _receive(self) -> MutableMapping[str, Any]:
        if self._wants_continue and not (self.is_gone or self.is_started):
            self._wants_continue = False
            if not self._pieces and not self.is_complete:
                self._connection.write(_CONTINUE)
        while not self._has_news:
            self._news = self._news or asyncio.Event()
            self._news.clear()
            await self._news.wait()
        if self.is_gone or self.is_answered:
            return {"type": "http.disconnect"}
        is_complete = self.is_complete
        return {"type": "http.request", "body": self._take(), "more_body": not is_complete}

    @property
    def _has_news(self) -> bool:
        is_new = bool(self._pieces) or (self.is_complete and not self._is_taken)
        return is_new or self.is_gone or self.is_answered

    def _take(self) -> bytes:
        pieces, self._pieces, self.held = self._pieces, [], 0
        self._is_taken = self.is_complete
        self._connection.body_taken()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def send(self, message: MutableMapping[str, Any]) -> None:
        if self._connection.is_congested and not self.is_gone:
            await self._connection.writable()
        if self.is_gone:
            return
        if not self.is_started:
            self._start(message["status"], message["headers"])
            return
        if self.is_answered:
            raise RuntimeError("the response is complete; nothing can be added to it.")
        is_last = not message.get("more_body", False)
        data = self._head + self._framed(message.get("body", b""), is_last)
        self._head = b""
        if data:
            self._connection.write(data)
        if is_last:
            self.is_answered = True
            self._announce_end()
            self._connection.answered(self)

    def _announce_end(self) -> None:
        if self._news is not None:
            self._news.set()
        if self._end is not None and not self._end.done():
            self._end.set_result({"type": "http.disconnect"})

    def _start(self, status: int, headers: Sequence[tuple[bytes, bytes]]) -> None:
        """A response that starts before its request's body has arrived is the last one of the connection: nothing on the
        wire would tell the client whether the rest of the body is still read."""
        self.is_started = True
        self.is_persistent = self.is_persistent and self.is_complete and not self._connection.is_leaving
        fields = [b"%b: %b" % field for field in headers]
        length = dict(headers).get(b"content-length")
        self._is_bodiless = self.scope["method"] == "HEAD" or status in _BODILESS
        if length is not None:
            self._left = int(length)
        elif self._is_bodiless:
            pass
        elif self.scope["http_version"] == "1.1":
            self._is_chunked = True
            fields.append(b"transfer-encoding: chunked")
        else:  # an older client takes the end of the connection for the end of the body
            self.is_persistent = False
        if not self.is_persistent:
            fields.append(b"connection: close")
        text = b"\r\n".join(fields)
        if text.count(b"\n") + 1 != len(fields) or text.count(b"\r") + 1 != len(fields) or b"\0" in text:
            raise RuntimeError("a response header contains a line break or a NUL.")
        self._head = _STATUS_LINES[status] + text + b"\r\n\r\n"

    def _framed(self, body: bytes, is_last: bool) -> bytes:
        if self._is_bodiless:
            return b""
        if self._is_chunked:
            data = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            return data + b"0\r\n\r\n" if is_last else data
        if self._left is not None:
            self._left -= len(body)
            if self._left < 0 or (is_last and self._left):
                raise RuntimeError("the response is not as long as its content-length says.")
        return body
