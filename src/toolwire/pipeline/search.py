"""Web searches for clients that leave them to their provider, run by the gateway for back ends without a search.

The model gets the search as a function. When it calls the function, the gateway searches, sends call and result to the client in the form of
its dialect, and sends the result to the model, until it answers without a search. A call of a client's tool next to a search ends the
turn, because only the client can run it (H092). After the last permitted search the model gets one more round, without the function.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from msgspec import Struct
from msgspec.structs import replace

from ..backends.base import Backend, EventReply, WireReply
from ..backends.search import Searcher
from ..calls.parts import PartIndexes
from ..calls.tools.names import without_prefix
from ..dialects.messages import web_search as in_messages
from ..dialects.responses import web_search as in_responses
from ..dialects.shared.web_search import (
    SearchDisplay,
    SearchForm,
    SearchOutcome,
    WebSearch,
    outcome_text,
    with_past_searches,
)
from ..events import Event, Failed, Finished, Noted, PartDelta, PartEnded, PartStarted, Started
from ..ids import new_id
from ..types import Loss, Message, Opaque, Part, Request, Text, Tool, ToolCall, ToolChoice, ToolResult, Usage
from .answer import ReplyReader
from .wrapper import BackendWrapper, Rounds, wrap_reply

FORMS: dict[str, SearchForm] = {"messages": in_messages, "responses": in_responses}
_NAMED = 20  # domains in the description of the function
_SCHEMA = {
    "type": "object",
    "properties": {"query": {"type": "string", "description": "What to look for, in the words of a search engine."}},
    "required": ["query"],
    "additionalProperties": False,
}


class Searching:
    def __init__(self, searcher: Searcher) -> None:
        self._searcher = searcher

    def around(self, backend: Backend, request: Request) -> tuple[Backend, Request]:
        """The back end and the request, both unchanged where the request has no web search that the gateway must run."""
        form = FORMS.get(request.origin)
        if form is None:
            return backend, request
        if backend.dialect == request.origin and "hosted" in backend.tool_kinds:
            return backend, request if request.wire else _without_ours(request, form)
        wanted = next((found for tool in request.tools if (found := form.wanted(tool)) is not None), None)
        function = "" if wanted is None else _free_name(request.tools)
        messages = with_past_searches(request.messages, form.past, function)
        if wanted is None:
            return backend, _with_messages(request, messages)
        offering = replace(_offering(request, form, wanted, function), messages=messages)
        return _SearchingBackend(backend, _SearchSettings(self._searcher, form, wanted, function)), offering


class _SearchingBackend(BackendWrapper):
    def __init__(self, inner: Backend, settings: _SearchSettings) -> None:
        super().__init__(inner)
        self._settings = settings

    async def open(self, request: Request, *, is_verbatim: bool) -> EventReply:
        # A request for a corrected call contains the searches of the answer before it.
        messages = with_past_searches(request.messages, self._settings.form.past, self._settings.function)
        request = replace(request, messages=messages)
        reply = await self._inner.open(request, is_verbatim=False)
        why = "the search of the gateway has no such option"
        losses = tuple(Loss(f"web_search.{name}", "tools", why) for name in self._settings.wanted.unheard)
        return wrap_reply(reply, _SearchRounds(self._inner, self._settings).play(request, reply), losses)


def _without_ours(request: Request, form: SearchForm) -> Request:
    """For a provider with a search of its own, which does not know the searches of the gateway."""
    messages = with_past_searches(
        request.messages, lambda part: found if (found := form.past(part)) and found.is_ours else None
    )
    return _with_messages(request, messages)


def _with_messages(request: Request, messages: tuple[Message, ...]) -> Request:
    return request if messages is request.messages else replace(request, messages=messages)


def _free_name(tools: tuple[Tool, ...]) -> str:
    taken = {name for tool in tools if tool.kind != "hosted" for name in (tool.name, tool.label)}
    name, number = "web_search", 1
    while name in taken:
        number += 1
        name = f"web_search_{number}"
    return name


def _offering(request: Request, form: SearchForm, wanted: WebSearch, function: str) -> Request:
    """The request with a function in place of the hosted search."""
    hosted = {tool.name for tool in request.tools if form.wanted(tool) is not None}
    offered = Tool(name=function, description=_description(wanted), schema=_SCHEMA)
    # First, so that it keeps its name when a back end needs other names.
    tools = (offered, *(tool for tool in request.tools if form.wanted(tool) is None))
    choice = request.tool_choice
    if choice is not None and not hosted.isdisjoint(choice.names):
        names = tuple(function if name in hosted else name for name in choice.names)
        mode = "named" if choice.mode == "hosted" else choice.mode
        choice = ToolChoice(mode=mode, names=names, is_required=choice.is_required)
    return replace(request, tools=tools, tool_choice=choice, has_new_tools=True)


def _description(wanted: WebSearch) -> str:
    lines = ["SearchEngine the web. The result is a list of titles, addresses and short excerpts."]
    if wanted.allowed:
        lines.append(f"Only results from {', '.join(wanted.allowed[:_NAMED])} are returned.")
    if wanted.blocked:
        lines.append(f"Results from {', '.join(wanted.blocked[:_NAMED])} are left out.")
    return " ".join(lines)


_USES = 5
_MOST_USES = 50
_CONTINUES = ("tool_calls", "stop", "other")  # reasons to stop after which results can follow


class _SearchSettings(Struct, frozen=True):
    """For one request. function: the name of the search function."""

    searcher: Searcher
    form: SearchForm
    wanted: WebSearch
    function: str

    @property
    def uses(self) -> int:
        return min(self.wanted.max_uses or _USES, _MOST_USES)

    def is_search(self, call: ToolCall) -> bool:
        return self.function in (call.name, without_prefix(call.name))


class _Pending(Struct, frozen=True):
    """A running search, and the call that started it."""

    call: ToolCall
    shown: SearchDisplay
    task: asyncio.Task[SearchOutcome]


class _SearchRounds:
    """One answer for the client, made of several rounds of the model."""

    def __init__(self, inner: Backend, settings: _SearchSettings) -> None:
        self._inner = inner
        self._settings = settings
        self._searches = 0
        self.rounds = Rounds()
        self._ids: set[str] = set()

    async def play(self, request: Request, reply: WireReply | EventReply) -> AsyncIterator[list[Event]]:
        self.rounds = Rounds(reply.losses, is_bound=self._inner.profile.is_bound(request.model))
        losses: list[Event] = []
        while True:
            reader, answer = ReplyReader(reply, self._inner.dialect, request), _Round(self)
            try:
                if losses:  # in here: a client that disconnects now must stop the new reply
                    yield losses
                async for events in reader.events():
                    if kept := answer.send(events):
                        yield self.rounds.without_proofs(kept)
                    if answer.is_over:
                        break
                for pending in answer.searches:
                    yield await self._found(pending)
            finally:
                answer.cancel()
                await reader.release(is_over=answer.finished is not None)
            if answer.finished is None:  # failed or cut
                return
            if answer.is_last:
                yield [self._counted(answer.finished)]
                return
            self.rounds.add_usage(answer.finished.usage)
            self.rounds.hide()
            request = self._continued(request, answer)
            reply = await self._inner.open(request, is_verbatim=False)
            losses = self.rounds.new_losses(reply.losses)

    def is_search(self, call: ToolCall) -> bool:
        return self._settings.is_search(call)

    def start(self, call: ToolCall) -> tuple[_Pending, list[Event]]:
        """Start the search of a complete call."""
        given = (call.args or {}).get("query")
        query = given if isinstance(given, str) else ""
        self._searches += 1
        used_up = SearchOutcome(
            fault="used_up", why=f"no more than {self._settings.uses} searches may be made in one turn."
        )
        shown = self._settings.form.shown(query[:2000], new_id, self.rounds.place)
        is_left = self._searches <= self._settings.uses
        task = asyncio.create_task(
            self._settings.searcher.ask(query, self._settings.wanted) if is_left else _immediate(used_up)
        )
        return _Pending(self._named(call), shown, task), shown.call_events()

    def _named(self, call: ToolCall) -> ToolCall:
        """Some servers start their ids again in each answer."""
        named = replace(call, id=new_id("call_")) if not call.id or call.id in self._ids else call
        self._ids.add(named.id)
        return named

    async def _found(self, pending: _Pending) -> list[Event]:
        outcome = await pending.task
        events = pending.shown.found(outcome)
        if outcome.fault:
            events.append(Noted(note=Loss("web_search", "answer", outcome.why)))
        return events

    def _counted(self, finished: Finished) -> Finished:
        """The end of the answer, with the usage of all rounds."""
        self.rounds.add_usage(finished.usage)
        usage = self.rounds.usage
        if usage is None:
            return finished
        searches = min(self._searches, self._settings.uses)
        return replace(finished, usage=replace(usage, extra=self._settings.form.counted(searches, usage.extra)))

    def _continued(self, request: Request, answer: _Round) -> Request:
        """The request with the answer and the results, and with the function as long as it may be used."""
        results = [_result(pending) for pending in answer.searches]
        messages = (*request.messages, Message(role="assistant", parts=tuple(answer.said)), *results)
        choice, tools = _unforced(request.tool_choice), request.tools
        if self._searches >= self._settings.uses:
            others = tuple(tool for tool in tools if tool.name != self._settings.function)
            # The only tool stays in the list, unused: some servers refuse past calls in a request without tools.
            tools, choice = (
                (others, _without(choice, self._settings.function)) if others else (tools, ToolChoice(mode="none"))
            )
        return replace(request, messages=messages, tools=tools, tool_choice=choice)


class _Round:
    """One round of the model: searches are taken out of it, and the other parts get new indexes."""

    def __init__(self, turn: _SearchRounds) -> None:
        self._turn = turn
        self._indexes = PartIndexes(turn.rounds.place)
        self._has_calls = False
        self.said: list[Part] = []
        self.searches: list[_Pending] = []
        self.finished: Finished | None = None
        self.is_over = False

    @property
    def is_last(self) -> bool:
        reasons = () if self.finished is None else self.finished.choices
        can_continue = all(choice.reason in _CONTINUES for choice in reasons)
        is_used_up = all(pending.task.result().fault == "used_up" for pending in self.searches)
        return self._has_calls or not self.searches or not can_continue or is_used_up

    def send(self, events: list[Event]) -> list[Event]:
        kept: list[Event] = []
        for event in events:
            if self.is_over:
                break
            kept += self._event(event)
        return kept

    def cancel(self) -> None:
        for pending in self.searches:
            pending.task.cancel()

    def _event(self, event: Event) -> list[Event]:
        match event:
            case PartDelta():
                return self._indexes.forward(event)
            case Started():
                return [event] if self._turn.rounds.starts() else []
            case PartStarted():
                return self._started(event)
            case PartEnded():
                return self._ended(event)
            case Noted():
                return self._noted(event)
            case Finished():
                self.is_over, self.finished = True, event
                return []
            case Failed():
                self.is_over = True
                return [event]

    def _started(self, event: PartStarted) -> list[Event]:
        if isinstance(event.part, ToolCall):
            if self._turn.is_search(event.part):
                return []
            self._has_calls = True
        return [self._indexes.open(event)]

    def _ended(self, event: PartEnded) -> list[Event]:
        if self._indexes.get(event.index) is not None:
            self.said.append(event.part)
            return self._indexes.forward(event)
        assert isinstance(event.part, ToolCall)
        pending, events = self._turn.start(event.part)
        self.said.append(pending.call)
        self.searches.append(pending)
        return events

    def _noted(self, event: Noted) -> list[Event]:
        # Opaque events between the parts describe one answer, and the client gets another.
        is_void = event.index is None and isinstance(event.note, Opaque | Usage)
        return [] if is_void else self._indexes.forward(event)


async def _immediate(outcome: SearchOutcome) -> SearchOutcome:
    return outcome


def _result(pending: _Pending) -> Message:
    outcome = pending.task.result()
    parts = (Text(text=outcome_text(outcome)),)
    result = ToolResult(call_id=pending.call.id, parts=parts, is_error=bool(outcome.fault), name=pending.call.name)
    return Message(role="tool", parts=(result,))


def _unforced(choice: ToolChoice | None) -> ToolChoice | None:
    """After a search no call is forced, because the rounds would not end."""
    match choice:
        case ToolChoice(mode="named" | "required"):
            return ToolChoice(mode="auto")
        case ToolChoice(mode="allowed"):
            return ToolChoice(mode="allowed", names=choice.names)
        case _:
            return choice


def _without(choice: ToolChoice | None, function: str) -> ToolChoice | None:
    if choice is None or choice.mode != "allowed":
        return choice
    names = tuple(name for name in choice.names if name != function)
    return ToolChoice(mode="allowed", names=names) if names else ToolChoice(mode="none")
