"""Back ends whose calls are found in their text.

SimulatingBackend serves a model without tool calling: a prompt describes the tools, and past calls and results are rendered as text. If the
server constrains its output to a schema, the answer can be nothing but text and valid calls. If it refuses the schema, the same request is
sent without it.
ScanningBackend serves a model whose server may leave calls in the text: the request stays as it is, and the text is scanned.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing

from msgspec.structs import replace

from ..backends.base import Backend, EventReply
from ..calls.schemas import Schemas
from ..calls.stop_sequences import StopFilter
from ..calls.turn import has_tools
from ..calls.validation import OfferedTools, ToolOffer
from ..calls.written.history_text import HistoryRenderer
from ..calls.written.request import CallDemand, TextRequest, to_text_request
from ..calls.written.splitter import CallSplitter, SplitterPolicy
from ..errors import GatewayError, UpstreamError
from ..events import Event, Failed
from ..ids import new_id
from ..profiles import ANY_SCHEMAS, IdRule, Profile
from ..types import Loss, Message, Reasoning, Request
from .answer import ReplyReader
from .grammar import GrammarSupport, no_grammar
from .wrapper import BackendWrapper, wrap_reply

_UNBOUND = Loss(
    "reasoning", "messages", "not sent back: it is bound to its prompt, and that of simulated tools changes"
)
_REFUSALS = frozenset({400, 422, 500, 501})  # what servers answer to a schema that they do not support
_PROMPTED = "tools are described in the prompt"
_CONSTRAINED = "tools are described in the prompt, and the output has a schema of text and calls"


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
        splitter, stop, is_over = self.splitter(request), self._stop_filter(request), False
        try:
            async with aclosing(reader.events()) as read:  # type: ignore[type-var] # a generator, though it does not say so
                async for events in read:
                    found = _passed(events, splitter, stop)
                    self._note_form(splitter)  # before the last events, because the reader stops there
                    if found:
                        yield found
                    if stop is not None and stop.is_over:
                        break
            is_over = stop is None or not stop.has_stopped
        except GatewayError as error:
            yield _passed([Failed(error=error)], splitter, stop)
        finally:
            await reader.release(is_over=is_over)

    def _stop_filter(self, request: Request) -> StopFilter | None:
        """For stop sequences that the back end does not get."""
        return None

    def _note_form(self, splitter: CallSplitter) -> None:
        """Called while the answer is split."""


class SimulatingBackend(ScanningBackend):
    is_instructed = True

    def __init__(
        self, inner: Backend, schemas: Schemas, manner: SplitterPolicy, grammar: GrammarSupport | None = None
    ) -> None:
        super().__init__(inner, schemas, manner)
        self.profile = simulated_profile(inner.profile)
        self._grammar = grammar or no_grammar()
        self._history = HistoryRenderer()
        self._demand = CallDemand()
        self._is_constrained = False  # the last request
        self._is_ignored = False  # the server has ignored the schema in this request, so that corrections do without

    async def open(self, request: Request, *, is_verbatim: bool) -> EventReply:
        losses: list[Loss] = []
        refusal: UpstreamError | None = None
        constrained = self._constrained(request, losses)
        if constrained is not None:
            try:
                return await self._open_text(request, constrained, _CONSTRAINED)
            except UpstreamError as error:
                if error.status not in _REFUSALS:
                    raise
                refusal = error
        reply = await self._open_text(request, to_text_request(request, self._history), _PROMPTED)
        if refusal is not None and constrained is not None:
            self._grammar.record_refusal(constrained.request.output.schema)
            losses.append(_refused(f"the back end refused the schema of text and calls ({refusal.status})"))
        reply.losses = (*reply.losses, *losses)
        return reply

    def _constrained(self, request: Request, losses: list[Loss]) -> TextRequest | None:
        """The request with a schema; None if the prompt has to do."""
        if not self._grammar.may_constrain or self._is_ignored:
            return None
        rendered = to_text_request(request, self._history, may_constrain=True)
        if not rendered.is_constrained:
            return None
        if self._grammar.has_refused(rendered.request.output.schema):
            losses.append(_refused("the back end has refused the schema of text and calls before"))
            return None
        return rendered

    async def _open_text(self, request: Request, rendered: TextRequest, how: str) -> EventReply:
        self._demand, self._is_constrained = rendered.demand, rendered.is_constrained
        sent, losses = rendered.request, rendered.losses
        if self.profile.is_bound(request.model):
            messages = tuple(map(_without_thoughts, sent.messages))
            if messages != sent.messages:
                sent, losses = replace(sent, messages=messages), (*losses, _UNBOUND)
        return await self._open(request, sent, losses, how)

    def _stop_filter(self, request: Request) -> StopFilter | None:
        stop = request.sampling.stop
        return StopFilter(stop, request.sampling.choices) if self._is_constrained and stop else None

    def _note_form(self, splitter: CallSplitter) -> None:
        if self._is_constrained and splitter.is_obeyed is not None:
            self._grammar.record(works=splitter.is_obeyed)
            self._is_ignored = not splitter.is_obeyed

    def _manner_for(self, request: Request) -> SplitterPolicy:
        wanted = self._demand
        is_strict = self._manner.may_hold and any(tool.strict for tool in request.tools)
        is_held = self._manner.is_held or is_strict
        return replace(
            self._manner,
            is_held=is_held,
            is_single=wanted.is_single,
            must_call=wanted.must_call,
            is_constrained=self._is_constrained,
        )


def _passed(events: list[Event], splitter: CallSplitter, stop: StopFilter | None) -> list[Event]:
    found = splitter.send(events)
    return found if stop is None else stop.send(found)


def _without_thoughts(message: Message) -> Message:
    parts = tuple(part for part in message.parts if not isinstance(part, Reasoning))
    return message if len(parts) == len(message.parts) else message.with_parts(parts)


def _refused(why: str) -> Loss:
    return Loss("grammar", "tools", f"{why}; tools are only described in the prompt")


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
