"""Writes the response of one request: JSON, errors, preflights, and streams with heartbeats."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from ..backends.mounts import Send
from ..dialects import FrontDialect
from ..errors import BadRequest, GatewayError, InternalError, quote
from ..telemetry.loss_names import is_adapted
from ..types import Loss

HeaderList: TypeAlias = list[tuple[bytes, bytes]]
_MAX_LOSS_HEADER = 1000
_MAX_DEBUG_HEADER = 4000
_STREAM_HEADERS = [(b"cache-control", b"no-cache"), (b"x-accel-buffering", b"no")]
_UNPRINTABLE = re.compile(rb"[^\x20-\x7e]")


class WrongMethod(BadRequest):
    """405, with the methods that the path supports."""

    def __init__(self, found: str, allowed: str) -> None:
        super().__init__(f"found {quote(found)}; expected {allowed}.", status=405, code="method_not_allowed")
        self.allowed = allowed


class Reply:
    """is_started: the head of the response was sent. is_array: the client expects a JSON body as an array of one element."""

    def __init__(self, send: Send, dialect: FrontDialect, request_id: str, origin: str | None) -> None:
        self.send = send
        self.dialect = dialect
        self._request_id = request_id
        self._origin = origin
        self.is_started = False
        self.is_array = False

    async def start(self, status: int, headers: HeaderList) -> None:
        self.is_started = True
        await self.send({"type": "http.response.start", "status": status, "headers": headers})

    def headers(self) -> HeaderList:
        request_id = self._request_id.encode()
        found = [(b"x-request-id", request_id), (b"request-id", request_id)]
        if self._origin is not None:
            found += [(b"access-control-allow-origin", self._origin.encode("latin-1")), (b"vary", b"origin")]
        return found

    async def json(self, body: bytes) -> None:
        await self.whole(200, body, "application/json")

    async def error(self, error: GatewayError) -> None:
        extra: HeaderList = passed_headers(getattr(error, "headers", {}))
        if error.status == 429 and not any(name == b"retry-after" for name, _ in extra):
            extra.append((b"retry-after", b"1"))
        if isinstance(error, WrongMethod):
            extra.append((b"allow", error.allowed.encode()))
        await self.whole(error.status, self.dialect.encode_error(error, self._request_id), "application/json", extra)

    async def whole(self, status: int, body: bytes, kind: str, extra: HeaderList | None = None) -> None:
        if self.is_array and kind == "application/json":
            body = b"[" + body + b"]"
        head = [(b"content-type", kind.encode()), (b"content-length", b"%d" % len(body)), *self.headers()]
        self.is_started = True
        await self.send({"type": "http.response.start", "status": status, "headers": head + (extra or [])})
        await self.send({"type": "http.response.body", "body": body})

    async def preflight(self) -> None:
        head: HeaderList = [(b"content-length", b"0")]
        if self._origin is not None:
            head += [
                *self.headers(),
                (b"access-control-allow-methods", b"GET, POST, DELETE, OPTIONS"),
                (b"access-control-allow-headers", b"*, authorization"),
                (b"access-control-max-age", b"600"),
            ]
        await self.start(204 if self._origin else 403, head)
        await self.send({"type": "http.response.body", "body": b""})


class EventStream:
    """Sends its head with the first write or the first heartbeat, whichever comes first."""

    def __init__(self, loop: asyncio.AbstractEventLoop, reply: Reply, interval: float) -> None:
        self._reply = reply
        self._send = reply.send
        self.headers: HeaderList = []  # more of them, known when the back end has answered
        self._interval = interval
        self._loop = loop
        self._last = self._loop.time()
        self._timer = self._loop.call_later(interval, self._tick)
        self._beat: asyncio.Task[None] | None = None
        self._is_writing = False

    @property
    def is_started(self) -> bool:
        return self._reply.is_started

    async def write(self, data: bytes, *, is_last: bool = False) -> None:
        self._is_writing = True
        if not self._reply.is_started:
            await self._start()
        await self._send({"type": "http.response.body", "body": data, "more_body": not is_last})
        self._is_writing = False
        self._last = self._loop.time()

    def close(self) -> None:
        self._timer.cancel()
        if self._beat is not None:
            self._beat.cancel()

    async def _start(self) -> None:
        kind = (b"content-type", self._reply.dialect.stream_type.encode())
        await self._reply.start(200, [kind, *_STREAM_HEADERS, *self._reply.headers(), *self.headers])

    def _tick(self) -> None:
        """Writes only note the time; the timer is set again here. While a write waits for a slow client, no heartbeat is sent."""
        quiet = self._loop.time() - self._last
        is_stuck = self._is_writing or (self._beat is not None and not self._beat.done())
        if is_stuck:
            quiet = 0.0
        elif quiet >= self._interval * 0.98:
            self._last = self._loop.time()
            self._beat = self._loop.create_task(self._write_heartbeat())
            quiet = 0.0
        self._timer = self._loop.call_later(max(0.05, self._interval - quiet), self._tick)

    async def _write_heartbeat(self) -> None:
        if not self._reply.is_started:
            await self._start()
        await self._send({"type": "http.response.body", "body": self._reply.dialect.heartbeat, "more_body": True})


def answer_headers(headers: Mapping[str, str], losses: list[Loss]) -> HeaderList:
    """For an answer: the back end's headers, and the losses so far."""
    found = passed_headers(headers) if headers else []
    return found + loss_header(losses) if losses else found


def passed_headers(headers: Mapping[str, str]) -> HeaderList:
    """The back end's headers that a client may see. Its request id gets a name of its own."""
    return [
        (
            f"x-upstream-{name}".encode() if name.endswith("request-id") else name.encode(),
            _printable(value),
        )
        for name, value in headers.items()
    ]


def loss_header(losses: list[Loss]) -> HeaderList:
    """The losses, counted by feature, and the names of those that are harmless."""
    if not losses:
        return []
    counts: dict[str, int] = {}
    for loss in losses:
        counts[loss.feature] = counts.get(loss.feature, 0) + 1
    words = ", ".join(f"{feature};n={count}" if count > 1 else feature for feature, count in counts.items())
    found = [(b"x-toolwire-loss", _printable(words)[:_MAX_LOSS_HEADER])]
    if adapted := ", ".join(filter(is_adapted, counts)):
        found.append((b"x-toolwire-adapted", _printable(adapted)[:_MAX_LOSS_HEADER]))
    return found


def unlisted_header(backends: Sequence[str]) -> HeaderList:
    """The back ends whose models are missing from a model list, because they did not answer."""
    return [(b"x-toolwire-unlisted", _printable(", ".join(backends))[:_MAX_LOSS_HEADER])] if backends else []


def debug_header(report: bytes) -> tuple[bytes, bytes]:
    """For an answer that is no stream. The log has what does not fit."""
    return b"x-toolwire-debug", _UNPRINTABLE.sub(b"?", report)[:_MAX_DEBUG_HEADER]


def _printable(text: str) -> bytes:
    """Foreign text without characters that would end the header."""
    return _UNPRINTABLE.sub(b"?", text.encode("ascii", "replace"))


async def front_page(reply: Reply) -> None:
    await reply.json(
        b'{"name":"toolwire","paths":["/v1/chat/completions","/v1/responses","/v1/messages","/v1/models"],'
        b'"ollama":"Ollama is running"}'  # clients of Ollama look for this text
    )


async def healthy(reply: Reply) -> None:
    await reply.json(b'{"status":"ok"}')


def internal_error(request_id: str, cause: Exception) -> InternalError:
    fault = InternalError(f"something went wrong inside the gateway; the log has it under {request_id}.")
    fault.__cause__ = cause
    return fault
