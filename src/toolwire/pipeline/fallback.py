"""Fallback to another model of a group: the reasons for it, and how far an answer may go before it is final.

A request falls over until the first meaningful event of an answer: text, a call, or its end.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence

from ..backends.base import EventReply, WireReply
from ..dialects import DIALECTS
from ..errors import GatewayError, UpstreamError
from ..events import Event, Failed, Finished, PartDelta, PartEnded, PartStarted
from ..types import Request, ToolCall

# Codes of errors whose status alone does not say what happened.
_REASONS = {
    "upstream_unreachable": "connect",
    "upstream_timeout": "stall",
    "upstream_cut": "empty",
    "upstream_garbage": "empty",
    "empty_answer": "empty",
    "no_output": "empty",
}


def reason_of(error: GatewayError) -> str:
    """Why another model could be asked, as in fallback_on of a group; "" for errors that are not of a back end."""
    if not isinstance(error, UpstreamError):
        return ""
    return _REASONS.get(error.code) or ("5xx" if error.status >= 500 else str(error.status))


def hop_of(model: str, error: GatewayError) -> str:
    """One failed attempt, for the log: the model, and the reason or the status."""
    reason = reason_of(error)
    return f"{model}:{error.status if reason == '5xx' else reason}"


async def opened(
    opening: Awaitable[WireReply | EventReply], dialect: str, request: Request, stall_seconds: float
) -> WireReply | EventReply:
    """The reply, once its first meaningful event was received. Raises UpstreamError if it ends, fails or stalls before. dialect: of the
    bytes."""
    reply: WireReply | EventReply | None = None
    try:
        async with asyncio.timeout(stall_seconds):
            reply = await opening
            if isinstance(reply, EventReply):
                return await _opening_events(reply)
            return await _opening_bytes(reply, dialect, request)
    except BaseException as error:
        if isinstance(reply, EventReply):
            await reply.close()
        elif reply is not None:
            reply.abort()
        if isinstance(error, TimeoutError):
            message = f"the back end sent no answer within {stall_seconds:g} seconds."
            raise UpstreamError(message, status=504, code="upstream_timeout") from None
        raise


class _OpenedReply:
    """A reply whose first pieces were read already."""

    def __init__(self, reply: WireReply, pieces: list[bytes]) -> None:
        self._reply = reply
        self._pieces = pieces
        self.headers = reply.headers
        self.content_type = reply.content_type
        self.losses = reply.losses

    @property
    def is_complete(self) -> bool:
        return not self._pieces and self._reply.is_complete

    async def read(self) -> bytes:
        return self._pieces.pop(0) if self._pieces else await self._reply.read()

    def abort(self) -> None:
        self._pieces.clear()
        self._reply.abort()


async def _opening_bytes(reply: WireReply, dialect: str, request: Request) -> WireReply:
    codec = DIALECTS[dialect]
    is_stream = "event-stream" in reply.content_type.lower()
    decoder = codec.stream_decoder(request) if is_stream else codec.body_decoder(request)
    pieces: list[bytes] = []
    while True:
        piece = await reply.read()
        if piece:
            pieces.append(piece)
        events = decoder.feed(piece) if piece else decoder.close()
        _check(events)
        if not piece or any(map(_is_meaningful, events)):
            return _OpenedReply(reply, pieces)


async def _opening_events(reply: EventReply) -> EventReply:
    source = aiter(reply.events)
    batches: list[list[Event]] = []
    async for batch in source:
        _check(batch)
        batches.append(batch)
        if any(map(_is_meaningful, batch)):
            break
    else:
        raise UpstreamError("the back end's answer is empty.", code="empty_answer")
    reply.events = _resumed(batches, source)
    return reply


async def _resumed(batches: list[list[Event]], source: AsyncIterator[list[Event]]) -> AsyncIterator[list[Event]]:
    try:
        for batch in batches:
            yield batch
        async for batch in source:
            yield batch
    finally:
        if hasattr(source, "aclose"):
            await source.aclose()


def _check(events: Sequence[Event]) -> None:
    for event in events:
        if _is_meaningful(event):
            return
        if isinstance(event, Failed):
            raise event.error.fresh()


def _is_meaningful(event: Event) -> bool:
    """A call that has only its name counts: the client may already show it."""
    is_call = isinstance(event, PartStarted) and isinstance(event.part, ToolCall)
    return is_call or isinstance(event, PartDelta | PartEnded | Finished)
