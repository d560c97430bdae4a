"""What the runtime asks of a back end: answer one request, as events or as the bytes of a dialect."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Protocol

from msgspec import Struct

from ..events import Event
from ..types import Loss, Request


class Model(Struct, frozen=True, kw_only=True):
    """One line of a model list."""

    id: str
    owner: str = ""
    created: int = 0
    title: str = ""


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
    """An answer made in this process."""

    events: AsyncIterator[list[Event]]
    losses: tuple[Loss, ...] = ()


class Backend(Protocol):
    """dialect is the wire format it speaks, "" where it answers in events."""

    @property
    def name(self) -> str: ...

    @property
    def dialect(self) -> str: ...

    @property
    def tool_kinds(self) -> frozenset[str]:
        """Which tools of its dialect it knows beside functions."""

    async def models(self) -> list[Model]: ...

    async def open(self, request: Request, *, is_verbatim: bool) -> WireReply | EventReply:
        """Send it. Raises UpstreamError when the back end refuses, before the first byte of an answer."""

    async def close(self) -> None: ...
