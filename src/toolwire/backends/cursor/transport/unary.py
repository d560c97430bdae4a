"""Unary calls of the service: one message there, one back, over HTTP/1.1."""

from __future__ import annotations

from ....errors import UpstreamError, quote
from ....wire.connect import Broken, End, Frame, FrameDecoder
from ...http.connection import TransportError
from ...http.transport import Response, Timeouts, Transport
from ..wire.errors import error_of, error_of_status
from .target import Attempt, Target, headers_of

_MAX_ANSWER = 8 << 20
_MAX_REFUSAL = 64 * 1024
_SECONDS = 30.0
_ENVELOPE = 4  # a message never begins with a smaller byte: field numbers start at 1
_PASSING = frozenset({"refused", "dns", "connect_timeout", "first_byte_timeout", "idle_timeout", "cut"})
_FOREIGN = ("text/html", "text/plain", "application/json")


async def unary(
    transport: Transport,
    target: Target,
    attempt: Attempt,
    path: str,
    message: bytes = b"",
    *,
    seconds: float = _SECONDS,
) -> bytes:
    """The answer's message, whether the server sent it bare or in an envelope. Raises UpstreamError."""
    headers = headers_of(target, attempt, "unary")
    timeouts = Timeouts(connect=target.connect_timeout, first_byte=seconds, idle=seconds)
    try:
        response = await transport.send("POST", target.url(path), headers, message, timeouts=timeouts)
        await check(response)
        return unwrapped(await response.read_all(_MAX_ANSWER))
    except TransportError as error:
        raise judged(error) from None


async def check(response: Response) -> None:
    """Raises UpstreamError for a reply that is none of the service's, or its refusal; reads that first."""
    kind = response.headers.get("content-type", "").lower()
    if response.status == 200 and not kind.startswith(_FOREIGN):
        return
    if response.status != 200:
        raise error_of_status(response.status, await beginning(response), response.headers)
    response.abort()
    raise UpstreamError(
        f"the service answered with the content type {quote(kind)}; expected a Connect message.",
        status=502,
        code="upstream_garbage",
        hint="Check base_url; a proxy in between may also have answered in its place.",
    )


async def beginning(response: Response) -> bytes:
    """As much of a refusal as says why; a long one is left there, and so is one that breaks off."""
    pieces = bytearray()
    try:
        while len(pieces) < _MAX_REFUSAL and (piece := await response.read()):
            pieces += piece
    except TransportError:
        return bytes(pieces)
    if not response.is_complete:
        response.abort()
    return bytes(pieces[:_MAX_REFUSAL])


def unwrapped(data: bytes) -> bytes:
    """Raises UpstreamError for the error that an envelope may hold."""
    if not data or data[0] >= _ENVELOPE:
        return data
    decoder = FrameDecoder()
    try:
        items: list[Frame | End] = [*decoder.feed(data), *decoder.close()]
    except Broken as broken:
        raise garbage(broken) from None
    frames = [item.data for item in items if isinstance(item, Frame)]
    if frames:
        return frames[0]
    fault = next((item.fault for item in items if isinstance(item, End)), None)
    if fault is not None:
        raise error_of(fault, has_spoken=False)
    return b""


def garbage(broken: Broken) -> UpstreamError:
    return UpstreamError(
        f"the answer is no Connect stream: {broken}",
        status=502,
        code="upstream_garbage",
        hint="Check base_url; a proxy in between may also have changed the answer.",
    )


def judged(error: TransportError) -> TransportError:
    """Retryable as a run sees it: whether it is safe is judged by what was seen of the model, not by what was sent."""
    error.retryable = error.kind in _PASSING
    return error
