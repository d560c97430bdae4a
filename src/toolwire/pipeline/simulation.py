"""Back ends whose calls are found in their text.

SimulatingBackend serves a model without tool calling: a prompt describes the tools, and past calls and results are rendered as text.
ScanningBackend serves a model whose server may leave calls in the text: the request stays as it is, and the text is scanned.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing

from msgspec.structs import replace

from ..backends.base import Backend, EventReply
from ..calls.schemas import Schemas
from ..calls.turn import has_tools
from ..calls.validation import OfferedTools, ToolOffer
from ..calls.written.history_text import HistoryRenderer
from ..calls.written.request import CallDemand, to_text_request
from ..calls.written.splitter import CallSplitter, SplitterPolicy
from ..errors import GatewayError
from ..events import Event, Failed
from ..ids import new_id
from ..profiles import ANY_SCHEMAS, IdRule, Profile
from ..types import Loss, Request
from .answer import ReplyReader
from .wrapper import BackendWrapper, wrap_reply


class ScanningBackend(BackendWrapper):
    is_instructed = False

    def __init__(self, inner: Backend, schemas: Schemas, manner: SplitterPolicy) -> None:
        super().__init__(inner)
        self._schemas = schemas
        self._manner = manner

    async def open(self, request: Request, *, is_verbatim: bool) -> EventReply:
        return await self._open(request, request)

    def splitter(self, request: Request) -> CallSplitter:
        """Takes the calls out of the text of one answer."""
        offer = ToolOffer(request.tools)
        tools = OfferedTools(offer, self._schemas, self.is_instructed)
        return CallSplitter(tools, offer, new_id, self._manner_for(request))

    async def _open(self, request: Request, sent: Request, losses: tuple[Loss, ...] = (), how: str = "") -> EventReply:
        reply = await self._inner.open(sent, is_verbatim=False)
        reader = ReplyReader(reply, self._inner.dialect, sent)
        events = self._scan(request, reader) if has_tools(request) else reader.events()
        return wrap_reply(reply, events, losses, how)

    def _manner_for(self, request: Request) -> SplitterPolicy:
        return self._manner

    async def _scan(self, request: Request, reader: ReplyReader) -> AsyncIterator[list[Event]]:
        splitter, is_over = self.splitter(request), False
        try:
            async with aclosing(reader.events()) as read:  # type: ignore[type-var] # a generator, though it does not say so
                async for events in read:
                    if found := splitter.send(events):
                        yield found
            is_over = True
        except GatewayError as error:
            yield splitter.send([Failed(error=error)])
        finally:
            await reader.release(is_over=is_over)


class SimulatingBackend(ScanningBackend):
    is_instructed = True

    def __init__(self, inner: Backend, schemas: Schemas, manner: SplitterPolicy) -> None:
        super().__init__(inner, schemas, manner)
        self.profile = simulated_profile(inner.profile)
        self._history = HistoryRenderer()
        self._demand = CallDemand()

    async def open(self, request: Request, *, is_verbatim: bool) -> EventReply:
        rendered = to_text_request(request, self._history)
        self._demand = rendered.demand
        return await self._open(request, rendered.request, rendered.losses, "tools are described in the prompt")

    def _manner_for(self, request: Request) -> SplitterPolicy:
        wanted = self._demand
        is_strict = self._manner.may_hold and any(tool.strict for tool in request.tools)
        is_held = self._manner.is_held or is_strict
        return replace(self._manner, is_held=is_held, is_single=wanted.is_single, must_call=wanted.must_call)


def simulated_profile(profile: Profile) -> Profile:
    """Without the back end's rules for tools: it gets none."""
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
