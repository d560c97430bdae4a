"""Tools that the gateway runs inside one request: the model calls them, gets the results and continues, and the client sees one answer.

The loop is the same for all of them. A round is one request to the model. Its text, and the calls of the client's tools, are sent to the
client as they come. Calls of the gateway's tools are hidden and run at once, side by side. When the round is complete, the calls and their
results are added to the request and the model is called again. The answer ends with the first round that

- calls none of the gateway's tools, or
- calls a tool of the client too, because only the client can run that one (H092), or
- ends for another reason than calls, or
- has only calls that were refused because the limit of the request is reached.

A kind of tools is a subclass of GatewayTools. `ToolSearch` and the web search are two.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ..backends.base import Backend, EventReply, WireReply
from ..calls.parts import PartIndexes
from ..calls.tools.adapter import adapt_ids
from ..calls.validation import CallTally, LocalCall
from ..events import Event, Failed, Finished, Noted, PartDelta, PartEnded, PartStarted, Started
from ..ids import new_id
from ..offload import LARGE, offload
from ..types import Loss, Media, Message, Opaque, Part, Request, Text, ToolCall, ToolChoice, ToolResult, Usage
from .answer import ReplyReader
from .wrapper import BackendWrapper, Rounds, added_messages, wrap_reply

Place: TypeAlias = Callable[[], int]  # returns the client's next part index

_MOST_ROUNDS = 64  # whatever the limits of the tools are
_CONTINUES = ("tool_calls", "stop", "other")  # reasons to stop after which results can follow


class ToolOutcome(Struct, frozen=True, kw_only=True):
    """The result of one call. is_refused: not run, because the limit of the request is reached. show: makes what the client sees of
    the result, when all earlier parts were sent."""

    parts: tuple[Text | Media | Opaque, ...]
    is_error: bool = False
    is_refused: bool = False
    show: Callable[[], list[Event]] | None = None


class StartedCall(Struct, frozen=True):
    """A call that was started. events: what the client sees of the call itself."""

    outcome: Coroutine[Any, Any, ToolOutcome]
    events: tuple[Event, ...] = ()


class GatewayTools(ABC):
    """One kind of tools, for one request. losses: known so far; new ones are reported before each round."""

    losses: tuple[Loss, ...] = ()

    @abstractmethod
    def begin(self, request: Request) -> Request:
        """The request of the first round, with these tools."""

    @abstractmethod
    def resume(self, request: Request) -> Request:
        """The request of a later round, which has the calls and results so far."""

    @abstractmethod
    def owns(self, call: ToolCall) -> bool:
        """Whether the gateway runs this call. Its arguments may still be incomplete."""

    @abstractmethod
    def start(self, call: ToolCall, place: Place) -> StartedCall:
        """Start a complete call."""

    def end(self, calls: list[ToolCall], text: str) -> None:
        """The answer is complete. calls, text: what the client gets of it."""
        return

    def count(self, usage: Usage) -> Usage:
        """The usage of all rounds, with what the client's dialect counts for these tools."""
        return usage


def unforced(choice: ToolChoice | None) -> ToolChoice | None:
    """After a call of the gateway's tools no call is forced, because the rounds would not end."""
    match choice:
        case ToolChoice(mode="named" | "required"):
            return ToolChoice(mode="auto")
        case ToolChoice(mode="allowed"):
            return ToolChoice(mode="allowed", names=choice.names)
        case _:
            return choice


def choice_without(choice: ToolChoice | None, function: str) -> ToolChoice | None:
    if choice is None or choice.mode != "allowed":
        return choice
    names = tuple(name for name in choice.names if name != function)
    return ToolChoice(mode="allowed", names=names) if names else ToolChoice(mode="none")


class ToolRunningBackend(BackendWrapper):
    """The inner back end with tools that the gateway runs. tally: where the first part of the last round is noted."""

    def __init__(self, inner: Backend, tools: tuple[GatewayTools, ...], tally: CallTally | None = None) -> None:
        super().__init__(inner)
        self._tools = tools
        self._tally = tally

    async def open(self, request: Request, *, is_verbatim: bool) -> EventReply:
        is_large = request.size > LARGE
        for tools in self._tools:
            request = await offload(tools.begin, request) if is_large else tools.begin(request)
        reply = await self._inner.open(request, is_verbatim=False)
        answer = _RunningAnswer(self._inner, self._tools, self._tally or CallTally())
        wrapped = wrap_reply(reply, answer.play(request, reply), answer.losses)
        answer.local = wrapped.local
        return wrapped


class _Pending(Struct, frozen=True):
    """A running call."""

    call: ToolCall
    task: asyncio.Task[ToolOutcome]


class _RunningAnswer:
    """One answer for the client, made of several rounds of the model."""

    def __init__(self, inner: Backend, tools: tuple[GatewayTools, ...], tally: CallTally) -> None:
        self._inner = inner
        self._tools = tools
        self._tally = tally
        self._ids: set[str] = set()
        self._text = ""  # of all rounds
        self.rounds = Rounds()
        self.local: list[LocalCall] = []

    @property
    def losses(self) -> tuple[Loss, ...]:
        """Those of the tools, so far."""
        return tuple(loss for tools in self._tools for loss in tools.losses)

    async def play(self, request: Request, reply: WireReply | EventReply) -> AsyncIterator[list[Event]]:
        self.rounds = Rounds((*reply.losses, *self.losses), is_bound=self._inner.profile.is_bound(request.model))
        losses: list[Event] = []
        for number in range(_MOST_ROUNDS):
            reader, answer = ReplyReader(reply, self._inner.dialect, request), _Round(self)
            try:
                if losses:  # in here: a client that disconnects now must stop the new reply
                    yield losses
                async for events in reader.events():
                    if sent := answer.send(events):
                        yield self.rounds.without_proofs(sent)
                    if answer.is_over:
                        break
                for pending in answer.pending:
                    if (outcome := await pending.task).show is not None:
                        yield outcome.show()
            finally:
                answer.cancel()
                await reader.release(is_over=answer.finished is not None)
            if answer.finished is None:  # failed or cut
                return
            self.rounds.add_usage(answer.finished.usage)
            self._text += "".join(part.text for part in answer.said if isinstance(part, Text))
            if answer.is_last or number == _MOST_ROUNDS - 1:
                yield [self._ending(answer, answer.finished)]
                return
            request = self._continued(request, answer)
            reply = await self._inner.open(request, is_verbatim=False)
            self.rounds.hide()
            self._tally.last_round = self.rounds.count
            losses = self.rounds.new_losses((*reply.losses, *self.losses))

    def owner(self, call: ToolCall) -> GatewayTools | None:
        return next((tools for tools in self._tools if tools.owns(call)), None)

    def start(self, owner: GatewayTools, call: ToolCall) -> tuple[_Pending, list[Event]]:
        if not call.id or call.id in self._ids:  # some servers start their ids again in each answer
            call = replace(call, id=new_id("call_"))
        self._ids.add(call.id)
        run = owner.start(call, self.rounds.place)
        return _Pending(call, asyncio.create_task(self._timed(call.name, run.outcome))), list(run.events)

    async def _timed(self, name: str, run: Awaitable[ToolOutcome]) -> ToolOutcome:
        started = time.monotonic()
        outcome = await run
        done = "refused" if outcome.is_refused else "failed" if outcome.is_error else "ok"
        self.local.append(LocalCall(name=name, outcome=done, seconds=time.monotonic() - started))  # type: ignore[arg-type]  # one of these
        return outcome

    def _ending(self, answer: _Round, finished: Finished) -> Finished:
        """The end of the answer, with the usage of all rounds."""
        usage = self.rounds.usage
        for tools in self._tools:
            tools.end(answer.calls, self._text)
            usage = usage and tools.count(usage)
        return replace(finished, usage=usage)

    def _continued(self, request: Request, answer: _Round) -> Request:
        said = Message(role="assistant", parts=tuple(answer.said))
        messages = (*request.messages, said, *map(_result, answer.pending))
        messages = adapt_ids(messages, self._inner.profile.ids)
        request = added_messages(request, replace(request, messages=messages))
        for tools in self._tools:
            request = tools.resume(request)
        return request


class _Round:
    """One round of the model: calls of the gateway's tools are taken out of it, and the other parts get new indexes."""

    def __init__(self, answer: _RunningAnswer) -> None:
        self._answer = answer
        self._indexes = PartIndexes(answer.rounds.place)
        self._owners: dict[int, GatewayTools] = {}
        self.said: list[Part] = []
        self.calls: list[ToolCall] = []  # of the client's tools
        self.pending: list[_Pending] = []
        self.finished: Finished | None = None
        self.is_over = False

    @property
    def is_last(self) -> bool:
        choices = () if self.finished is None else self.finished.choices
        can_continue = all(choice.reason in _CONTINUES for choice in choices)
        is_refused = all(pending.task.result().is_refused for pending in self.pending)
        return bool(self.calls) or not self.pending or not can_continue or is_refused

    def send(self, events: list[Event]) -> list[Event]:
        sent: list[Event] = []
        for event in events:
            if self.is_over:
                break
            sent += self._event(event)
        return sent

    def cancel(self) -> None:
        for pending in self.pending:
            pending.task.cancel()

    def _event(self, event: Event) -> list[Event]:
        match event:
            case PartDelta():
                return self._indexes.forward(event)
            case Started():
                return [event] if self._answer.rounds.starts() else []
            case PartStarted():
                return self._started(event)
            case PartEnded():
                return self._ended(event)
            case Noted():
                # Opaque events between the parts describe one answer, and the client gets another.
                is_void = event.index is None and isinstance(event.note, Opaque | Usage)
                return [] if is_void else self._indexes.forward(event)
            case Finished():
                self.is_over, self.finished = True, event
                return []
            case Failed():
                self.is_over = True
                return [event]

    def _started(self, event: PartStarted) -> list[Event]:
        if isinstance(event.part, ToolCall) and (owner := self._answer.owner(event.part)) is not None:
            self._owners[event.index] = owner
            return []
        return [self._indexes.open(event)]

    def _ended(self, event: PartEnded) -> list[Event]:
        owner = self._owners.get(event.index)
        if owner is None:
            self.said.append(event.part)
            if isinstance(event.part, ToolCall):
                self.calls.append(event.part)
            return self._indexes.forward(event)
        assert isinstance(event.part, ToolCall)
        pending, events = self._answer.start(owner, event.part)
        self.said.append(pending.call)
        self.pending.append(pending)
        return events


def _result(pending: _Pending) -> Message:
    call, outcome = pending.call, pending.task.result()
    result = ToolResult(call_id=call.id, parts=outcome.parts, is_error=outcome.is_error, name=call.name, kind=call.kind)
    return Message(role="tool", parts=(result,))
