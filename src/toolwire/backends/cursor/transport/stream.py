"""One full-duplex HTTP/2 stream: a request whose body is sent in pieces while the reply is read.

Received data is buffered, and the stream's window opens only as it is read, so a slow reader stops the server. A reply with another
status than 200 is a refusal: it is read up to a limit and becomes the error of every reader and sender.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from h2.errors import ErrorCodes
from msgspec import Struct

from ....errors import UpstreamError, quote
from ....wire.connect import ConnectFault
from ..wire.errors import error_of, error_of_status
from .target import FOREIGN_TYPES, MAX_REFUSAL

if TYPE_CHECKING:
    from .http2 import Http2Connection

HTTP2_ONLY = 464  # a load balancer's status for a run that does not use HTTP/2

_REFUSAL_SECONDS = 2.0  # for the body of a refusal
_FINAL = frozenset({ErrorCodes.PROTOCOL_ERROR, ErrorCodes.INADEQUATE_SECURITY})
_STATUS = re.compile("[1-5][0-9][0-9]")
# gRPC status codes by number, for a proxy that uses them.
_GRPC = (
    *("ok", "canceled", "unknown", "invalid_argument", "deadline_exceeded", "not_found", "already_exists"),
    *("permission_denied", "resource_exhausted", "failed_precondition", "aborted", "out_of_range", "unimplemented"),
    *("internal", "unavailable", "data_loss", "unauthenticated"),
)

Headers = Iterable[tuple[bytes, bytes]]


class Http2Limits(Struct, frozen=True, kw_only=True):
    """Timeouts in seconds, and sizes."""

    ping: float = 10.0  # between pings
    silence: float = 30.0  # from a ping to any received byte
    stall: float = 60.0  # until there is room to send
    idle: float = 30.0  # of a connection without streams
    streams: int = 90  # per connection
    window: int = 256 * 1024  # unread bytes per stream


class Http2Stream:
    """One request and its reply; created by Http2Connection.open()."""

    def __init__(self, connection: Http2Connection, number: int) -> None:
        self.number = number
        self._connection = connection
        self._held = bytearray()
        self._credit = 0  # bytes read for which the window was not opened yet
        self._status = 0
        self._wait = ""
        self._is_ended = False
        self._error: UpstreamError | None = None
        self._has_news = asyncio.Event()  # for the reader
        self._may_write = asyncio.Event()
        self._reading, self._sending = asyncio.Lock(), asyncio.Lock()
        self._refusing: asyncio.TimerHandle | None = None

    async def send(self, data: bytes) -> None:
        """Send all of it. Raises UpstreamError. Cancelling between two pieces resets the stream."""
        async with self._sending:
            rest = memoryview(data)
            try:
                while rest:
                    room = await self._room()
                    self._connection.write(self, bytes(rest[:room]))
                    rest = rest[room:]
            except asyncio.CancelledError:
                if 0 < len(rest) < len(data):
                    self.reset()
                raise

    async def read(self) -> bytes:
        """Everything that has come, waiting for at least one byte; b"" at the end. Raises UpstreamError. Cancelling loses nothing."""
        while not self._held or self._refuses:
            if self._error is not None:
                raise self._error.fresh()
            if self._is_ended:
                return b""
            if self._reading.locked():
                raise RuntimeError("Two tasks read the same stream; expected one reader at a time.")
            self._has_news.clear()
            async with self._reading:
                await self._has_news.wait()
        data = bytes(self._held)
        self._held.clear()
        self.credit(len(data))
        return data

    @property
    def is_readable(self) -> bool:
        """read() returns at once, without an error."""
        return bool(self._held) or self._is_ended

    def reset(self) -> None:
        """Close at once; unread data is dropped."""
        self._held.clear()
        self.fail(self._connection.failure("cut", "lost the stream: it was closed on this side."))

    def credit(self, size: int) -> None:
        """Open the window in large steps."""
        self._credit += size
        if self._credit * 2 >= self._connection.limits.window and not self._is_ended and self._error is None:
            self._connection.open_window(self, self._credit)
            self._credit = 0

    def fail(self, error: UpstreamError, code: ErrorCodes | None = ErrorCodes.CANCEL) -> None:
        """code: for the reset, None if the server ended the stream. Data that came before can still be read."""
        if self._error is not None or self._is_ended:
            return
        self._error = error
        self._over(code)

    def wake_writer(self) -> None:
        self._may_write.set()

    def on_head(self, headers: Headers) -> None:
        fields = {name: value.decode("latin-1") for name, value in headers}
        status = fields.get(b":status", "")
        self._status = int(status) if _STATUS.fullmatch(status) else 502
        self._wait = fields.get(b"retry-after", "")
        kind = fields.get(b"content-type", "").lower()
        if self._refuses:
            self._refusing = self._connection.loop.call_later(_REFUSAL_SECONDS, self._refuse)
        elif kind.startswith(FOREIGN_TYPES):
            problem = f"answered with the content type {quote(kind)}; expected application/connect+proto."
            self.fail(self._connection.failure("protocol", problem))

    def on_data(self, data: bytes, padding: int) -> None:
        self._held += data
        self.credit(padding)
        if self._refuses and len(self._held) >= MAX_REFUSAL:
            self._refuse()
        elif data:
            self._has_news.set()

    def on_trailers(self, headers: Headers) -> None:
        fields = dict(headers)
        status = fields.get(b"grpc-status", b"0")
        number = int(status) if status.isdigit() else 2
        if number:
            code = _GRPC[number] if number < len(_GRPC) else "unknown"
            message = fields.get(b"grpc-message", b"").decode("utf-8", "replace")
            self.fail(error_of(ConnectFault(code, message), has_seen_output=False), None)

    def on_end(self) -> None:
        if self._refuses:
            self._refuse()
        elif self._error is None:
            self._is_ended = True
            self._over(ErrorCodes.CANCEL if self._sending.locked() else ErrorCodes.NO_ERROR)

    def on_reset(self, number: int) -> None:
        if self._refuses:
            self._refuse()
            return
        if number == ErrorCodes.HTTP_1_1_REQUIRED:
            self.fail(error_of_status(HTTP2_ONLY, b""), None)
        error = self._connection.failure("cut", f"reset the stream: {code_name(number)}.")
        error.retryable = number not in _FINAL
        self.fail(error, None)

    @property
    def _refuses(self) -> bool:
        return self._status not in (0, 200)

    def _refuse(self) -> None:
        body = bytes(self._held[:MAX_REFUSAL])
        self._held.clear()
        self.fail(error_of_status(self._status, body, {"retry-after": self._wait}))

    def _over(self, code: ErrorCodes | None) -> None:
        if self._refusing is not None:
            self._refusing.cancel()
        self._has_news.set()
        self._may_write.set()
        self._connection.forget(self, code)

    async def _room(self) -> int:
        """How many bytes can be sent now, waiting for at least one."""
        while True:
            if self._error is not None:
                raise self._error.fresh()
            if self._is_ended:
                raise self._connection.failure("cut", "has ended its reply; it accepts no more messages.")
            if room := self._connection.room(self):
                return room
            self._may_write.clear()
            try:
                async with asyncio.timeout(self._connection.limits.stall):
                    await self._may_write.wait()
            except TimeoutError:
                problem = f"accepted no data for {self._connection.limits.stall:g} s."
                self.fail(self._connection.failure("idle_timeout", problem))


def code_name(number: int) -> str:
    return ErrorCodes(number).name if number in set(ErrorCodes) else f"error {number}"
