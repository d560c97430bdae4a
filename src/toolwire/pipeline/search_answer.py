"""One answer for the client out of several of the model: the searches that it asks for are run in between.

A client's own call beside a search ends the turn, because only the client can answer it (H092); and after the last search that may
be, the model is asked once more without the tool.
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
from ..dialects.shared.web_search import Outcome, SearchForm, Shown, WebSearch, told
from ..events import Event, Failed, Finished, Noted, PartDelta, PartEnded, PartStarted, Started
from ..ids import new_id
from ..types import Loss, Message, Opaque, Part, Request, Text, ToolCall, ToolChoice, ToolResult, Usage
from .reader import ReplyReader
from .rounds import Rounds

_USES = 5
_MOST_USES = 50
_GOES_ON = ("tool_calls", "stop", "other")


class Means(Struct, frozen=True):
    """All that running searches for one request takes."""

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
    """A search under way, for the call that asked for it."""

    call: ToolCall
    shown: Shown
    task: asyncio.Task[Outcome]


class SearchTurn:
    """One answer for the client out of several of the model."""

    def __init__(self, inner: Backend, means: Means) -> None:
        self._inner = inner
        self._means = means
        self._searches = 0
        self.rounds = Rounds()
        self._ids: set[str] = set()

    async def play(self, request: Request, reply: WireReply | EventReply) -> AsyncIterator[list[Event]]:
        self.rounds = Rounds(reply.losses)
        losses: list[Event] = []
        while True:
            reader, answer = ReplyReader(reply, self._inner.dialect, request), _Round(self)
            try:
                if losses:  # in here: a client that disconnects now must stop the new reply
                    yield losses
                async for events in reader.events():
                    if kept := answer.send(events):
                        yield kept
                    if answer.is_over:
                        break
                for pending in answer.searches:
                    yield await self._found(pending)
            finally:
                answer.cancel()
                await reader.release(is_over=answer.finished is not None)
            if answer.finished is None:  # it has failed, or has no end
                return
            if answer.is_last:
                yield [self._counted(answer.finished)]
                return
            self.rounds.add_usage(answer.finished.usage)
            request = self._continued(request, answer)
            reply = await self._inner.open(request, is_verbatim=False)
            losses = self.rounds.new_losses(reply.losses)

    def is_search(self, call: ToolCall) -> bool:
        return self._means.is_search(call)

    def ask(self, call: ToolCall) -> tuple[_Pending, list[Event]]:
        """Begin the search that a complete call asks for."""
        given = (call.args or {}).get("query")
        query = given if isinstance(given, str) else ""
        self._searches += 1
        used_up = Outcome(fault="used_up", why=f"no more than {self._means.uses} searches may be made in one turn.")
        shown = self._means.form.shown(query[:2000], new_id, self.rounds.place)
        is_left = self._searches <= self._means.uses
        task = asyncio.create_task(self._means.searcher.ask(query, self._means.wanted) if is_left else _known(used_up))
        return _Pending(self._named(call), shown, task), shown.asked()

    def _named(self, call: ToolCall) -> ToolCall:
        """One id, one call: some servers count them anew in each answer."""
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
        """The end of all of it, with what all of it took."""
        self.rounds.add_usage(finished.usage)
        usage = self.rounds.usage
        if usage is None:
            return finished
        searches = min(self._searches, self._means.uses)
        return replace(finished, usage=replace(usage, extra=self._means.form.counted(searches, usage.extra)))

    def _continued(self, request: Request, answer: _Round) -> Request:
        """The next request: what was said and found, and the tool as long as it may be used."""
        results = [_result(pending) for pending in answer.searches]
        messages = (*request.messages, Message(role="assistant", parts=tuple(answer.said)), *results)
        choice, tools = _eased(request.tool_choice), request.tools
        if self._searches >= self._means.uses:
            others = tuple(tool for tool in tools if tool.name != self._means.function)
            # Where it is the only one it stays in the list, unused: some servers refuse calls in the past without any tool.
            tools, choice = (
                (others, _without(choice, self._means.function)) if others else (tools, ToolChoice(mode="none"))
            )
        return replace(request, messages=messages, tools=tools, tool_choice=choice)


class _Round:
    """One answer of the model on its way: searches are taken out of it, the rest is numbered anew."""

    def __init__(self, turn: SearchTurn) -> None:
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
        goes_on = all(choice.reason in _GOES_ON for choice in reasons)
        asks_in_vain = all(pending.task.result().fault == "used_up" for pending in self.searches)
        return self._has_calls or not self.searches or not goes_on or asks_in_vain

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
        pending, events = self._turn.ask(event.part)
        self.said.append(pending.call)
        self.searches.append(pending)
        return events

    def _noted(self, event: Noted) -> list[Event]:
        # Opaque events between the parts describe one answer, and the client gets another.
        is_void = event.index is None and isinstance(event.note, Opaque | Usage)
        return [] if is_void else self._indexes.forward(event)


async def _known(outcome: Outcome) -> Outcome:
    return outcome


def _result(pending: _Pending) -> Message:
    outcome = pending.task.result()
    parts = (Text(text=told(outcome)),)
    result = ToolResult(call_id=pending.call.id, parts=parts, is_error=bool(outcome.fault), name=pending.call.name)
    return Message(role="tool", parts=(result,))


def _eased(choice: ToolChoice | None) -> ToolChoice | None:
    """After a search nothing is forced any more, or it would never end."""
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
