"""Back ends that only write text, or whose server does not read what its model writes: their calls are taken out of the text.

A simulated back end is told of the tools in words, and gets past calls and results as words, too. One that is only listened to gets
everything in its own dialect, and a call that comes back as text is still a call.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing

from msgspec import Struct
from msgspec.structs import replace

from ..backends.base import Backend, EventReply, Model, how_of, local_of
from ..calls.arguments import Valid, judge
from ..calls.schemas import Schemas
from ..calls.turn import has_tools
from ..calls.validation import Offer
from ..calls.written.request import wanted_of, written
from ..calls.written.splitter import Manner, Spoken
from ..errors import GatewayError
from ..events import Event, Failed
from ..ids import new_id
from ..profiles import ANY_SCHEMAS, IdRule, Profile
from ..types import Loss, Request, Tool, ToolCall
from .reader import ReplyReader
from .rounds import RoundsReply

_NO_LOSSES: tuple[Loss, ...] = ()


class Tools(Struct, frozen=True):
    """What may be called, for whoever reads a text."""

    offer: Offer
    schemas: Schemas
    is_told: bool

    @property
    def tools(self) -> Sequence[Tool]:
        return self.offer.tools

    def tool(self, name: str) -> Tool | None:
        return self.offer.tool(name)

    def fits(self, name: str, raw: str) -> bool:
        tool = self.offer.tool(name)
        if tool is None:
            return False
        return isinstance(judge(ToolCall(id="", name=name, raw=raw), tool, self.schemas, may_repair=False), Valid)


def told_profile(profile: Profile) -> Profile:
    """Tools that are words obey none of the back end's rules for tools."""
    return replace(
        profile,
        ids=IdRule(),
        schemas=ANY_SCHEMAS,
        strict_schemas=None,
        tool_kinds=frozenset(),
        max_tools=0,
        keeps_state=False,
        needs_tools=False,
    )


class ListeningBackend(Backend):
    """The back end of one request: what it writes is looked through for calls."""

    dialect = ""
    tool_kinds: frozenset[str] = frozenset()
    is_told = False
    _how = ""

    def __init__(self, inner: Backend, schemas: Schemas, manner: Manner) -> None:
        self.name = inner.name
        self.profile = inner.profile
        self._inner = inner
        self._schemas = schemas
        self._manner = manner

    async def models(self) -> list[Model]:
        return await self._inner.models()

    async def open(self, request: Request, *, is_verbatim: bool) -> EventReply:
        sent, losses = self._sent(request)
        reply = await self._inner.open(sent, is_verbatim=False)
        reader = ReplyReader(reply, self._inner.dialect, sent)
        events = self._heard(request, reader) if has_tools(request) else reader.events()
        return RoundsReply(
            events=events,
            losses=(*reply.losses, *losses),
            headers=reply.headers,
            how="; ".join(filter(None, (how_of(reply), self._how))),
            local=local_of(reply),
            first=reply,
        )

    async def close(self) -> None:
        """The inner one belongs to somebody else."""

    def spoken(self, request: Request) -> Spoken:
        offer = Offer(request.tools)
        return Spoken(Tools(offer, self._schemas, self.is_told), offer, new_id, self._manner_for(request))

    def _sent(self, request: Request) -> tuple[Request, tuple[Loss, ...]]:
        return request, _NO_LOSSES

    def _manner_for(self, request: Request) -> Manner:
        return self._manner

    async def _heard(self, request: Request, reader: ReplyReader) -> AsyncIterator[list[Event]]:
        spoken, is_over = self.spoken(request), False
        try:
            async with aclosing(reader.events()) as read:  # type: ignore[type-var] # a generator, though it does not say so
                async for events in read:
                    if kept := spoken.send(events):
                        yield kept
            is_over = True
        except GatewayError as error:
            yield spoken.send([Failed(error=error)])
        finally:
            await reader.release(is_over=is_over)


class SimulatingBackend(ListeningBackend):
    """One that knows of tools only what it is told in words."""

    is_told = True
    _how = "tools are told in words"

    def __init__(self, inner: Backend, schemas: Schemas, manner: Manner) -> None:
        super().__init__(inner, schemas, manner)
        self.profile = told_profile(inner.profile)

    def _sent(self, request: Request) -> tuple[Request, tuple[Loss, ...]]:
        told = written(request)
        return told.request, told.losses

    def _manner_for(self, request: Request) -> Manner:
        wanted = wanted_of(request)
        is_strict = self._manner.may_hold and any(tool.strict for tool in request.tools)
        is_held = self._manner.is_held or is_strict
        return replace(self._manner, is_held=is_held, is_single=wanted.is_single, must_call=wanted.must_call)
