"""One model turn: events in, events out, with the guarantees that every client relies on.

Between Started and the terminal event each part starts and ends once. Call ids are present and unique in the turn. A turn with a complete
call that the back end ended with "stop" ends with "tool_calls" (H028), never so for length or refusal. Usage is present, estimated where
the back end sent none. `changed` gives the reason why the client must not get the back end's own bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol, TypeAlias

from msgspec.structs import replace

from ..events import Event, Finished, Noted, PartDelta, PartEnded, PartStarted, Started, content_of
from ..types import Choice, Loss, Opaque, Part, Request, Text, ToolCall, Usage, numbered_id
from .arguments import Invalid
from .parts import PartIndexes
from .tools.encoded_arguments import ArgumentDecoder
from .tools.kinds import CallRestorer
from .tools.names import ToolNames
from .validation import CallTally, CallValidator, UnknownCall, call_text, cut_choices
from .written.splitter import CallSplitter

BYTES_PER_TOKEN = 4
_TYPE_NAME = re.compile(r"[a-z][a-z0-9_]{0,59}")  # it becomes the label of a counter
_UNOFFERED = "though no tool was offered"
MakeSplitter: TypeAlias = Callable[[int], CallSplitter]  # by the index of the first text part


class DeltaFilter(Protocol):
    """Knows which deltas only extend an open part, as nearly all do."""

    def passes(self, delta: PartDelta) -> bool:
        """Whether the delta can be sent as it is. If so it is noted here, and must not be given to send()."""


class CallObserver(Protocol):
    """Sees calls under the names that the back end knows, before all other steps. deltas: which deltas it must see; None for none of them.
    withholds: events that it has received wait to be sent."""

    deltas: DeltaFilter | None
    withholds: bool
    changed: str
    losses: list[Loss]

    def send(self, events: list[Event]) -> list[Event]: ...


class Turn:
    """mint: makes a call id. names: restores calls of tools that were translated to functions. observer: None where the calls were
    checked before. splitter: finds calls in text; built with the first text part. decoder: undoes the encoding that an adapted
    schema asks for."""

    def __init__(
        self,
        request: Request,
        mint: Callable[[str], str],
        names: ToolNames | None = None,
        observer: CallObserver | None = None,
        splitter: MakeSplitter | None = None,
        decoder: ArgumentDecoder | None = None,
    ) -> None:
        self._observer = observer
        self._make_splitter = splitter
        self._splitter: CallSplitter | None = None
        self._decoder = decoder
        self._restorer = CallRestorer(names) if names is not None else None
        self._needs_deltas = self._restorer is not None or decoder is not None
        self.deltas: DeltaFilter | None = self if self._needs_deltas else None  # None: every delta passes
        self._dialect = request.origin
        self._mint = mint
        self._prompt_size = len(request.wire)
        self._wants_usage = request.stream_usage or not request.stream
        self._ids: dict[int, str] = {}
        self._used_ids: set[str] = set()
        self._next_call = request.next_call
        self._calling: set[int] = set()  # choices with a complete call
        self._parts: list[PartEnded] = []
        self.changed = ""
        self.withholds = False  # events of the back end wait, unchanged so far, until they can be sent
        self.calls = 0
        self.usage: Usage | None = None
        self.losses: list[Loss] = []

    def send(self, events: list[Event]) -> list[Event]:
        """The same list where nothing changes."""
        if len(events) == 1 and type(delta := events[0]) is PartDelta:
            if self.deltas is None or self.deltas.passes(delta):
                return events
        elif self._make_splitter is not None:
            self._start_splitter(events, self._make_splitter)
        if self._splitter is not None:
            events = self._splitter.send(events)
            self.changed = self.changed or self._splitter.changed
        if self._decoder is not None:
            events = self._decoder.send(events)
        if self._observer is not None:
            events = self._observer.send(events)
            self.changed = self.changed or self._observer.changed
        if self._restorer is not None:
            events = self._restorer.send(events)
        if self._needs_deltas or self._splitter is not None:
            self.deltas = self
        elif self._observer is not None:
            self.deltas = self._observer.deltas
        self.withholds = self._observer is not None and self._observer.withholds
        is_copied = False
        for position, event in enumerate(events):
            if type(event) is PartDelta or type(event) is Started:
                continue
            sent = self._event(event)
            if sent is not event:
                if not is_copied:
                    events, is_copied = list(events), True
                events[position] = sent
            if type(sent) is PartEnded:
                self._parts.append(sent)
        return events

    def parts(self, first: int = 0) -> list[Part]:
        """The complete parts of the first choice as the client got them, from this index on."""
        return [ended.part for ended in self._parts if ended.choice == 0 and ended.index >= first]

    def all_losses(self) -> list[Loss]:
        return self.losses if self._observer is None else [*self.losses, *self._observer.losses]

    def passes(self, delta: PartDelta) -> bool:
        """For an answer whose text is scanned for calls, too."""
        observer, splitter = self._observer, self._splitter
        if self._needs_deltas or (observer is not None and observer.withholds):
            return False
        if splitter is not None and not splitter.passes(delta):
            return False
        return observer is None or observer.deltas is None or observer.deltas.passes(delta)

    def _start_splitter(self, events: list[Event], make: MakeSplitter) -> None:
        """An answer without text needs no splitter."""
        for event in events:
            if type(event) is PartStarted and type(event.part) is Text:
                self._splitter, self._make_splitter = make(event.index), None
                return

    def _event(self, event: Event) -> Event:
        """Compares types instead of matching patterns, which costs several times as much."""
        if type(event) is PartStarted:
            return self._call_started(event, event.part) if type(event.part) is ToolCall else event
        if type(event) is PartEnded:
            return self._part_ended(event)
        if type(event) is Finished:
            return self._finished(event)
        if type(event) is Noted and type(event.note) is Loss:
            self.losses.append(event.note)
        return event

    def _part_ended(self, event: PartEnded) -> Event:
        part = event.part
        if type(part) is ToolCall:
            self.calls += 1
            self._calling.add(event.choice)
            return _with_id(event, part, self._ids.get(event.index, part.id))
        if type(part) is Opaque and part.dialect != self._dialect:
            kind = part.value.get("type")
            name = kind if isinstance(kind, str) and _TYPE_NAME.fullmatch(kind) else "part"
            self.losses.append(Loss(f"answer.{name}", "answer", "the client's dialect has no such part"))
        return event

    def _call_started(self, event: PartStarted, call: ToolCall) -> Event:
        call_id = call.id
        if self._next_call:  # what the client sends back is known by this number
            call_id, self._next_call = numbered_id(self._next_call), self._next_call + 1
        elif not call_id or call_id in self._used_ids:  # H050, H051: one id, one call
            call_id = self._mint("call_")
            self.changed = self.changed or "a call's id was missing or taken"
        self._used_ids.add(call_id)
        self._ids[event.index] = call_id
        return _with_id(event, call, call_id)

    def _finished(self, event: Finished) -> Event:
        choices = tuple(map(self._with_reason, event.choices))
        usage = event.usage
        if usage is None or not (usage.input or usage.output):
            output = sum(len(content_of(ended.part)) for ended in self._parts)
            usage = Usage(input=max(1, self._prompt_size // BYTES_PER_TOKEN), output=max(1, output // BYTES_PER_TOKEN))
            if self._wants_usage:
                self.changed = self.changed or "usage was missing"
                self.losses.append(Loss("usage", "usage", "the back end gave none; it is estimated"))
        self.usage = usage
        if choices == event.choices and usage is event.usage:
            return event
        return replace(event, choices=choices, usage=usage)

    def _with_reason(self, choice: Choice) -> Choice:
        has_calls = choice.index in self._calling
        if has_calls and choice.reason in ("stop", "other"):
            self.changed = self.changed or "the finish reason hid a call"
            return replace(choice, reason="tool_calls")
        if not has_calls and choice.reason == "tool_calls":
            self.changed = self.changed or "the finish reason promised a call"
            return replace(choice, reason="stop")
        return choice


class CallMonitor:
    """Checks calls while they stream through: corrects their names, counts them and reports invalid ones.

    It withholds only calls of a model that was offered no tool (H090), which become text. Calls are validated at the end of the
    answer, when it is known whether the answer was cut.
    """

    def __init__(self, validator: CallValidator, *, has_tools: bool) -> None:
        self._validator = validator
        self._has_tools = has_tools
        self._ended: list[tuple[int, ToolCall]] = []  # with the number of its choice
        self._indexes: PartIndexes | None = None  # set once a call came that is sent as text
        self._unoffered: set[int] = set()  # parts that are calls of a model without tools
        self.deltas: DeltaFilter | None = None
        self.withholds = False
        self.changed = ""
        self.losses: list[Loss] = []

    def send(self, events: list[Event]) -> list[Event]:
        """The same list where nothing changes."""
        events = self._named(events)
        for event in events:
            if type(event) is PartEnded:
                if type(event.part) is ToolCall:
                    self._ended.append((event.choice, event.part))
            elif type(event) is Finished and self._ended:
                self._validate(cut_choices(event))
        return events

    def passes(self, delta: PartDelta) -> bool:
        return False

    def _named(self, events: list[Event]) -> list[Event]:
        """Calls get the exact names of their tools. Calls of a model without tools become text."""
        if not self._has_tools:
            events = self._without_calls(events)
            if self._indexes is None:
                return events
        is_copied = False
        for position, event in enumerate(events):
            if (type(event) is PartStarted or type(event) is PartEnded) and type(event.part) is ToolCall:
                named = self._validator.offer.named(event.part)
                if named is not event.part:
                    self.changed = self.changed or "the model called a tool by another name"
                    if not is_copied:
                        events, is_copied = list(events), True
                    events[position] = replace(event, part=named)
        return events

    def _validate(self, cut: frozenset[int]) -> None:
        for choice, call in self._ended:
            finding = self._validator.find(call, is_cut=choice in cut, may_repair=False)
            if isinstance(finding, Invalid | UnknownCall):
                self.losses += self._validator.flag(call, finding)
        self._ended.clear()

    def _without_calls(self, events: list[Event]) -> list[Event]:
        """Function calls become texts, each when it is complete; the parts after the first one are renumbered."""
        if self._indexes is None:
            for first in events:
                if type(first) is PartStarted and type(first.part) is ToolCall:
                    break
            else:
                return events
            self._indexes, self.deltas = PartIndexes(first=first.index), self
            self.changed = self.changed or "a call where no tool was offered"
        return [sent for event in events for sent in self._renumbered(event, self._indexes)]

    def _renumbered(self, event: Event, indexes: PartIndexes) -> list[Event]:
        match event:
            case PartStarted(part=ToolCall(kind="function")):
                self._unoffered.add(event.index)
                return []
            case PartStarted():
                return [indexes.open(event)]
            case PartEnded(part=ToolCall() as call) if event.index in self._unoffered:
                tally = self._validator.tally
                tally.made += 1
                tally.unknown += 1
                tally.note(call, "unasked")
                why = "no tool was offered; the call is sent as text"
                self.losses += self._validator.report("call.unasked", call, why)
                return indexes.insert(Text(text=call_text(call, _UNOFFERED)), event.choice)
            case PartDelta() | PartEnded() | Noted():
                return indexes.forward(event)
            case _:
                return [event]


class CallCounter:
    """Only counts calls. One whose arguments are no object is invalid under any schema."""

    def __init__(self, tally: CallTally) -> None:
        self._tally = tally
        self.deltas: DeltaFilter | None = None
        self.withholds = False
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
    """Whether a call may come back at all. A provider that stores the conversation may know tools that the request does not list."""
    state, choice = request.state, request.tool_choice
    if choice is not None and choice.mode == "none":
        return False
    return bool(request.tools) or (state is not None and (state.is_leaning or state.is_upstreams))


def _with_id(event: PartStarted | PartEnded, call: ToolCall, call_id: str) -> Event:
    return event if call_id == call.id else replace(event, part=replace(call, id=call_id))
