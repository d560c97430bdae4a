"""The calls of one answer: validated, approved and run concurrently. Every call gets a result."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ..calls.arguments import Invalid, Repaired, Valid
from ..calls.schemas import Schemas
from ..calls.validation import CallTally, CallValidator, ToolOffer, UnknownCall
from ..tools import Output, Runnable
from ..tools.runner import INTERRUPTED, NOT_MADE, Bounds, CallProgress, FinishedCall, run_all
from ..types import JsonObject, Message, Part, Text, Tool, ToolCall, ToolResult
from ..wire.exact_json import encode
from .events import ApprovalEvent, Fault, LoopEvent, StatusEvent, ToolCallEvent, ToolErrorEvent, ToolResultEvent

_CUT = "The answer ended in the middle of this call, so it was not made. Say less, or call again."


class Decision(Struct, frozen=True, kw_only=True):
    """The decision about a call; arguments, if given, replace the model's."""

    is_allowed: bool = True
    reason: str = ""
    arguments: JsonObject | None = None


Approval: TypeAlias = Decision | bool | None  # None: the call needs no approval
Approve: TypeAlias = Callable[[ToolCallEvent, Runnable], Approval | Awaitable[Approval]]


AfterCall: TypeAlias = Callable[[ToolCallEvent, Output], Awaitable[Output]]


class Toolbox:
    """tally counts the findings about the calls. deps is for the context of each; after may replace the output of a call."""

    def __init__(
        self,
        tools: Sequence[Runnable],
        bounds: Bounds,
        approve: Approve | None = None,
        *,
        deps: Any = None,
        after: AfterCall | None = None,
    ) -> None:
        self._tools = {runnable.tool.name: runnable for runnable in tools}
        self._bounds = bounds
        self._approve = approve
        self._deps = deps
        self.after = after
        self._offer = ToolOffer(self.offered)
        self.tally = CallTally()
        self._checking = CallValidator(self._offer, Schemas(), self.tally)

    @property
    def offered(self) -> tuple[Tool, ...]:
        return tuple(runnable.tool for runnable in self._tools.values())

    def with_tools(self, tools: Sequence[Runnable]) -> Toolbox:
        """A toolbox with these tools; self if they are the same."""
        if [runnable.tool for runnable in tools] == list(self.offered):
            return self
        return Toolbox(tools, self._bounds, self._approve, deps=self._deps, after=self.after)

    def begin(self, parts: Sequence[Part], *, is_cut: bool, tally: CallTally | None = None) -> Calls:
        """The calls of one answer; tally counts the findings about them."""
        self._checking.tally = self.tally = tally if tally is not None else self.tally
        named = [self._offer.named(part) if isinstance(part, ToolCall) else part for part in parts]
        return Calls(self, named, is_cut=is_cut)

    def event_of(self, call: ToolCall, *, is_cut: bool) -> ToolCallEvent | ToolErrorEvent:
        """A ToolErrorEvent if the call is invalid."""
        finding = self._checking.find(call, is_cut=is_cut, may_repair=True)
        if call.name not in self._tools:  # the check finds nothing for calls of other kinds than functions
            finding = UnknownCall()
        match finding:
            case Valid(args=args):
                return ToolCallEvent(id=call.id, name=call.name, arguments=args or {}, raw=call.raw)
            case Repaired(args=args, repairs=repairs):
                return ToolCallEvent(id=call.id, name=call.name, arguments=args, repairs=repairs, raw=call.raw)
            case Invalid() | UnknownCall():
                feedback = self._checking.feedback(call, finding)
                return ToolErrorEvent(
                    id=call.id,
                    name=call.name,
                    kind="invalid" if isinstance(finding, Invalid) else "unknown",
                    message=encode(feedback).decode(),
                    missing=tuple(feedback.get("missing", ())),
                    validation_errors=tuple(feedback.get("validation_errors", ())),
                    received=feedback.get("received"),
                )
            case _:
                return ToolErrorEvent(id=call.id, name=call.name, kind="invalid", message=_CUT)

    async def decision(self, event: ToolCallEvent) -> Decision | None:
        approval = None if self._approve is None else self._approve(event, self._tools[event.name])
        if inspect.isawaitable(approval):
            approval = await approval
        return Decision(is_allowed=approval) if isinstance(approval, bool) else approval

    def run(self, wanted: Sequence[tuple[ToolCall, JsonObject]]) -> AsyncGenerator[FinishedCall | CallProgress, None]:
        runs = [(call, self._tools[call.name], arguments) for call, arguments in wanted]
        return run_all(runs, self._bounds, self._deps)


class Calls:
    """One answer and the results of its calls. messages() is valid at every moment: calls without a result count as interrupted."""

    def __init__(self, toolbox: Toolbox, parts: list[Part], *, is_cut: bool) -> None:
        self._toolbox = toolbox
        self._parts = parts
        self._is_cut = is_cut
        self._results: dict[str, ToolResult] = {}
        self._events: dict[str, ToolCallEvent] = {}  # of the calls that run
        self._is_running = False
        self.has_valid = False

    def messages(self) -> list[Message]:
        calls = [part for part in self._parts if isinstance(part, ToolCall)]
        missing = INTERRUPTED if self._is_running else NOT_MADE
        results = [self._results.get(call.id) or _result(call, missing) for call in calls]
        answer = Message(role="assistant", parts=tuple(self._parts))
        return [answer, *(Message(role="tool", parts=(result,)) for result in results)]

    async def events(self) -> AsyncGenerator[LoopEvent, None]:
        wanted: list[tuple[ToolCall, JsonObject]] = []
        for place, part in enumerate(self._parts):
            if isinstance(part, ToolCall):
                async with aclosing(self._check(place, part, wanted)) as checks:
                    async for event in checks:
                        yield event
        self._is_running = True
        async with aclosing(self._toolbox.run(wanted)) as runs:
            async for ran in runs:
                yield _progress(ran) if isinstance(ran, CallProgress) else self._finished(await self._changed(ran))

    async def _check(
        self, place: int, call: ToolCall, wanted: list[tuple[ToolCall, JsonObject]]
    ) -> AsyncGenerator[LoopEvent, None]:
        event = self._toolbox.event_of(call, is_cut=self._is_cut)
        if isinstance(event, ToolErrorEvent):
            yield self._invalid(call, event)
            return
        self.has_valid = True
        call = self._edit(place, call, event.arguments) if event.repairs else call
        yield event
        decision = await self._toolbox.decision(event)
        if decision is not None:
            edited = event.arguments if decision.arguments is None else decision.arguments
            yield ApprovalEvent(
                id=event.id,
                name=event.name,
                arguments=edited,
                is_allowed=decision.is_allowed,
                reason=decision.reason,
            )
            if not decision.is_allowed:
                yield self._denied(call, decision.reason)
                return
            if edited is not event.arguments:
                call = self._edit(place, call, edited)
                event = self._toolbox.event_of(call, is_cut=False)
                if isinstance(event, ToolErrorEvent):
                    yield self._invalid(call, event)
                    return
        self._events[call.id] = event
        wanted.append((call, event.arguments))

    async def _changed(self, ran: FinishedCall) -> FinishedCall:
        """With the output of the hook."""
        if self._toolbox.after is None:
            return ran
        output = await self._toolbox.after(self._events[ran.call.id], ran.output)
        fault = ran.fault if output.is_error == ran.output.is_error else ("failed" if output.is_error else "")
        return replace(ran, output=output, fault=fault)

    def _edit(self, place: int, call: ToolCall, arguments: JsonObject) -> ToolCall:
        """The conversation has the arguments that the tool got, not those that the model wrote (H023)."""
        edited = replace(call, raw=encode(arguments).decode(), args=arguments)
        self._parts[place] = edited
        return edited

    def _invalid(self, call: ToolCall, event: ToolErrorEvent) -> ToolErrorEvent:
        self._results[call.id] = _result(call, event.message)
        return event

    def _denied(self, call: ToolCall, reason: str) -> ToolErrorEvent:
        message = f"Denied: the user did not allow this call, and it was not made.{' ' + reason if reason else ''}"
        self._results[call.id] = _result(call, message)
        return ToolErrorEvent(id=call.id, name=call.name, kind="denied", message=message)

    def _finished(self, ran: FinishedCall) -> ToolResultEvent | ToolErrorEvent:
        call, output = ran.call, ran.output
        self._results[call.id] = ToolResult(
            call_id=call.id, parts=output.parts, is_error=output.is_error, name=call.name, kind=call.kind
        )
        if not ran.fault:
            return ToolResultEvent(id=call.id, name=call.name, parts=output.parts, seconds=ran.seconds)
        text = "".join(part.text for part in output.parts if isinstance(part, Text))
        kind: Fault = "timeout" if ran.fault == "timeout" else "failed"
        return ToolErrorEvent(id=call.id, name=call.name, kind=kind, message=text, seconds=ran.seconds)


def _result(call: ToolCall, text: str) -> ToolResult:
    return ToolResult(call_id=call.id, parts=(Text(text=text),), is_error=True, name=call.name, kind=call.kind)


def _progress(running: CallProgress) -> StatusEvent:
    call, progress = running.call, running.progress
    share = (
        "" if progress.done is None else f"{progress.done:g}{'' if progress.total is None else f'/{progress.total:g}'}"
    )
    return StatusEvent(
        status="running", detail=" ".join(filter(None, (share, progress.message))), id=call.id, name=call.name
    )
