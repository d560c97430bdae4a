"""What the runtime asks of a back end: answer one request, as events or as the bytes of a dialect."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Protocol

from msgspec import Struct

from ..calls.counts import LocalCall
from ..events import Event
from ..profiles import Profile
from ..types import Loss, Request


class Model(Struct, frozen=True, kw_only=True):
    """One line of a model list. also: other names that mean it, which need no line."""

    id: str
    owner: str = ""
    created: int = 0
    title: str = ""
    also: tuple[str, ...] = ()


class WireReply(Protocol):
    """An answer in a dialect's own bytes; a decoder of that dialect makes events of them."""

    @property
    def headers(self) -> Mapping[str, str]:
        """What a client may see of the back end's headers: rate limits, its request id."""

    @property
    def content_type(self) -> str: ...

    @property
    def losses(self) -> tuple[Loss, ...]: ...

    @property
    def is_complete(self) -> bool:
        """Whether the last byte is on this side, read or not."""

    async def read(self) -> bytes:
        """What has come since the last read; b"" at the end. Raises UpstreamError when the answer is cut or stalls."""

    def abort(self) -> None:
        """The client is gone: stop the back end now. Safe to call at any time, also twice."""


class EventReply(Struct):
    """An answer made in this process. how: by what means, for the debug report. local: tools that the gateway ran for it, a list
    that grows while the answer is read."""

    events: AsyncIterator[list[Event]]
    losses: tuple[Loss, ...] = ()
    headers: Mapping[str, str] = {}
    how: str = ""
    local: list[LocalCall] = []

    async def close(self) -> None:
        """Nobody reads on: whoever makes it stops now, not when memory is tidied up."""
        if isinstance(self.events, AsyncGenerator):
            await self.events.aclose()


def how_of(reply: WireReply | EventReply) -> str:
    return reply.how if isinstance(reply, EventReply) else ""


def local_of(reply: WireReply | EventReply) -> list[LocalCall]:
    return reply.local if isinstance(reply, EventReply) else []


def is_streamed(reply: WireReply, request: Request) -> bool:
    """By what it calls itself; a reply that does not say is what was asked for."""
    kind = reply.content_type.lower()
    return "event-stream" in kind or (request.stream and "json" not in kind)


class Backend(Protocol):
    """dialect is the wire format it speaks, "" where it answers in events."""

    @property
    def name(self) -> str: ...

    @property
    def dialect(self) -> str: ...

    @property
    def profile(self) -> Profile: ...

    @property
    def tool_kinds(self) -> frozenset[str]:
        """Which tools of its dialect it knows beside functions."""

    async def models(self) -> list[Model]: ...

    async def open(self, request: Request, *, is_verbatim: bool) -> WireReply | EventReply:
        """Send it. Raises UpstreamError when the back end refuses, before the first byte of an answer."""

    async def close(self) -> None: ...
