"""The ways to answer a request: JSON, text, errors, preflights, and the head of a stream."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

from ..dialects import Dialect
from ..errors import BadRequest, GatewayError, UpstreamError, quote
from ..types import Loss
from .body import Send

HeaderList: TypeAlias = list[tuple[bytes, bytes]]
_MAX_LOSS_HEADER = 1000
_MAX_DEBUG_HEADER = 4000
_UNPRINTABLE = re.compile(rb"[^\x20-\x7e]")


class WrongMethod(BadRequest):
    """405, with the methods that this path takes."""

    def __init__(self, found: str, allowed: str) -> None:
        super().__init__(f"found {quote(found)}; expected {allowed}.", status=405, code="method_not_allowed")
        self.allowed = allowed


class Reply:
    """One request's way back; is_started tells whether its head has left."""

    def __init__(self, send: Send, dialect: Dialect, request_id: str, origin: str | None) -> None:
        self.send = send
        self.dialect = dialect
        self._request_id = request_id
        self._origin = origin
        self.is_started = False

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
        extra: HeaderList = passed_headers(error.headers) if isinstance(error, UpstreamError) else []
        if error.status == 429 and not any(name == b"retry-after" for name, _ in extra):
            extra.append((b"retry-after", b"1"))
        if isinstance(error, WrongMethod):
            extra.append((b"allow", error.allowed.encode()))
        await self.whole(error.status, self.dialect.encode_error(error, self._request_id), "application/json", extra)

    async def whole(self, status: int, body: bytes, kind: str, extra: HeaderList | None = None) -> None:
        head = [(b"content-type", kind.encode()), (b"content-length", b"%d" % len(body)), *self.headers()]
        await self.start(status, head + (extra or []))
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


def passed_headers(headers: Mapping[str, str]) -> HeaderList:
    """The back end's headers that a client may want; its request id keeps apart from ours."""
    return [
        (
            f"x-upstream-{name}".encode() if name.endswith("request-id") else name.encode(),
            _printable(value),
        )
        for name, value in headers.items()
    ]


def loss_header(losses: list[Loss]) -> HeaderList:
    """What could not be carried over, counted by feature and bounded."""
    if not losses:
        return []
    counts: dict[str, int] = {}
    for loss in losses:
        counts[loss.feature] = counts.get(loss.feature, 0) + 1
    words = ", ".join(f"{feature};n={count}" if count > 1 else feature for feature, count in counts.items())
    return [(b"x-toolwire-loss", _printable(words)[:_MAX_LOSS_HEADER])]


def debug_header(told: bytes) -> tuple[bytes, bytes]:
    """For answers that are no stream; the log has what does not fit."""
    return b"x-toolwire-debug", _UNPRINTABLE.sub(b"?", told)[:_MAX_DEBUG_HEADER]


def _printable(text: str) -> bytes:
    """Foreign text that may stand in a header: a line break in it would begin another one."""
    return _UNPRINTABLE.sub(b"?", text.encode("ascii", "replace"))
