"""Groups of models: which one is tried first, which errors lead to the next one, and how far an answer may go before it is final.

A request falls over until the first meaningful event of an answer (text, a call, its end). A conversation stays with the model that
answered it, so that prompt caches are hit, unless that one fails. A back end that fails several times in a row is tried last for a while;
then one request probes it.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from hashlib import blake2b

from ..backends.base import EventReply, WireReply
from ..dialects import DIALECTS
from ..errors import GatewayError, UpstreamError
from ..events import Event, Failed, Finished, PartDelta, PartEnded
from ..types import Request, Text

_FAILURES = 3  # in a row, after which a back end is tried last
_OPEN_SECONDS = 30.0
_STALL_SECONDS = 60.0  # without a meaningful event
_MAX_STICKY = 10_000
_STICKY_SECONDS = 3600.0
_MEANINGFUL = (PartDelta, PartEnded, Finished)
_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})


class ModelGroups:
    """groups: the models of each name, in the order in which they are tried."""

    def __init__(self, groups: Mapping[str, Sequence[str]], clock: Callable[[], float] = time.monotonic) -> None:
        self.names = frozenset(groups)
        self._groups = dict(groups)
        self._clock = clock
        self._failures: dict[str, int] = {}
        self._retry_at: dict[str, float] = {}
        self._sticky: OrderedDict[bytes, tuple[str, float]] = OrderedDict()

    def candidates(self, request: Request, owner: str) -> list[str]:
        """The models of its group, the best first."""
        members = self._groups[request.model]
        last, now = self._sticky.get(_conversation(request, owner), ("", 0.0)), self._clock()
        sticky = last[0] if last[1] > now else ""
        return sorted(members, key=lambda model: (self._retry_at.get(model, 0.0) > now, model != sticky))

    def succeeded(self, model: str, request: Request, owner: str) -> None:
        self._failures.pop(model, None)
        self._retry_at.pop(model, None)
        conversation = _conversation(request, owner)
        self._sticky[conversation] = model, self._clock() + _STICKY_SECONDS
        self._sticky.move_to_end(conversation)
        if len(self._sticky) > _MAX_STICKY:
            self._sticky.popitem(last=False)

    def failed(self, model: str) -> None:
        count = self._failures[model] = self._failures.get(model, 0) + 1
        if count >= _FAILURES:
            self._retry_at[model] = self._clock() + _OPEN_SECONDS


NO_GROUPS = ModelGroups({})


def is_fallback_reason(error: GatewayError) -> bool:
    """Whether another back end may do better: it was unreachable, overloaded, limited or broken. A refusal of the request itself is final."""
    return isinstance(error, UpstreamError) and error.status in _STATUSES


async def opening(reply: WireReply | EventReply, dialect: str, request: Request) -> WireReply | EventReply:
    """The same reply, once it has begun to say something. Raises UpstreamError if it ends, fails or stalls before. dialect: of the bytes."""
    try:
        async with asyncio.timeout(_STALL_SECONDS):
            if isinstance(reply, EventReply):
                return await _opening_events(reply)
            return await _opening_bytes(reply, dialect, request)
    except BaseException as error:
        if isinstance(reply, EventReply):
            await reply.close()
        else:
            reply.abort()
        if isinstance(error, TimeoutError):
            message = f"the back end sent no answer within {_STALL_SECONDS:g} seconds."
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
        if not piece or any(isinstance(event, _MEANINGFUL) for event in events):
            return _OpenedReply(reply, pieces)


async def _opening_events(reply: EventReply) -> EventReply:
    source = aiter(reply.events)
    batches: list[list[Event]] = []
    async for batch in source:
        _check(batch)
        batches.append(batch)
        if any(isinstance(event, _MEANINGFUL) for event in batch):
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
        if isinstance(event, _MEANINGFUL):
            return
        if isinstance(event, Failed):
            raise event.error.fresh()


def _conversation(request: Request, owner: str) -> bytes:
    """The same for all turns of a conversation: by its instructions and its first user message."""
    digest = blake2b(f"{owner}\0{request.model}".encode(), digest_size=16)
    for message in request.messages:
        for part in message.parts:
            if isinstance(part, Text):
                digest.update(part.text.encode("utf-8", "surrogatepass"))
        if message.role == "user":
            break
    return digest.digest()
