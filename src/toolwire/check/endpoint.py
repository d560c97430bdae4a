"""Requests to the endpoint under test: everything that was received, and how the connection ended."""

from __future__ import annotations

import asyncio
import math
import ssl
import time
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from httptools import HttpParserError, HttpResponseParser
from msgspec import Struct

from ..backends.http.kinds import DIALECT_OF, base_of
from ..backends.http.transport import Timeouts, Transport, TransportError
from ..config.file import BackendConfig
from ..dialects import DIALECTS
from ..profiles import Profile, profile_for
from ..types import Request

_MAX_BYTES = 32 << 20
_BUSY = (429, 503, 529)
_MAX_TRIES = 3
_MAX_WAIT = 20.0  # seconds before a request is sent again
_HASTE = 6  # after a stall, other requests get this part of the time
_MAX_STALLS = 3  # after these the server gets no requests
_CODES = {
    "refused": "http.unreachable",
    "dns": "http.unreachable",
    "tls": "http.unreachable",
    "connect_timeout": "http.unreachable",
    "first_byte_timeout": "http.stalled",
    "idle_timeout": "http.stalled",
    "cut": "http.cut",
    "protocol": "http.invalid",
}


class HttpAttempt(Struct, kw_only=True):
    """One request. code: of the deviation if the exchange failed, "" if an answer was received in full. reads: pieces of the body.

    retry_after: seconds, -1 if the server names none."""

    status: int = 0
    content_type: str = ""
    retry_after: float = -1.0
    body: bytes = b""
    code: str = ""
    detail: str = ""
    reads: int = 0
    seconds: float = 0.0

    @property
    def is_refused(self) -> bool:
        return not self.code and self.status >= 300


class CheckedEndpoint:
    """The configuration of a back end names the address and the key."""

    def __init__(
        self,
        config: BackendConfig,
        model: str,
        transport: Transport,
        seconds: float,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.config = config
        self.model = model
        self.dialect = DIALECT_OF[config.kind]
        self.profile: Profile = profile_for(config.kind, config.base_url, config.profile)
        self.requests = 0
        self._transport = transport
        self._seconds = seconds
        self._sleep = sleep
        self._stalls = 0
        self._stall = ""  # code of the last one
        self._wire = DIALECTS[self.dialect]
        self._base = base_of(config.base_url, self._wire.path)
        key = self._wire.headers(self.profile, config.key.reveal(), {})
        self._headers = {"content-type": "application/json", "user-agent": "toolwire-check", **key, **config.headers}

    def encode(self, request: Request) -> bytes:
        return self._wire.encode_request(request, self.profile).body

    async def ask(self, request: Request) -> HttpAttempt:
        """Sends the request in the endpoint's dialect."""
        encoded = self._wire.encode_request(request, self.profile)
        return await self.post(encoded.body, path=encoded.path, is_stream=request.stream)

    async def post(self, body: bytes, *, path: str = "", is_stream: bool = False, reads: int = 0) -> HttpAttempt:
        """Never raises for what the server does. reads: after this many pieces of the body the client disconnects, 0: never.

        A server that is busy and says for how long is asked again.
        """
        for _ in range(_MAX_TRIES - 1):
            attempt = await self._attempt(body, path, is_stream, reads)
            if attempt.status not in _BUSY or not 0 <= attempt.retry_after <= _MAX_WAIT:
                return attempt
            await self._sleep(attempt.retry_after)
        return await self._attempt(body, path, is_stream, reads)

    async def _attempt(self, body: bytes, path: str, is_stream: bool, reads: int) -> HttpAttempt:
        if self._stalls == _MAX_STALLS:
            return HttpAttempt(code=self._stall, detail=f"not sent, because {_MAX_STALLS} requests stalled")
        attempt = HttpAttempt()
        started = time.monotonic()
        self.requests += 1
        seconds = self._seconds / _HASTE if self._stalls else self._seconds
        timeouts = Timeouts(connect=min(10.0, seconds), first_byte=seconds, idle=seconds)
        try:
            async with asyncio.timeout(seconds * 4):
                await self._exchange(attempt, body, path or self._path(is_stream), is_stream, reads, timeouts)
        except TransportError as error:
            attempt.code, attempt.detail = _CODES[error.kind], error.sentence()
        except TimeoutError:
            attempt.code, attempt.detail = "stream.endless", f"no end after {seconds * 4:g} seconds"
        if attempt.code in ("http.stalled", "stream.endless"):
            self._stalls += 1
            self._stall = attempt.code
        attempt.seconds = time.monotonic() - started
        return attempt

    async def closes_after_answer(self, request: Request) -> str:
        """The deviation of a server that closes the connection after its answer, "" if it stays open."""
        encoded = self._wire.encode_request(request, self.profile)
        target = urlsplit(self._base + encoded.path)
        is_tls = target.scheme == "https"
        port = target.port or (443 if is_tls else 80)
        self.requests += 1
        try:
            async with asyncio.timeout(self._seconds):
                secure = ssl.create_default_context() if is_tls else None
                reader, writer = await asyncio.open_connection(target.hostname, port, ssl=secure)
                try:
                    path = f"{target.path}?{target.query}" if target.query else target.path
                    writer.write(
                        _head(path, target.netloc.rpartition("@")[2], self._headers, len(encoded.body)) + encoded.body
                    )
                    return await _end_of(reader)
                finally:
                    writer.close()
        except (OSError, TimeoutError, HttpParserError):
            return ""  # other requests report this

    def _path(self, is_stream: bool) -> str:
        request = Request(model=self.model, messages=(), stream=is_stream)
        return self._wire.path_of_request(request) if self._wire.path_of_request is not None else self._wire.path

    async def _exchange(
        self, attempt: HttpAttempt, body: bytes, path: str, is_stream: bool, reads: int, timeouts: Timeouts
    ) -> None:
        headers = {**self._headers, "accept": "text/event-stream" if is_stream else "application/json"}
        response = await self._transport.send("POST", self._base + path, headers, body, timeouts=timeouts)
        attempt.status = response.status
        attempt.retry_after = _seconds_of(response.headers.get("retry-after", ""))
        attempt.content_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        pieces: list[bytes] = []
        size = 0
        try:
            while piece := await response.read():
                pieces.append(piece)
                attempt.reads += 1
                size += len(piece)
                if attempt.reads == reads:
                    break
                if size > _MAX_BYTES:
                    attempt.code, attempt.detail = "stream.endless", f"more than {_MAX_BYTES >> 20} MB"
                    break
        finally:
            attempt.body = b"".join(pieces)
            response.abort()


def _seconds_of(text: str) -> float:
    """-1 for a date and for anything else that is no number of seconds."""
    try:
        seconds = float(text)
    except ValueError:
        return -1.0
    return seconds if math.isfinite(seconds) else -1.0


class _Answer:
    """Collects what httptools parses."""

    def __init__(self) -> None:
        self.is_complete = False
        self.closes = False

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"connection" and b"close" in value.lower():
            self.closes = True

    def on_message_complete(self) -> None:
        self.is_complete = True


async def _end_of(reader: asyncio.StreamReader) -> str:
    answer = _Answer()
    parser = HttpResponseParser(answer)
    while not answer.is_complete:
        piece = await reader.read(65536)
        if not piece:
            return ""  # cut, or a body without length that ends with the connection
        parser.feed_data(piece)
    if answer.closes:
        return "http.closes"
    if parser.get_http_version() == "1.0":
        return "http.closes"
    try:
        async with asyncio.timeout(0.3):
            return "http.closes_silently" if not await reader.read(1) else ""
    except TimeoutError:
        return ""


def _head(path: str, host: str, headers: dict[str, str], length: int) -> bytes:
    fields: dict[str, Any] = {"host": host, **headers, "content-length": length}
    lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()
