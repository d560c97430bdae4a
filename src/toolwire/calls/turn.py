"""One model turn: events in, events out, with the promises that every client may rely on.

Between Started and the terminal event each part starts and ends once; call ids are there and unique in the turn; a turn with a complete call that
the back end ended with "stop" ends with "tool_calls" (H028), never so for length or refusal; usage is there, estimated if the back end gave none.
Whatever had to be changed is said in `changed`, for then the back end's own bytes are no longer what the client should see.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec
from msgspec.structs import replace

from ..events import Event, Failed, Finished, Noted, PartDelta, PartEnded, PartStarted, Started
from ..types import Choice, Loss, Opaque, Part, Request, Text, ToolCall, Usage
from .arguments import Invalid
from .parts import PartIndexes
from .tools.encoded_arguments import ArgumentDecoder
from .tools.kinds import CallRestorer
from .tools.names import ToolNames
from .validation import CallTally, CallValidator, UnknownCall, call_text, cut_choices
from .written.splitter import CallSplitter

BYTES_PER_TOKEN = 4


class CallObserver(Protocol):
    """Looks at calls by the names that the back end knows, before anything else does. is_holding: of some calls it keeps the deltas."""

    is_holding: bool
    changed: str
    losses: list[Loss]

    def send(self, events: list[Event]) -> list[Event]: ...


class Turn:
    """mint makes a new call id; names restores calls of a request that was lowered to functions; watch judges them, and is
    None where somebody has done so already; spoken finds those that stand in the text; decoder undoes what the back end's form
    of the schemas made the model write, where nobody has done so already."""

    def __init__(
        self,
        request: Request,
        mint: Callable[[str], str],
        names: ToolNames | None = None,
        watch: CallObserver | None = None,
        spoken: CallSplitter | None = None,
        decoder: ArgumentDecoder | None = None,
    ) -> None:
        self._watch = watch
        self._spoken = spoken
        self._decoder = decoder
        self._restorer = CallRestorer(names) if names is not None else None
        self._needs_deltas = self._restorer is not None or decoder is not None
        self._is_holding = self._needs_deltas
        self._dialect = request.origin
        self._mint = mint
        self._prompt_size = len(request.wire)
        self._wants_usage = request.stream_usage or not request.stream
        self._ids: dict[int, str] = {}
        self._taken: set[str] = set()
        self._written = 0
        self._calls: set[int] = set()
        self._parts: list[PartEnded] = []
        self.changed = ""
        self.calls = 0
        self.usage: Usage | None = None
        self.losses: list[Loss] = []

    def send(self, events: list[Event]) -> list[Event]:
        """The same list where nothing had to change, so that a plain stream costs little."""
        if self._spoken is not None:
            events = self._spoken.send(events)
            self.changed = self.changed or self._spoken.changed
        if len(events) == 1 and not self._is_holding:
            event = events[0]
            if type(event) is PartDelta:
                self._written += len(event.text)
                return events
        if self._decoder is not None:
            events = self._decoder.send(events)
        if self._watch is not None:
            events = self._watch.send(events)
            self.changed = self.changed or self._watch.changed
            self._is_holding = self._needs_deltas or self._watch.is_holding
        if self._restorer is not None:
            events = self._restorer.send(events)
        is_copied = False
        for position, event in enumerate(events):
            if type(event) is PartDelta:
                self._written += len(event.text)
                continue
            kept = self._event(event)
            if kept is not event:
                if not is_copied:
                    events, is_copied = list(events), True
                events[position] = kept
            if type(kept) is PartEnded:
                self._parts.append(kept)
        return events

    def parts(self, first: int = 0) -> list[Part]:
        """The complete parts of the first choice as the client got them, from this index on."""
        return [ended.part for ended in self._parts if ended.choice == 0 and ended.index >= first]

    def all_losses(self) -> list[Loss]:
        return self.losses if self._watch is None else [*self.losses, *self._watch.losses]

    def passes(self, delta: PartDelta) -> bool:
        """Whether this is more of a part that is open, and nothing else; if so, it has been noted and must not be sent."""
        if self._is_holding or (self._spoken is not None and not self._spoken.passes(delta)):
            return False
        self._written += len(delta.text)
        return True

    def _event(self, event: Event) -> Event:
        match event:
            case PartStarted(part=ToolCall()):
                return self._call_started(event)
            case PartEnded(part=ToolCall()):
                return self._call_ended(event)
            case Finished():
                return self._finished(event)
            case PartEnded(part=Opaque() as part) if part.dialect != self._dialect:
                kind = str(part.value.get("type", "part"))[:60]
                self.losses.append(Loss(f"answer.{kind}", "answer", "the client's dialect has no such part"))
                return event
            case Noted(note=Loss() as loss):
                self.losses.append(loss)
                return event
            case Started() | PartStarted() | PartEnded() | PartDelta() | Noted() | Failed():
                return event

    def _call_started(self, event: PartStarted) -> Event:
        call = event.part
        assert isinstance(call, ToolCall)
        call_id = call.id
        if not call_id or call_id in self._taken:  # H050, H051: one id, one call
            call_id = self._mint("call_")
            self.changed = self.changed or "a call's id was missing or taken"
        self._taken.add(call_id)
        self._ids[event.index] = call_id
        if call_id == call.id:
            return event
        return msgspec.structs.replace(event, part=msgspec.structs.replace(call, id=call_id))

    def _call_ended(self, event: PartEnded) -> Event:
        call = event.part
        assert isinstance(call, ToolCall)
        self.calls += 1
        self._calls.add(event.choice)
        call_id = self._ids.get(event.index, call.id)
        if call_id == call.id:
            return event
        return msgspec.structs.replace(event, part=msgspec.structs.replace(call, id=call_id))

    def _finished(self, event: Finished) -> Event:
        choices = tuple(self._reasoned(choice) for choice in event.choices)
        usage = event.usage
        if usage is None or not (usage.input or usage.output):
            usage = self._estimate()
            if self._wants_usage:
                self.changed = self.changed or "usage was missing"
                self.losses.append(Loss("usage", "usage", "the back end gave none; it is estimated"))
        self.usage = usage
        if choices == event.choices and usage is event.usage:
            return event
        return msgspec.structs.replace(event, choices=choices, usage=usage)

    def _reasoned(self, choice: Choice) -> Choice:
        has_calls = choice.index in self._calls
        if has_calls and choice.reason in ("stop", "other"):
            self.changed = self.changed or "the finish reason hid a call"
            return msgspec.structs.replace(choice, reason="tool_calls")
        if not has_calls and choice.reason == "tool_calls":
            self.changed = self.changed or "the finish reason promised a call"
            return msgspec.structs.replace(choice, reason="stop")
        return choice

    def _estimate(self) -> Usage:
        return Usage(
            input=max(1, self._prompt_size // BYTES_PER_TOKEN), output=max(1, self._written // BYTES_PER_TOKEN)
        )


_UNASKED = "though no tool was offered"


class CallMonitor:
    """changed says why the back end's own bytes are no longer what the client should see."""

    def __init__(self, checking: CallValidator, *, has_tools: bool) -> None:
        self._checking = checking
        self._has_tools = has_tools
        self._ended: list[tuple[int, ToolCall]] = []  # with the number of its choice
        self._indexes: PartIndexes | None = None  # set once a call came that is sent as text
        self._unoffered: set[int] = set()  # parts that are calls of a model without tools
        self.is_holding = False
        self.changed = ""
        self.losses: list[Loss] = []

    def send(self, events: list[Event]) -> list[Event]:
        """The same list where nothing had to change."""
        if not self._has_tools:
            events = self._without_calls(events)
        kept = [event if type(event) is PartDelta else self._event(event) for event in events]
        return events if kept == events else kept

    def _event(self, event: Event) -> Event:
        match event:
            case PartStarted(part=ToolCall() as call) | PartEnded(part=ToolCall() as call):
                named = self._checking.offer.named(call)
                if isinstance(event, PartEnded):
                    self._ended.append((event.choice, named))
                if named is call:
                    return event
                self.changed = self.changed or "the model called a tool by another name"
                return replace(event, part=named)
            case Finished():
                self._judge(cut_choices(event))
                return event
            case _:
                return event

    def _judge(self, cut: frozenset[int]) -> None:
        for choice, call in self._ended:
            finding = self._checking.find(call, is_cut=choice in cut, may_repair=False)
            if isinstance(finding, Invalid | UnknownCall):
                self.losses += self._checking.flag(call, finding)
        self._ended.clear()

    def _without_calls(self, events: list[Event]) -> list[Event]:
        """Function calls become texts, each when it is complete; the parts after the first one are renumbered."""
        if self._indexes is None:
            calls = (event for event in events if isinstance(event, PartStarted) and isinstance(event.part, ToolCall))
            first = next(calls, None)
            if first is None:
                return events
            self._indexes, self.is_holding = PartIndexes(first=first.index), True
            self.changed = self.changed or "a call where no tool was offered"
        return [sent for event in events for sent in self._renumbered(event, self._indexes)]

    def _renumbered(self, event: Event, indexes: PartIndexes) -> list[Event]:
        match event:
            case PartStarted(part=ToolCall(kind="function")):
                self._unoffered.add(event.index)
                return []
            case PartStarted():
                return [indexes.open(event)] if indexes.get(event.index) is None else [event]
            case PartEnded(part=ToolCall() as call) if event.index in self._unoffered:
                self._checking.tally.made += 1
                self._checking.tally.unknown += 1
                self._checking.tally.note(call, "unasked")
                why = "no tool was offered; the call is sent as text"
                self.losses += self._checking.tell("call.unasked", call, why)
                return indexes.insert(Text(text=call_text(call, _UNASKED)), event.choice)
            case PartDelta() | PartEnded() | Noted():
                return indexes.forward(event)
            case _:
                return [event]


class CallCounter:
    """Calls are only counted; one whose arguments are no object is wrong without a schema's help."""

    def __init__(self, tally: CallTally) -> None:
        self._tally = tally
        self.is_holding = False
        self.changed = ""
        self.losses: list[Loss] = []

    def send(self, events: list[Event]) -> list[Event]:
        for event in events:
            if isinstance(event, PartEnded) and isinstance(event.part, ToolCall):
                self._tally.made += 1
                is_invalid = event.part.kind == "function" and event.part.args is None
                self._tally.invalid += is_invalid
                self._tally.note(event.part, "invalid" if is_invalid else "unchecked")
        return events


def has_tools(request: Request) -> bool:
    """Whether a call may come back at all; what the provider itself remembers or has been told elsewhere may offer some."""
    state, choice = request.state, request.tool_choice
    if choice is not None and choice.mode == "none":
        return False
    return bool(request.tools) or (state is not None and (state.is_leaning or state.is_upstreams))
