"""Reading a request's body within its limits: type, size and time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, TypeAlias

from ..errors import BadRequest, quote
from ..wire.exact_json import encode

Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]


_UNSAID = (
    "application/x-www-form-urlencoded",
    "text/plain",
)  # what HTTP clients send when the caller sets no content type


class ClientGone(Exception):
    """The client closed its connection; nobody is left to answer."""


def check_type(headers: Mapping[str, str]) -> None:
    """Requires JSON. A program may also send the content types of `curl -d`. A web page may not: browsers send those without a
    CORS preflight."""
    kind = headers.get("content-type", "").split(";")[0].strip().lower()
    is_json = not kind or kind == "application/json" or kind.endswith("+json")
    if not is_json and not (kind in _UNSAID and not _is_of_page(headers)):
        raise BadRequest(
            f"the content type is {quote(kind)}; expected application/json.",
            status=415,
            code="unsupported_media_type",
            where="content-type",
        )
    coding = headers.get("content-encoding", "identity").strip().lower()
    if coding not in ("", "identity"):
        raise BadRequest(
            f"the body is encoded as {quote(coding)}; expected plain JSON.",
            status=415,
            code="unsupported_media_type",
            where="content-encoding",
        )


def _is_of_page(headers: Mapping[str, str]) -> bool:
    """Browsers send one of these with every request that a page makes to this machine."""
    return any(name in ("origin", "referer") or name.startswith("sec-fetch-") for name in headers)


def with_model(body: bytes, model: str) -> bytes:
    """An object that names no model, with this one in front."""
    rest = body.lstrip()[1:].lstrip()
    return b'{"model":' + encode(model) + (b"" if rest.startswith(b"}") else b",") + rest


async def read_body(
    receive: Receive,
    headers: Mapping[str, str],
    limit: int,
    seconds: float,
    loop: asyncio.AbstractEventLoop | None = None,
) -> bytes:
    length = headers.get("content-length", "")
    if length.isdigit() and int(length) > limit:
        raise _too_large(limit)
    running = loop or asyncio.get_running_loop()
    task = asyncio.current_task(running)
    assert task is not None
    is_late = False

    def stop() -> None:
        nonlocal is_late
        is_late = True
        task.cancel()

    timer = running.call_later(seconds, stop)  # lighter than asyncio.timeout, and every request passes here
    try:
        return await _read_all(receive, limit)
    except asyncio.CancelledError:
        if not is_late:
            raise
        task.uncancel()
        raise BadRequest(
            f"the body did not arrive within {seconds:g} seconds.", status=408, code="request_timeout"
        ) from None
    finally:
        timer.cancel()


async def _read_all(receive: Receive, limit: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        piece: bytes = message.get("body", b"")
        size += len(piece)
        if size > limit:
            raise _too_large(limit)
        pieces.append(piece)
        if not message.get("more_body"):
            return b"".join(pieces) if len(pieces) > 1 else piece


def _too_large(limit: int) -> BadRequest:
    return BadRequest(
        f"the body is larger than {limit // (1 << 20)} MB.",
        status=413,
        code="request_too_large",
        hint="[server] max_body_mb sets the limit.",
    )
