"""An HTTP/1.1 connection: the client's bytes become requests of the ASGI application, in order.

Only the parser (llhttp, strict) decides where a request ends. Bytes reach it unchanged, and where they are cut does not matter to it.

The states of a connection:
- *reading*: no request waits for its response.
- *busy*: `_requests` holds the request that is being answered and those that were parsed together with it (pipelining). Later bytes
  stay in `_unread`, and past a limit the connection is not read.
- *ending* (`_is_ending`): nothing is parsed any more, what arrives is discarded. The requests that are complete are answered, then
  `_refusal` is sent if the parser found a mistake.
- *draining* (`_is_draining`): the last response is written and our sending side is closed. The connection stays open for a while until the
  client closes it: one that is closed with unread bytes is reset, and the client may lose the response.

A response that starts before its request's body has arrived ends the connection.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import httptools
import uvicorn

from ..dialects import DIALECTS
from ..errors import BadRequest, quote
from ..ids import new_id
from .connections import Connections
from .http_request import HttpRequest, Scope, closing_response
from .websocket import WebSocketConnection

_ASGI = {"version": "3.0", "spec_version": "2.3"}
_PIECE = 1024  # bytes that the parser gets at once outside of a body, so that it finds only a few requests in them
_MAX_UNREAD = 64 << 10
_MAX_HELD = 64 << 10  # bytes of a body that the application has not taken
_MAX_DISCARDED = 128 << 20
_DRAIN_SECONDS = 30.0
_SHUTDOWN_DRAIN_SECONDS = 1.0
_STALL_SECONDS = 300.0  # a client that reads nothing for so long is disconnected
_log = logging.getLogger("toolwire.server")


class Protocol(asyncio.Protocol):
    """deadline and is_idle are read by Connections, is_leaving and is_congested by requests."""

    transport: asyncio.Transport
    write: Callable[[bytes], None]

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: Connections,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._app: Any = config.loaded_app
        self._connections = server_state
        self._limits = server_state.limits
        self._max_head = (
            self._limits.max_head_kb << 10
        ) + _PIECE  # the piece that ends a head may hold other bytes too
        self.loop = _loop or asyncio.get_running_loop()
        self._parser: Any = httptools.HttpRequestParser(self)
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._is_in_head = False
        self._head_size = 0  # bytes since the last request, or since the last piece of a body of unknown length
        self._body_left = 0  # bytes that are missing from a body with a content-length
        self._requests: deque[HttpRequest] = deque()
        self._unread = b""
        self._position = 0  # of the parser in _unread
        self._is_paused = False
        self._is_ending = False
        self._is_draining = False
        self._discarded = 0
        self._refusal: BadRequest | None = None
        self._unsent = 0  # bytes that the client had not read when the deadline passed
        self._can_write = asyncio.Event()
        self.is_leaving = False
        self.is_congested = False
        self.deadline = math.inf

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment] # that of uvloop only looks like one
        self.write = self.transport.write
        self._client = _address(transport.get_extra_info("peername"))
        self._server = _address(transport.get_extra_info("sockname"))
        self.deadline = self._connections.now() + self._limits.idle_seconds
        if not self._connections.admit(self) and not self.transport.is_closing():
            self._write_last(_crowded(self._connections.most))

    def data_received(self, data: bytes) -> None:
        if self._is_ending:
            self._discard(len(data))
            return
        self._unread = self._unread[self._position :] + data if self._unread else data
        self._position = 0
        self._parse()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.connections.discard(self)
        self._is_ending = True
        for request in self._requests:
            request.disconnect()
        self._can_write.set()
        self._parser = None  # it holds a reference to us

    def pause_writing(self) -> None:
        self.is_congested = True
        self._can_write.clear()
        self._unsent = 0
        self.deadline = self._connections.now() + _STALL_SECONDS

    def resume_writing(self) -> None:
        self.is_congested = False
        self._can_write.set()
        self._set_deadline()

    def shutdown(self) -> None:
        """The server stops: requests that are being answered are finished, others are not begun."""
        self.is_leaving = True
        if not self._requests:
            self.transport.close()

    def expire(self, now: float) -> None:
        """The deadline has passed."""
        unsent = self.transport.get_write_buffer_size()
        if unsent and unsent != self._unsent:  # the client is slow, but it reads
            self._unsent, self.deadline = unsent, now + _STALL_SECONDS
        elif unsent or self._is_draining:
            self.transport.abort()
        elif self._is_in_head:
            self._refuse(_too_slow(self._limits.head_seconds))
        else:
            self.transport.close()

    @property
    def is_idle(self) -> bool:
        return not (self._requests or self._is_ending or self.transport.is_closing())

    async def writable(self) -> None:
        await self._can_write.wait()

    def body_taken(self) -> None:
        if self._is_paused:
            self._regulate()

    def answered(self, request: HttpRequest) -> None:
        self._requests.popleft()
        if not request.is_persistent or self.is_leaving:
            self._finish(is_clean=request.is_complete)
        elif self._requests:
            self._start(self._requests[0])
            self._parse()
        elif self._refusal is not None:
            self._send_refusal(self._refusal)
        else:
            self._set_deadline()
            if self._unread or self._is_paused:
                self._parse()

    def on_message_begin(self) -> None:
        self._url = b""
        self._headers = []
        self._is_in_head = True
        if not self._requests:
            self._set_deadline()

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        if self._is_ending or self._parser.should_upgrade():  # for an upgrade the parser stops after this
            return
        self._is_in_head = False
        self._head_size = 0
        headers, self._headers = self._headers, []  # the fields of a trailer do not belong to them
        try:
            self._begin(headers)
        except BadRequest as error:
            self._refuse(error)

    def on_body(self, body: bytes) -> None:
        if not self._is_ending:
            self._head_size = 0
            self._body_left = max(0, self._body_left - len(body))
            self._requests[-1].add_body(body)

    def on_message_complete(self) -> None:
        if not self._is_ending and not self._parser.should_upgrade():
            request = self._requests[-1]
            request.complete()
            self._is_ending = not request.is_persistent

    def _parse(self) -> None:
        """Feeds the parser until a request waits behind the one that is being answered."""
        try:
            while self._position < len(self._unread) and len(self._requests) < 2 and not self._is_ending:
                start = self._position
                self._position = min(len(self._unread), start + (self._body_left or _PIECE))
                self._head_size += 0 if self._body_left else self._position - start
                if self._head_size > self._max_head:
                    raise _too_large(self._limits.max_head_kb)
                self._feed(self._unread[start : self._position])
        except BadRequest as error:
            self._refuse(error)
        if self._is_ending:
            self._end_reading()
        elif self._position == len(self._unread):
            self._unread, self._position = b"", 0
        self._regulate()

    def _feed(self, data: bytes) -> None:
        """Raises BadRequest."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as stop:
            if not self._is_ending:
                self._position -= len(data) - stop.args[0]
                self._consider_upgrade()
        except httptools.HttpParserError as fault:
            if isinstance(fault, httptools.HttpParserCallbackError):
                _log.error("a request could not be read", exc_info=fault.__context__)
            if not self._is_ending:  # else it is about bytes that follow the last request
                raise BadRequest(f"found what is no HTTP/1.1 request: {fault}.") from None

    def _regulate(self) -> None:
        """Reads no more than is needed. While little is unread the connection is read although nothing is parsed: that is how
        a client that disconnects is noticed."""
        is_full = len(self._unread) - self._position > _MAX_UNREAD
        is_full = is_full or bool(self._requests and self._requests[-1].held > _MAX_HELD)
        if is_full != self._is_paused and not self.transport.is_closing():
            self._is_paused = is_full
            (self.transport.pause_reading if is_full else self.transport.resume_reading)()

    def _set_deadline(self) -> None:
        """Of a connection that has nothing to answer: it is idle, or a head is on its way."""
        if self._requests:
            self.deadline = math.inf
        else:
            seconds = self._limits.head_seconds if self._is_in_head else self._limits.idle_seconds
            self.deadline = self._connections.now() + seconds

    def _begin(self, headers: list[tuple[bytes, bytes]]) -> None:
        """Raises BadRequest."""
        by_name = dict(headers)
        if len(headers) > self._limits.max_headers:
            raise _too_many(self._limits.max_headers)
        if len(by_name) != len(headers) and sum(name == b"host" for name, _ in headers) > 1:
            raise BadRequest("found several Host headers; expected one.")
        coding = by_name.get(b"transfer-encoding", b"chunked")
        if coding.lower() != b"chunked":
            raise BadRequest(f"found the transfer coding {quote(coding.decode('latin-1'))}; expected chunked.")
        scope = self._scope(headers)
        is_current = scope["http_version"] == "1.1"
        request = HttpRequest(
            self,
            scope,
            is_persistent=is_current and self._parser.should_keep_alive(),
            wants_continue=is_current and by_name.get(b"expect", b"").lower() == b"100-continue",
        )
        self._body_left = int(by_name.get(b"content-length", 0))
        self._requests.append(request)
        if len(self._requests) == 1:
            self._start(request)

    def _scope(self, headers: list[tuple[bytes, bytes]]) -> Scope:
        """Raises BadRequest."""
        version = self._parser.get_http_version()
        if version not in ("1.1", "1.0"):
            raise BadRequest(f"found HTTP/{version}; expected HTTP/1.1.", status=505, code="wrong_version")
        raw_path, _, query = self._url.partition(b"?")
        if raw_path[:1] != b"/":
            try:
                parsed = httptools.parse_url(self._url)
            except httptools.HttpParserInvalidURLError:
                raise BadRequest("found a request target that is no path and no URL.") from None
            raw_path, query = parsed.path or b"/", parsed.query or b""
        path = raw_path.decode("ascii", "replace")
        return {
            "type": "http",
            "asgi": _ASGI,
            "http_version": version,
            "method": self._parser.get_method().decode("ascii"),
            "scheme": "http",
            "path": unquote(path) if "%" in path else path,
            "raw_path": raw_path,
            "query_string": query,
            "root_path": "",
            "headers": headers,
            "client": self._client,
            "server": self._server,
        }

    def _start(self, request: HttpRequest) -> None:
        self.deadline = math.inf
        self._connections.tasks.add(self.loop.create_task(self._run(request)))

    async def _run(self, request: HttpRequest) -> None:
        """A task. It cleans up after itself, because a callback at its end would cost another turn of the loop."""
        try:
            await self._app(request.scope, request, request.send)
        except Exception as fault:
            _log.error("a request ended in an error", exc_info=fault)
        finally:
            self._connections.tasks.discard(asyncio.current_task(self.loop))
            if not (request.is_answered or request.is_gone):
                self.transport.abort()

    def _consider_upgrade(self) -> None:
        """The client offers another protocol, and the parser has stopped after the head without a look at the body.

        An offer may be ignored. Java's own client offers HTTP/2 with each request; a new parser then reads the same head without
        the offer, and goes on with the body. Raises BadRequest.
        """
        method = self._parser.get_method()
        if method == b"CONNECT":
            raise BadRequest("found CONNECT; this is no proxy.", status=405, code="method_not_allowed")
        if method == b"GET" and (longest := self._max_message()):
            self._begin_websocket(longest)
        else:
            lines = [b"%b %b HTTP/%b" % (method, self._url, self._parser.get_http_version().encode())]
            lines += [b"%b: %b" % field for field in self._headers if field[0] != b"upgrade"]
            self._parser = httptools.HttpRequestParser(self)
            self._feed(b"\r\n".join([*lines, b"", b""]))

    def _max_message(self) -> int:
        """Of the WebSocket that the client wants; 0 if it wants none, or the path has none."""
        headers = dict(self._headers)
        has_body = b"transfer-encoding" in headers or int(headers.get(b"content-length", 0)) > 0
        if headers.get(b"upgrade", b"").lower() != b"websocket" or has_body:
            return 0
        path = self._url.partition(b"?")[0].decode("latin-1")
        socket = getattr(self._app, "sockets", {}).get(path)
        return socket.max_message if socket is not None else 0

    def _begin_websocket(self, longest: int) -> None:
        """From here on the connection belongs to a WebSocket, and this protocol gets no more of its bytes. Raises BadRequest."""
        if self._requests:
            raise BadRequest("found an upgrade behind a request that is being answered; expected it to wait.")
        scope = self._scope(self._headers)
        self._connections.connections.discard(self)
        self._is_ending, self._parser = True, None
        socket = WebSocketConnection(self._app, scope, self._connections.connections, longest)
        socket.connection_made(self.transport)
        self.transport.set_protocol(socket)
        task = self.loop.create_task(socket.run())
        task.add_done_callback(self._connections.tasks.discard)
        self._connections.tasks.add(task)
        if self._position < len(self._unread):
            socket.data_received(self._unread[self._position :])

    def _refuse(self, error: BadRequest) -> None:
        """What follows cannot be read. The requests before it are answered first."""
        self._end_reading()
        last = self._requests[-1] if self._requests else None
        if last is not None and not last.is_complete:
            if last.is_started:  # its response ends the connection
                return
            self._requests.pop()
            last.disconnect()
        if self._requests:
            self._refusal = error.with_traceback(None)  # its frames hold a reference to us
            self._refusal.__context__ = None
        else:
            self._send_refusal(error)

    def _send_refusal(self, error: BadRequest) -> None:
        client = self._client[0] if self._client else "a client"
        _log.warning("refused a request of %s: %d %s", client, error.status, error.sentence())
        self._write_last(error)

    def _write_last(self, error: BadRequest) -> None:
        """Before there is a request whose dialect is known: errors are those of chat."""
        request_id = new_id("req_")
        body = DIALECTS["chat"].encode_error(error, request_id)
        headers = [(b"content-type", b"application/json"), (b"x-request-id", request_id.encode())]
        self.write(closing_response(error.status, body, headers))
        self._drain()

    def _finish(self, *, is_clean: bool) -> None:
        """The last response is written. is_clean: the client has sent nothing that was not read."""
        is_clean = is_clean and not (self._unread or self._discarded)
        self._requests.clear()
        if is_clean:
            self._end_reading()
            self.deadline = self._connections.now() + _STALL_SECONDS
            self.transport.close()
        else:
            self._drain()

    def _drain(self) -> None:
        self._end_reading()
        self._is_draining = True
        seconds = _SHUTDOWN_DRAIN_SECONDS if self.is_leaving else _DRAIN_SECONDS
        self.deadline = self._connections.now() + seconds
        if not self.transport.is_closing():
            self.transport.write_eof()
            self._regulate()

    def _end_reading(self) -> None:
        self._is_ending = True
        self._discarded += len(self._unread) - self._position
        self._unread, self._position = b"", 0

    def _discard(self, size: int) -> None:
        self._discarded += size
        if self._discarded > _MAX_DISCARDED:
            self.transport.abort()


def _too_large(kilobytes: int) -> BadRequest:
    return BadRequest(
        f"the head of the request is larger than {kilobytes} KB.",
        status=431,
        code="head_too_large",
        hint="[server] max_head_kb sets the limit.",
    )


def _too_many(count: int) -> BadRequest:
    return BadRequest(
        f"the request has more than {count} headers.",
        status=431,
        code="head_too_large",
        hint="[server] max_headers sets the limit.",
    )


def _too_slow(seconds: float) -> BadRequest:
    return BadRequest(
        f"the head of the request did not arrive within {seconds:g} seconds.", status=408, code="request_timeout"
    )


def _crowded(count: int) -> BadRequest:
    return BadRequest(
        f"{count} connections are open, the most this server takes at once.",
        status=503,
        code="too_many_connections",
        hint="Try again shortly; [server] max_connections sets the limit.",
    )


def _address(found: Any) -> tuple[str, int] | None:
    return (found[0], found[1]) if isinstance(found, tuple) else None
