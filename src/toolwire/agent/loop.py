"""The tool loop: ask, run what the model calls, tell it the results, until it answers in words or a bound is reached.

It knows no provider: what it sends and reads is canonical, and runtime.answer() does the rest. `messages` is a whole conversation at every
moment, also where the loop was stopped in the middle of an answer or of a tool: calls without a result are told as interrupted.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from ..calls.ledger.repetition import noticed, repeats
from ..calls.turn import BYTES_PER_TOKEN
from ..dialects.shared.answer_out import Seams, joined
from ..errors import GatewayError
from ..events import Event, Failed, Finished, PartDelta, PartEnded, PartStarted
from ..pipeline.answer import EventAnswer
from ..telemetry import Record, Telemetry
from ..telemetry.record import NoTelemetry
from ..tools import Runnable
from ..tools.runner import Bounds
from ..types import (
    LOOP_HEADER,
    REACHED_BOUND,
    Message,
    Part,
    Reasoning,
    Refusal,
    Request,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)
from .events import CompleteEvent, Ending, ErrorEvent, LoopEvent, ReasoningEvent, StatusEvent, TextEvent
from .toolbox import Approve, Calls, Toolbox

_SAME = 5  # rounds in a row that change nothing end the loop; from the third on the model is told
_INVALID = 3  # rounds in a row without one right call


class Terms(Struct, frozen=True, kw_only=True):
    """Where a loop ends if it does not end by itself. Prices are for a million tokens in and out."""

    max_iterations: int = 20
    max_tokens: int | None = None
    max_cost: float | None = None
    prices: tuple[float, float] = (0.0, 0.0)
    bounds: Bounds = Bounds()
    approve: Approve | None = None

    def is_spent(self, usage: Usage) -> bool:
        cost = (usage.input * self.prices[0] + usage.output * self.prices[1]) / 1e6
        is_costly = self.max_cost is not None and cost >= self.max_cost
        return is_costly or (self.max_tokens is not None and usage.input + usage.output >= self.max_tokens)


class Answers(Protocol):
    """Who is asked: the runtime."""

    async def answer(self, request: Request, record: Record, owner: str = "") -> EventAnswer: ...


class Watching(Struct, frozen=True, kw_only=True):
    """Who is asked for the tools before each round, where they may change; and who is told what came of each answer."""

    refresh: Callable[[], Awaitable[Sequence[Runnable]]] | None = None
    telemetry: Telemetry = NoTelemetry()


_UNWATCHED = Watching()


class Loop:
    """One task, from a request to the last word."""

    def __init__(
        self,
        runtime: Answers,
        request: Request,
        tools: Sequence[Runnable],
        terms: Terms,
        owner: str = "",
        watching: Watching = _UNWATCHED,
    ) -> None:
        self._runtime = runtime
        self._watching = watching
        self._request = request
        self._terms = terms
        self._owner = owner
        self._toolbox = Toolbox(tools, terms.bounds, terms.approve)
        self._said: list[Message] = list(request.messages)
        self._known = len(self._said)
        self._calls: Calls | None = None  # of the last answer, while their results are gathered
        self._partial: list[str] = []  # text of an answer that has not come to its end
        self._ending: Ending = "done"
        self._is_calling = False
        self._invalid = 0
        self._last: Ending | None = None  # why the request under way is the last one
        self.usage = Usage()
        self.iterations = 0
        self.failure: GatewayError | None = None

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation so far, whole."""
        said = [*self._said, *(self._calls.messages() if self._calls is not None else ())]
        text = "".join(self._partial).strip()
        return (*said, Message(role="assistant", parts=(Text(text=text),))) if text else tuple(said)

    async def events(self) -> AsyncGenerator[LoopEvent, None]:
        """All of it; the last is complete, and where something failed an error stands before it."""
        reason: Ending | None = None
        while reason is None and self.iterations < self._terms.max_iterations:
            async with aclosing(self._round()) as told:
                async for event in told:
                    yield event
            if (ending := self._ended()) is not None:
                yield self._complete(ending)
                return
            reason = self._too_much()
        self._last = reason or "max_iterations"
        yield StatusEvent(status="last", detail=self._last)
        async with aclosing(self._round()) as told:
            async for event in told:
                yield event
        yield self._complete(self._last if self.failure is None else "error")

    def _ended(self) -> Ending | None:
        """Why there is nothing more to ask."""
        if self.failure is not None:
            return "error"
        if not self._is_calling:
            return self._ending
        return "budget" if self._terms.is_spent(self.usage) else None

    @property
    def _is_cut(self) -> bool:
        return self._ending == "length"

    def _too_much(self) -> Ending | None:
        """Why the model should say its last word now."""
        if self._invalid >= _INVALID:
            return "invalid"
        return "loop" if repeats(tuple(self._said)) >= _SAME else None

    async def _round(self) -> AsyncGenerator[LoopEvent, None]:
        """One answer of the model, and the tools it calls."""
        self.iterations += 1
        self._ending, self._is_calling = "done", False
        if self.iterations > 1:
            await self._refresh()
        record = Record(model=self._request.model, is_stream=self._request.stream, started=time.monotonic(), status=200)
        record.has_reached_bound = self._last == "max_iterations"
        self._watching.telemetry.opened(record)
        try:
            async with aclosing(self._answered(record)) as told:
                async for event in told:
                    yield event
        finally:
            record.ended = time.monotonic()
            self._watching.telemetry.closed(record)

    async def _refresh(self) -> None:
        """Servers may have other tools by now; where they cannot be asked, those before stay."""
        if self._watching.refresh is None:
            return
        with suppress(GatewayError):
            self._toolbox = self._toolbox.having(await self._watching.refresh())

    async def _answered(self, record: Record) -> AsyncGenerator[LoopEvent, None]:
        yield StatusEvent(status="asking", detail=str(self.iterations))
        parts: list[Part] = []
        async with aclosing(self._asked(record, parts)) as told:
            async for event in told:
                yield event
        if self.failure is not None:
            record.outcome, record.status = "error", self.failure.status
            record.error = self.failure.code
            return
        self._partial.clear()
        if not parts:
            return
        self._calls = calls = self._toolbox.begin(parts, is_cut=self._is_cut, tally=record.tally)
        async with aclosing(calls.events()) as told:
            async for event in told:
                yield event
        self._invalid = 0 if calls.has_right else self._invalid + 1
        self._said += calls.messages()
        self._is_calling = self._said[-1].role == "tool"
        self._calls = None

    async def _asked(self, record: Record, parts: list[Part]) -> AsyncGenerator[LoopEvent, None]:
        try:
            answering = await self._runtime.answer(self._next(), record, self._owner)
        except GatewayError as error:
            if not self._is_text_enough(error, parts):
                yield self._failed(error)
            return
        teller = _Teller()
        try:
            async with aclosing(answering.events()) as batches:
                async for events in batches:
                    for event in events:
                        if isinstance(event, Finished):
                            self._finished(event)
                        elif isinstance(event, Failed):
                            if not self._is_text_enough(event.error, parts):
                                yield self._failed(event.error)
                            return
                        elif (told := teller.told(event)) is not None:
                            if isinstance(told, TextEvent):
                                self._partial.append(told.text)
                            yield told
        finally:
            await answering.release()
        if any(loss.feature == "usage" for loss in record.losses):
            # The estimate is by the bytes of a client's request, and here was none.
            self.usage = replace(self.usage, input=self.usage.input + _size(self._said) // BYTES_PER_TOKEN)
        parts += answering.parts if self._last is None else self._last_words(answering.parts)

    def _last_words(self, parts: list[Part]) -> list[Part]:
        """The last answer may call nothing. A call in it becomes text (H090), unless the task has text that serves better."""
        shown = [_in_words(part) for part in parts]
        spoken = [part for part in shown if not (isinstance(part, Text) and _is_call_text(part.text))]
        has_text = any(isinstance(part, Text | Refusal) and part.text.strip() for part in spoken)
        has_earlier = any(_text_of(message).strip() for message in self._said[self._known :])
        return spoken if has_earlier and not has_text else shown

    def _is_text_enough(self, error: GatewayError, parts: list[Part]) -> bool:
        """A back end may end the last answer because the model goes on calling: then its text so far is the answer."""
        if self._last is None or not error.is_runaway:
            return False
        text = "".join(self._partial).strip()
        parts += [Text(text=text)] if text else []
        return True

    def _failed(self, error: GatewayError) -> ErrorEvent:
        self.failure = error
        return ErrorEvent(code=error.code, message=error.message)

    def _next(self) -> Request:
        request = replace(self._request, messages=noticed(tuple(self._said)))
        if self._last is None:
            choice = request.tool_choice if self.iterations == 1 else None
            return replace(request, tools=self._toolbox.offered, tool_choice=choice)
        about = {LOOP_HEADER: REACHED_BOUND} if self._last == REACHED_BOUND else {}
        return replace(request, tools=(), tool_choice=None, headers={**request.headers, **about})

    def _finished(self, event: Finished) -> None:
        reason = event.choices[0].reason if event.choices else "stop"
        self._ending = reason if reason == "length" or reason == "refused" else "done"
        if event.usage is not None:
            self.usage = self.usage.plus(replace(event.usage, extra={}))

    def _complete(self, reason: Ending) -> CompleteEvent:
        said = [message for message in self.messages[self._known :] if message.role == "assistant"]
        texts = [_text_of(message) for message in reversed(said)]
        text = texts[0] if texts else ""
        if not text.strip() and self._last is not None:  # it had to say something, and did not: the best that there is
            text = next((text for text in texts if text.strip()), "") or _calls_of(said)
        return CompleteEvent(text=text, reason=reason, iterations=self.iterations, usage=self.usage)


class _Teller:
    """The events of an answer as those of a loop."""

    def __init__(self) -> None:
        self._parts: dict[int, Part] = {}
        self._seams = Seams()

    def told(self, event: Event) -> LoopEvent | None:
        match event:
            case PartStarted(index=index, part=part):
                self._parts[index] = part
                self._seams.begin(event)
                return StatusEvent(status="calling", id=part.id, name=part.name) if isinstance(part, ToolCall) else None
            case PartDelta(index=index, text=text):
                return self._more(self._parts.get(index), self._seams.before(event) + text)
            case PartEnded():
                self._seams.end(event)
                return None
            case _:
                return None

    def _more(self, part: Part | None, text: str) -> LoopEvent:
        if isinstance(part, ToolCall):
            return StatusEvent(status="arguments", detail=text, id=part.id, name=part.name)
        return ReasoningEvent(text=text) if isinstance(part, Reasoning) else TextEvent(text=text)


def _size(messages: Sequence[Message]) -> int:
    """Of what a model reads, in characters."""
    parts = [part for message in messages for part in message.parts]
    inside = [inner for part in parts if isinstance(part, ToolResult) for inner in part.parts]
    written = sum(len(part.raw) for part in parts if isinstance(part, ToolCall))
    return written + sum(len(part.text) for part in (*parts, *inside) if isinstance(part, Text | Reasoning))


def _text_of(message: Message) -> str:
    return joined([part for part in message.parts if isinstance(part, Text | Refusal)])


def _calls_of(said: Sequence[Message]) -> str:
    """The last calls, as text."""
    for message in reversed(said):
        if calls := [_in_words(part) for part in message.parts if isinstance(part, ToolCall)]:
            return " ".join(part.text for part in calls if isinstance(part, Text))
    return ""


def _in_words(part: Part) -> Part:
    """A call that nobody could expect is words (H090)."""
    return Text(text=f"[call of {part.name}: {part.raw}]") if isinstance(part, ToolCall) else part


def _is_call_text(text: str) -> bool:
    """Whether it only shows a call, as this loop and back ends without a place for the call write it."""
    return text.startswith("[call of ") and text.rstrip().endswith("]")
