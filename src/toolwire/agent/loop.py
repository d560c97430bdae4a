"""The tool loop: request an answer, run the tools that the model calls, send the results, until the model answers with text or a limit is reached.

Requests and answers are canonical, and runtime.answer() does the rest, so the loop is the same for every provider. `messages` is a valid conversation
at every moment, also if the loop is stopped in the middle of an answer or a tool: calls without a result are marked as interrupted.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from ..calls.ledger.repetition import count_repeats, with_loop_notices
from ..calls.turn import BYTES_PER_TOKEN
from ..dialects.shared.answer_out import Seams, join_texts
from ..errors import GatewayError
from ..events import Event, Failed, Finished, PartDelta, PartEnded, PartStarted
from ..pipeline.answer import EventAnswer
from ..telemetry import Record, Telemetry
from ..telemetry.prices import NO_PRICES, PriceTable, dollars
from ..telemetry.record import NoTelemetry
from ..tools import Output, Runnable
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
    ToolChoice,
    ToolResult,
    Usage,
)
from .events import CompleteEvent, Ending, ErrorEvent, LoopEvent, ReasoningEvent, StatusEvent, TextEvent, ToolCallEvent
from .hooks import AgentHooks, approval_of, resolve
from .output import REMINDER, OutputTool
from .toolbox import Approve, Calls, Toolbox

_MAX_REPEATS = 5  # rounds in a row without change end the loop; from the third on the model gets a notice
_MAX_INVALID = 3  # rounds in a row without a valid call
_MAX_REMINDERS = 2  # to call the tool for the output


class Terms(Struct, frozen=True, kw_only=True):
    """The limits of a task.

    max_iterations: requests to the model. max_tokens: input and output of the whole task. prices: for a million tokens, input and output;
    without them the prices of the gateway's configuration apply, in US dollars. max_cost: in the currency of the prices. bounds: time-outs and sizes of tool calls. approve: see Agent.
    """

    max_iterations: int = 20
    max_tokens: int | None = None
    max_cost: float | None = None
    prices: tuple[float, float] = (0.0, 0.0)
    bounds: Bounds = Bounds()
    approve: Approve | None = None

    def cost(self, usage: Usage) -> float | None:
        """By the prices of these terms; None without any."""
        if not any(self.prices):
            return None
        return (usage.input * self.prices[0] + usage.output * self.prices[1]) / 1e6

    def is_spent(self, usage: Usage, cost: float | None = None) -> bool:
        """cost: of this usage, if these terms have no prices."""
        spent = self.cost(usage) or cost or 0.0
        is_costly = self.max_cost is not None and spent >= self.max_cost
        return is_costly or (self.max_tokens is not None and usage.input + usage.output >= self.max_tokens)


class Answers(Protocol):
    """The runtime, as the loop uses it."""

    async def answer(self, request: Request, record: Record, owner: str = "") -> EventAnswer: ...


class Hooks(Struct, frozen=True, kw_only=True):
    """refresh returns the current tools before each round; telemetry gets a record of each answer.

    user: the hooks of the program. deps: for the contexts of tool calls. output: the tool by which the model gives its answer. prices: of the models, for tasks whose terms have none.
    """

    refresh: Callable[[], Awaitable[Sequence[Runnable]]] | None = None
    telemetry: Telemetry = NoTelemetry()
    user: AgentHooks | None = None
    deps: Any = None
    output: OutputTool | None = None
    prices: PriceTable = NO_PRICES


_NO_HOOKS = Hooks()


class Loop:
    """One task, from the request to the final answer."""

    def __init__(
        self,
        runtime: Answers,
        request: Request,
        tools: Sequence[Runnable],
        terms: Terms,
        owner: str = "",
        hooks: Hooks = _NO_HOOKS,
    ) -> None:
        self._runtime = runtime
        self._hooks = hooks
        self._request = request
        self._terms = terms
        self._owner = owner
        self._output = hooks.output
        self._reminders = 0
        self._toolbox = self._new_toolbox(tools)
        self._messages: list[Message] = list(request.messages)
        self._known = len(self._messages)
        self._calls: Calls | None = None  # of the last answer, while they run
        self._partial: list[str] = []  # text of an unfinished answer
        self._ending: Ending = "done"
        self._is_calling = False
        self._invalid = 0
        self._last: Ending | None = None  # why the current request is the last one
        self.usage = Usage()
        self.iterations = 0
        self._context = 0
        self._billed: int | None = 0  # in billionths of a dollar; None if the price of a request is unknown
        self.failure: GatewayError | None = None

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation so far."""
        messages = [*self._messages, *(self._calls.messages() if self._calls is not None else ())]
        text = "".join(self._partial).strip()
        return (*messages, Message(role="assistant", parts=(Text(text=text),))) if text else tuple(messages)

    @property
    def cost(self) -> float | None:
        """None if a price is unknown."""
        own = self._terms.cost(self.usage)
        return dollars(self._billed) if own is None and self._billed is not None and self.iterations else own

    @property
    def has_output(self) -> bool:
        """Whether the model has given a value of the output type."""
        return self._output is not None and self._output.has_value

    async def events(self) -> AsyncGenerator[LoopEvent, None]:
        """The last event is a CompleteEvent, preceded by an ErrorEvent if the loop failed."""
        reason: Ending | None = None
        while reason is None and self.iterations < self._terms.max_iterations:
            async with aclosing(self._round()) as events:
                async for event in events:
                    yield event
            if (ending := self._end_reason()) is not None:
                if ending == "done" and await self._remind():
                    continue
                yield await self._end(ending)
                return
            reason = self._last_reason()
        self._last = reason or "max_iterations"
        yield StatusEvent(status="last", detail=self._last)
        async with aclosing(self._round()) as events:
            async for event in events:
                yield event
        yield await self._end(self._last if self.failure is None else "error")

    def _new_toolbox(self, tools: Sequence[Runnable]) -> Toolbox:
        user, output = self._hooks.user, self._output
        free = frozenset() if output is None else frozenset({output.tool.name})
        approve = approval_of(user or AgentHooks(), self._terms.approve, free) if user or free else self._terms.approve
        offered = [*tools, output] if output is not None else tools
        after = None if user is None else self._after_call
        return Toolbox(offered, self._terms.bounds, approve, deps=self._hooks.deps, after=after)

    async def _after_call(self, call: ToolCallEvent, output: Output) -> Output:
        assert self._hooks.user is not None
        changed: Output | None = await resolve(self._hooks.user.after_call(call, output))
        return output if changed is None else changed

    async def _remind(self) -> bool:
        """Whether the model gets another request, because it answered with text that is not the output."""
        if self._output is None or self._output.has_value:
            return False
        if await self._output.accept_text(_text_of(self._messages[-1])) or self._reminders >= _MAX_REMINDERS:
            return False
        self._reminders += 1
        self._messages.append(Message(role="user", parts=(Text(text=REMINDER),)))
        return True

    async def _end(self, reason: Ending) -> CompleteEvent:
        complete = self._complete(reason)
        if self._hooks.user is not None:
            await resolve(self._hooks.user.after_task(complete))
        return complete

    def _end_reason(self) -> Ending | None:
        """Why the loop ends now."""
        if self.failure is not None:
            return "error"
        if not self._is_calling:
            return self._ending
        if self._output is not None and self._output.has_value:
            return "done"
        return "budget" if self._terms.is_spent(self.usage, self.cost) else None

    def _last_reason(self) -> Ending | None:
        """Why the next request is the last one."""
        if self._invalid >= _MAX_INVALID:
            return "invalid"
        return "loop" if count_repeats(tuple(self._messages)) >= _MAX_REPEATS else None

    async def _round(self) -> AsyncGenerator[LoopEvent, None]:
        """One answer of the model, and the tools that it calls."""
        self.iterations += 1
        self._ending, self._is_calling = "done", False
        if self.iterations > 1 and self._hooks.refresh is not None:
            with suppress(GatewayError):  # a server whose tools cannot be listed; the old tools stay
                tools = await self._hooks.refresh()
                self._toolbox = self._toolbox.with_tools([*tools, self._output] if self._output is not None else tools)
        record = Record(model=self._request.model, is_stream=self._request.stream, started=time.monotonic(), status=200)
        record.has_reached_bound = self._last == "max_iterations"
        self._hooks.telemetry.opened(record)
        parts: list[Part] = []
        try:
            yield StatusEvent(status="asking", detail=str(self.iterations))
            async with aclosing(self._answer(record, parts)) as events:
                async for event in events:
                    yield event
            if self.failure is not None:
                record.outcome, record.status, record.error = "error", self.failure.status, self.failure.code
                return
            self._partial.clear()
            if self._hooks.user is not None:
                await resolve(self._hooks.user.after_answer(Message(role="assistant", parts=tuple(parts)), self.usage))
            if parts:
                async with aclosing(self._run_calls(parts, record)) as events:
                    async for event in events:
                        yield event
        finally:
            record.ended = time.monotonic()
            self._hooks.telemetry.closed(record)

    async def _run_calls(self, parts: list[Part], record: Record) -> AsyncGenerator[LoopEvent, None]:
        self._calls = calls = self._toolbox.begin(parts, is_cut=self._ending == "length", tally=record.tally)
        async with aclosing(calls.events()) as events:
            async for event in events:
                yield event
        self._invalid = 0 if calls.has_valid else self._invalid + 1
        self._messages += calls.messages()
        self._is_calling = self._messages[-1].role == "tool"
        self._calls = None

    async def _answer(self, record: Record, parts: list[Part]) -> AsyncGenerator[LoopEvent, None]:
        """Adds the parts of the answer to parts."""
        try:
            request = self._next_request()
            if self._hooks.user is not None:
                changed: Request | None = await resolve(self._hooks.user.before_request(request))
                request = request if changed is None else changed
            answer = await self._runtime.answer(request, record, self._owner)
        except GatewayError as error:
            if not self._is_text_enough(error, parts):
                yield self._failed(error)
            return
        mapper = _EventMapper()
        try:
            async with aclosing(answer.events()) as batches:
                async for events in batches:
                    for event in events:
                        if isinstance(event, Finished):
                            self._finished(event, record)
                        elif isinstance(event, Failed):
                            if not self._is_text_enough(event.error, parts):
                                yield self._failed(event.error)
                            return
                        elif (mapped := mapper.map(event)) is not None:
                            if isinstance(mapped, TextEvent):
                                self._partial.append(mapped.text)
                            yield mapped
        finally:
            await answer.release()
        if any(loss.feature == "usage" for loss in record.losses):
            # The gateway estimates by the bytes of a client's request, which do not exist here.
            self.usage = replace(self.usage, input=self.usage.input + _size(self._messages) // BYTES_PER_TOKEN)
        is_open = self._last is None or self._output is not None
        parts += answer.parts if is_open else self._last_parts(answer.parts)

    def _last_parts(self, parts: list[Part]) -> list[Part]:
        """Calls in the last answer become text (H090), or are dropped if an earlier answer of the task has text."""
        texts = [_call_as_text(part) for part in parts]
        without_calls = [part for part in texts if not (isinstance(part, Text) and _is_call_text(part.text))]
        has_text = any(isinstance(part, Text | Refusal) and part.text.strip() for part in without_calls)
        has_earlier = any(_text_of(message).strip() for message in self._messages[self._known :])
        return without_calls if has_earlier and not has_text else texts

    def _is_text_enough(self, error: GatewayError, parts: list[Part]) -> bool:
        """A back end may end the last answer because the model keeps calling tools; then its text so far is the answer."""
        if self._last is None or not error.is_runaway:
            return False
        text = "".join(self._partial).strip()
        parts += [Text(text=text)] if text else []
        return True

    def _failed(self, error: GatewayError) -> ErrorEvent:
        self.failure = error
        return ErrorEvent(code=error.code, message=error.message)

    def _next_request(self) -> Request:
        request = replace(self._request, messages=with_loop_notices(tuple(self._messages)))
        tools, output = self._toolbox.offered, self._output
        must_give = output is not None and (self._reminders > 0 or self._last is not None or len(tools) == 1)
        named = ToolChoice(mode="named", names=(output.tool.name,)) if output is not None and must_give else None
        if self._last is None:
            choice = named or (request.tool_choice if self.iterations == 1 else None)
            return replace(request, tools=tools, tool_choice=choice)
        about = {LOOP_HEADER: REACHED_BOUND} if self._last == REACHED_BOUND else {}
        last = () if output is None else (output.tool,)
        return replace(request, tools=last, tool_choice=named, headers={**request.headers, **about})

    def _finished(self, event: Finished, record: Record) -> None:
        reason = event.choices[0].reason if event.choices else "stop"
        self._ending = reason if reason == "length" or reason == "refused" else "done"
        if event.usage is not None:
            self._context = event.usage.input + event.usage.output
            self.usage = self.usage.plus(replace(event.usage, extra={}))
        record.cost = self._hooks.prices.cost(record.backend, record.sent_model or record.model, event.usage)
        self._billed = None if self._billed is None or record.cost is None else self._billed + record.cost

    def _complete(self, reason: Ending) -> CompleteEvent:
        answers = [message for message in self.messages[self._known :] if message.role == "assistant"]
        texts = [_text_of(message) for message in reversed(answers)]
        text = texts[0] if texts else ""
        if not text.strip() and self._last is not None:  # the last answer is empty: use the best earlier one
            text = next((text for text in texts if text.strip()), "") or _last_calls(answers)
        output = self._output
        return CompleteEvent(
            text=output.text if output is not None and output.has_value else text,
            reason=reason,
            iterations=self.iterations,
            usage=self.usage,
            cost=self.cost,
            context=self._context,
            output=output.value if output is not None else None,
        )


class _EventMapper:
    """Maps the events of an answer to those of the loop."""

    def __init__(self) -> None:
        self._parts: dict[int, Part] = {}
        self._seams = Seams()

    def map(self, event: Event) -> LoopEvent | None:
        match event:
            case PartStarted(index=index, part=part):
                self._parts[index] = part
                self._seams.begin(event)
                return StatusEvent(status="calling", id=part.id, name=part.name) if isinstance(part, ToolCall) else None
            case PartDelta(index=index, text=text):
                text, grown = self._seams.before(event) + text, self._parts.get(index)
                if isinstance(grown, ToolCall):
                    return StatusEvent(status="arguments", detail=text, id=grown.id, name=grown.name)
                return ReasoningEvent(text=text) if isinstance(grown, Reasoning) else TextEvent(text=text)
            case PartEnded():
                self._seams.end(event)
                return None
            case _:
                return None


def _size(messages: Sequence[Message]) -> int:
    """Characters of the text that the model reads."""
    parts = [part for message in messages for part in message.parts]
    inside = [inner for part in parts if isinstance(part, ToolResult) for inner in part.parts]
    written = sum(len(part.raw) for part in parts if isinstance(part, ToolCall))
    return written + sum(len(part.text) for part in (*parts, *inside) if isinstance(part, Text | Reasoning))


def _text_of(message: Message) -> str:
    return join_texts([part for part in message.parts if isinstance(part, Text | Refusal)])


def _last_calls(answers: Sequence[Message]) -> str:
    for message in reversed(answers):
        if calls := [_call_as_text(part) for part in message.parts if isinstance(part, ToolCall)]:
            return " ".join(part.text for part in calls if isinstance(part, Text))
    return ""


def _call_as_text(part: Part) -> Part:
    return Text(text=f"[call of {part.name}: {part.raw}]") if isinstance(part, ToolCall) else part


def _is_call_text(text: str) -> bool:
    """Whether it is only a call as text, as written by this loop and by back ends that cannot pass on the call."""
    return text.startswith("[call of ") and text.rstrip().endswith("]")
