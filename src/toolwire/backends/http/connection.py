"""One HTTP/1.1 connection to a back end: bytes become replies, under limits, timeouts and flow control.

A connection serves one exchange at a time. A Response refers to its connection only until its last byte is received, so abort() can never
hit the next exchange. The cost of a reply is bounded: the head, trailers and chunk extensions by max_header_bytes, unread body by pausing the
socket, a compressed body by inflating it as it is read.
"""

from __future__ import annotations

import asyncio
import socket
import zlib
from bisect import bisect_left
from collections.abc import Callable
from itertools import accumulate
from typing import Literal, TypeAlias

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser
from msgspec import Struct

from ...errors import UpstreamError, quote
from ...telemetry.flow_draft import WireDraft
from .inflate import CODINGS, Inflater

Kind: TypeAlias = Literal[
    "refused", "dns", "tls", "connect_timeout", "first_byte_timeout", "idle_timeout", "cut", "protocol"
]

_HIGH_WATER = 256 * 1024
_SMALL_BODY = 64 * 1024
_ONE_READ = 32 * 1024
# An idle connection that the server closed is noticed within a round trip. A later close may be a server or balancer
# that gives up on work it has begun, and sending the request again would do that work twice.
_STALE_SECONDS = 2.0


class Timeouts(Struct, frozen=True, kw_only=True):
    """Seconds: to connect, until the head of the reply is complete, between two pieces of its body."""

    connect: float = 10.0
    first_byte: float = 600.0
    idle: float = 300.0


_MEANING: dict[Kind, tuple[int, str]] = {
    "refused": (502, "upstream_unreachable"),
    "dns": (502, "upstream_unreachable"),
    "tls": (502, "upstream_unreachable"),
    "connect_timeout": (504, "upstream_timeout"),
    "first_byte_timeout": (504, "upstream_timeout"),
    "idle_timeout": (504, "upstream_timeout"),
    "cut": (502, "upstream_cut"),
    "protocol": (502, "upstream_garbage"),
}


class TransportError(UpstreamError):
    """sent: a byte of the request may have reached the server, so a retry could do the work twice."""

    def __init__(self, kind: Kind, message: str, *, sent: bool) -> None:
        status, code = _MEANING[kind]
        super().__init__(message, status=status, code=code, retryable=not sent)
        self.kind = kind
        self.sent = sent


class StaleConnection(TransportError):
    """The server had closed an idle connection before the request arrived; it is safe to send it on a new one."""


class Outgoing(Struct, frozen=True):
    """A request as bytes; the method decides whether the reply has a body."""

    method: str
    head: bytes
    body: bytes = b""


class Response:
    """A reply whose head is complete. The caller reads it to its end or aborts it; one reader at a time."""

    def __init__(self, connection: HttpConnection, method: str, timeouts: Timeouts) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.wire: WireDraft | None = None  # where the exchange is recorded, if it is
        self._connection: HttpConnection | None = connection
        self._loop = connection.loop
        self._peer = connection.peer
        self._max_header_bytes = connection.max_header_bytes
        self._method = method
        self._timeouts = timeouts
        self._chunks: list[bytes] = []
        self.on_body = (
            self._chunks.append
        )  # for the parser, which calls it for each chunk: a method would cost 0.1 us more
        self._buffered = self._header_bytes = self._quiet_bytes = 0
        self._error: TransportError | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._inflater: Inflater | None = None
        self._has_head = self._is_interim = self.is_complete = False
        self._has_surplus = self._is_kept_alive = self._is_until_close = False
        # A new parser for each reply has no state of the last one, and a reply to HEAD, which it knows nothing of, can be ended here.
        self._parser: HttpResponseParser | None = HttpResponseParser(self)
        self.started = self._last_activity = self._loop.time()
        connection.check_after(min(timeouts.first_byte, timeouts.idle), self.started)

    async def read(self) -> bytes:
        """What was received since the last read, waiting if that is nothing; b"" at the regular end."""
        if self._inflater is not None:
            return await self._read_inflated(self._inflater)
        while not self._chunks:
            if self._error is not None:
                raise self._error.fresh()
            if self.is_complete:
                return b""
            await self._wait()
        return self._take()

    async def read_all(self, limit: int) -> bytes:
        """The whole body; past the limit the connection is closed and the error is of kind "protocol"."""
        pieces: list[bytes] = []
        size = 0
        while piece := await self.read():
            size += len(piece)
            if size > limit:
                self.abort()
                raise self._failure("protocol", f"sent more than the {limit} bytes that are accepted here.")
            pieces.append(piece)
        return b"".join(pieces)

    def abort(self) -> None:
        """Close the connection at once, unless the whole reply was received; what was not read is dropped."""
        connection = self._connection
        self._chunks.clear()
        self._inflater = None
        self._fail(self._failure("cut", "was closed: the reply was aborted on this side."))
        if connection is not None:
            connection.abort()

    def on_message_begin(self) -> None:
        if self.is_complete:
            self._has_surplus = True

    def on_header(self, name: bytes, value: bytes) -> None:
        self._header_bytes += len(name) + len(value) + 4
        if self._header_bytes > self._max_header_bytes:
            raise HttpParserError(f"headers of more than {self._max_header_bytes} bytes")
        if self._has_head:
            return
        key = name.decode("latin-1").lower()
        text = value.decode("latin-1")
        headers = self.headers
        headers[key] = f"{headers[key]}, {text}" if key in headers else text

    def on_headers_complete(self) -> None:
        assert self._parser is not None
        status = self._parser.get_status_code()
        if status == 101:
            raise HttpParserError("a change of protocol that was not requested")
        if status < 200:
            self.headers.clear()
            self._is_interim = True
            return
        self.status = status
        if self._method == "HEAD" or (self._method == "CONNECT" and status < 300):
            self.is_complete = True
            self._is_kept_alive = self._method == "CONNECT" or self._parser.should_keep_alive()
        elif status not in (204, 304):
            self._prepare_body()
        self._has_head = True
        self._wake()

    def on_message_complete(self) -> None:
        if self._is_interim:
            self._is_interim = False
            return
        if not self.is_complete:
            assert self._parser is not None
            self.is_complete = True
            self._is_kept_alive = self._parser.should_keep_alive()

    def _prepare_body(self) -> None:
        transfer = self.headers.get("transfer-encoding", "").lower()
        if transfer not in ("", "chunked", "identity"):
            raise HttpParserError(f"the transfer-encoding {quote(transfer)} that was not requested")
        self._is_until_close = transfer != "chunked" and "content-length" not in self.headers
        coding = self.headers.get("content-encoding", "identity").strip().lower()
        if coding in ("", "identity"):
            return
        if coding not in CODINGS:
            raise HttpParserError(f"the content-encoding {quote(coding)} that was not requested")
        self._inflater = Inflater(coding)
        # These headers describe the bytes on the wire, not those that read() returns.
        del self.headers["content-encoding"]
        self.headers.pop("content-length", None)

    async def _read_inflated(self, inflater: Inflater) -> bytes:
        try:
            while not (data := inflater.take()):
                if not await self._has_more():
                    inflater.finish()
                    return b""
                inflater.feed(self._take())
            if self.wire is not None:
                self.wire.receive(data)
            return data
        except zlib.error as error:
            self.abort()
            raise self._failure("protocol", f"sent a body that does not decompress: {error}.") from None

    async def _has_more(self) -> bool:
        """Wait until some of the body is here; False at its regular end."""
        while not self._chunks:
            if self._error is not None:
                raise self._error.fresh()
            if self.is_complete:
                return False
            await self._wait()
        return True

    def _take(self) -> bytes:
        """What was received, but of much only a part: the reader makes many small objects of it."""
        chunks = self._chunks
        if len(chunks) == 1:
            data = chunks.pop()
        elif self._buffered <= _ONE_READ:
            data = b"".join(chunks)
            chunks.clear()
        else:
            count = bisect_left(list(accumulate(map(len, chunks))), _ONE_READ) + 1
            data = b"".join(chunks[:count])
            del chunks[:count]
        self._buffered -= len(data)
        if self.wire is not None and self._inflater is None:
            self.wire.receive(data)
        connection = self._connection
        if connection is not None and connection.is_paused and not chunks:
            self._last_activity = self._loop.time()
            connection.resume()
        return data

    async def _wait(self) -> None:
        if self._waiter is not None:
            raise RuntimeError("Two tasks read the same response; expected one reader at a time.")
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        except asyncio.CancelledError:
            self.abort()
            raise
        finally:
            self._waiter = None

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def check_time(self) -> None:
        """Fails if it has waited for too long, else sets when to check again.

        Receiving bytes sets no timer. The time until the next check is never longer than timeouts.idle, so it also covers the change from
        waiting for the head to waiting for the body.
        """
        connection = self._connection
        if connection is None:
            return
        idle = self._timeouts.idle
        now = self._loop.time()
        if not self._has_head:
            remaining = self.started + self._timeouts.first_byte - now
        else:
            remaining = idle if connection.is_paused else self._last_activity + idle - now
        if remaining > 0:
            connection.check_after(min(remaining, idle), now)
            return
        self._fail(self._timeout())
        connection.abort()

    def _timeout(self) -> TransportError:
        if self._has_head:
            return self._failure("idle_timeout", f"sent nothing for {self._timeouts.idle:g} s in mid-reply.")
        return self._failure("first_byte_timeout", f"did not answer in {self._timeouts.first_byte:g} s.")

    def _end_of_connection(self, is_reused: bool, cause: Exception | None) -> None:
        if self._has_head and self._is_until_close and cause is None:
            self.is_complete = True
            self._detach()
            self._wake()
        elif self._has_head:
            self._fail(self._failure("cut", "closed the connection in the middle of its reply."))
        else:
            is_stale = self._quiet_bytes == 0 and self._loop.time() - self.started < _STALE_SECONDS
            make = StaleConnection if is_reused and is_stale else TransportError
            message = f"{self._peer} closed the connection before it answered."
            self._fail(make("cut", message, sent=True))

    def _failure(self, kind: Kind, problem: str) -> TransportError:
        return TransportError(kind, f"{self._peer} {problem}", sent=True)

    def _fail(self, error: TransportError) -> None:
        if self._error is None:
            self._error = error
            if self.wire is not None:
                self.wire.fail(error)
        self._detach()
        self._wake()

    def _detach(self) -> None:
        """Drop connection and parser. Parser and response refer to each other: this frees them without the garbage collector."""
        self._connection = self._parser = None


class HttpConnection(asyncio.Protocol):
    """on_idle is called with the connection when it is free for another exchange, on_lost when it is closed."""

    def __init__(
        self,
        peer: str,
        *,
        max_header_bytes: int = 65536,
        on_idle: Callable[[HttpConnection], None] | None = None,
        on_lost: Callable[[HttpConnection], None] | None = None,
    ) -> None:
        self.peer = peer
        self.max_header_bytes = max_header_bytes
        self.loop = asyncio.get_running_loop()
        self.closed: asyncio.Future[None] = self.loop.create_future()
        self.transport: asyncio.Transport | None = None
        self.is_open = False
        self.is_paused = False
        self.idle_since = 0.0
        self._is_reused = False
        self._response: Response | None = None
        self._timer: asyncio.TimerHandle | None = None  # one for all exchanges: most end long before it fires
        self._checked_at = 0.0  # when it fires
        self.on_idle = on_idle
        self._on_lost = on_lost

    async def exchange(self, outgoing: Outgoing, timeouts: Timeouts) -> Response:
        """Send the request and wait for the head of its reply; cancelling closes the connection."""
        if self._response is not None or self.transport is None:
            raise RuntimeError("This connection is not free; expected one exchange at a time.")
        response = self._response = Response(self, outgoing.method, timeouts)
        if len(outgoing.body) < _SMALL_BODY:
            self.transport.write(outgoing.head + outgoing.body)
        else:
            self.transport.write(outgoing.head)
            self.transport.write(outgoing.body)
        while not response._has_head:
            if response._error is not None:
                raise response._error.fresh()
            await response._wait()
        return response

    def abort(self) -> None:
        """Close at once, without a TLS shutdown."""
        self.is_open = False
        response, self._response = self._response, None
        if response is not None:
            response._fail(response._failure("cut", "was closed on this side."))
        if self.transport is not None:
            self.transport.abort()

    def check_after(self, seconds: float, now: float) -> None:
        """Have the response check its time after so many seconds, or earlier."""
        if self._timer is not None:
            if self._checked_at <= now + seconds:
                return
            self._timer.cancel()
        self._checked_at = now + seconds
        self._timer = self.loop.call_later(seconds, self._check_time)

    def _check_time(self) -> None:
        self._timer = None
        if self._response is not None:
            self._response.check_time()

    def resume(self) -> None:
        self.is_paused = False
        if self.transport is not None:
            self.transport.resume_reading()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # streams get no other
        self.transport = transport
        self.is_open = True
        peer_socket = transport.get_extra_info("socket")
        if peer_socket is not None and peer_socket.family in (socket.AF_INET, socket.AF_INET6):
            peer_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            peer_socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def data_received(self, data: bytes) -> None:
        response = self._response
        if response is None or response._parser is None:
            # Unrequested bytes: an error before closing, such as 408, or a forged reply to the next request.
            self.abort()
            return
        response._last_activity = self.loop.time()
        chunks = response._chunks
        known = len(chunks)
        try:
            response._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            self._refuse(response, error)
        has_body = len(chunks) > known
        if has_body:
            response._buffered += sum(map(len, chunks[known:]))
        if response.is_complete:
            self._finish(response)
        elif response._error is not None:
            return
        elif has_body:
            response._quiet_bytes = 0
            response._wake()
            if response._buffered > _HIGH_WATER and not self.is_paused:
                self._pause()
        else:
            self._count_quiet(response, len(data))

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        response, self._response = self._response, None
        if response is not None:
            response._end_of_connection(self._is_reused, exc)
        if self._on_lost is not None:
            self._on_lost(self)
        if not self.closed.done():
            self.closed.set_result(None)

    def _pause(self) -> None:
        assert self.transport is not None
        self.is_paused = True
        self.transport.pause_reading()

    def _count_quiet(self, response: Response, size: int) -> None:
        """The parser has no limit for bytes that are not body: head, trailers, chunk extensions."""
        response._quiet_bytes += size
        if response._quiet_bytes > self.max_header_bytes:
            self._refuse(response, HttpParserError(f"headers of more than {self.max_header_bytes} bytes"))

    def _refuse(self, response: Response, error: Exception) -> None:
        response._has_surplus = True
        if not response.is_complete and response._error is None:
            reason = error.__context__ or error
            response._fail(response._failure("protocol", f"did not answer in plain HTTP/1.1; found: {reason}."))
            self.abort()

    def _finish(self, response: Response) -> None:
        """The last byte was received: detach the response, and offer the connection for the next exchange."""
        if response._method in ("HEAD", "CONNECT") and response._chunks:
            response._chunks.clear()
            response._has_surplus = True
        is_clean = response._is_kept_alive and not response._has_surplus
        response._detach()
        response._wake()
        self._response = None
        if self.is_paused:
            self.resume()
        assert self.transport is not None
        if not is_clean or not self.is_open or self.transport.get_write_buffer_size():
            self.abort()
            return
        self._is_reused = True
        self.idle_since = self.loop.time()
        if self.on_idle is not None:
            self.on_idle(self)
