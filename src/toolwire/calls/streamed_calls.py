"""Repairs calls while they stream: what no repair can change is sent as it comes, the rest of a call when it is valid.

The end of a call that is JSON is checked at once. One that is not may be the place where the answer was cut, and nothing is added to a
call that was cut. So it waits until the answer goes on or ends. Calls end in the order in which they began, also if their server ends them in
another one.
"""

from __future__ import annotations

from collections.abc import Set

from msgspec.structs import replace

from ..events import Event, Failed, Finished, PartDelta, PartEnded, PartStarted
from ..types import Text, ToolCall
from .arguments import Invalid, Repaired
from .arguments.stream import ArgumentStream
from .parts import part_events
from .turn import CallMonitor
from .validation import (
    CallValidator,
    CutCall,
    UnknownCall,
    call_text,
    cut_choices,
    fault_text,
    is_open,
    span_of,
    without_span,
)

_REPAIRED = "a call was repaired"
_NONE: frozenset[int] = frozenset()


class CallRepairer(CallMonitor):
    def __init__(self, validator: CallValidator, *, has_tools: bool) -> None:
        super().__init__(validator, has_tools=has_tools)
        self._streams: dict[int, _StreamedCall] = {}

    def passes(self, delta: PartDelta) -> bool:
        """For several calls at once. What waits must be sent before the delta."""
        call = self._streams.get(delta.index)
        return not self.withholds and (call is None or call.arguments.passes(delta))

    def send(self, events: list[Event]) -> list[Event]:
        """The same list where nothing changes."""
        streams = self._streams
        if len(events) == 1 and type(delta := events[0]) is PartDelta:
            if (call := streams.get(delta.index)) is None:
                return self._named(events)
            ready = call.arguments.feed(delta.text)
            self._note_waiting()
            if ready == delta.text:
                return events
            return [PartDelta(delta.index, ready)] if ready else []
        events = self._named(events)
        if len(events) == 1:
            sent = self._event(events[0], _NONE)
        elif all(type(event) is PartDelta for event in events):
            sent = self._grown(events)  # type: ignore[arg-type] # checked above
        else:
            ended = {event.index for event in events if type(event) is PartEnded}
            sent = [one for event in events for one in self._event(event, ended)]
        self._note_waiting()
        return events if sent == events else sent

    def _note_waiting(self) -> None:
        streams = self._streams
        if self._indexes is not None:
            return
        if not streams:
            self.withholds, self.deltas = False, None
        elif len(streams) == 1:
            [call] = streams.values()
            self.withholds = call.waits
            self.deltas = self if self.withholds else call.arguments
        else:
            self.withholds, self.deltas = any(call.waits for call in streams.values()), self

    def _grown(self, deltas: list[PartDelta]) -> list[Event]:
        """Most reads of a long call have only deltas, so this is the fast form of _event."""
        streams, sent = self._streams, list[Event]()
        for delta in deltas:
            call = streams.get(delta.index)
            if call is None or call.arguments.passes(delta):
                sent.append(delta)
            else:
                sent += call.grown(delta)
        return sent

    def _event(self, event: Event, ended: Set[int]) -> list[Event]:
        """ended: the parts that end in the same batch of events."""
        match event:
            case PartStarted():
                before = self._resolved(_NONE, event.choice) if self._streams else []
                return before + self._started(event, is_whole=event.index in ended)
            case PartDelta(index=index) if index in self._streams:
                return self._streams[index].grown(event)
            case PartEnded(part=ToolCall() as call):
                if event.index not in self._streams:
                    self._ended.append((event.choice, call))
                    return [event]
                streamed = self._streams[event.index]
                streamed.ended = event
                streamed.is_whole = call.args is not None and not (call.extra and is_open(call))
                return self._complete(event.choice)
            case Finished():
                cut = cut_choices(event)
                self._validate(cut)
                return [*self._resolved(cut), event] if self._streams else [event]
            case Failed():
                self._streams.clear()
                return [event]
            case _:
                return [event]

    def _started(self, event: PartStarted, *, is_whole: bool) -> list[Event]:
        arguments = self._validator.stream(event.part, event.index) if isinstance(event.part, ToolCall) else None
        if arguments is None:
            return [event]
        waits = any(not before.is_begun and before.start.choice == event.choice for before in self._streams.values())
        self._streams[event.index] = call = _StreamedCall(event, arguments)
        if is_whole or waits:
            arguments.hold("it is complete" if is_whole else "a call before it waits")
            return []
        call.is_begun = True
        return [event]

    def _complete(self, choice: int) -> list[Event]:
        """The calls up to the last one that is JSON: the answer went on after the others."""
        ended = self._ended_in_order(choice)
        while ended and not self._streams[ended[-1]].is_whole:
            ended.pop()
        return [one for index in ended for one in self._finished(index, is_cut=False)]

    def _ended_in_order(self, choice: int) -> list[int]:
        """Calls that ended, up to the first one that did not."""
        found: list[int] = []
        for index, call in self._streams.items():
            if call.start.choice != choice:
                continue
            if call.ended is None:
                break
            found.append(index)
        return found

    def _resolved(self, cut: frozenset[int], choice: int | None = None) -> list[Event]:
        """The calls that wait for the answer to go on, of one choice or of all."""
        waiting = (
            [index for index, call in self._streams.items() if call.ended is not None]
            if choice is None
            else self._ended_in_order(choice)
        )
        return [one for index in waiting for one in self._finished(index, is_cut=self._choice(index) in cut)]

    def _choice(self, index: int) -> int:
        return self._streams[index].start.choice

    def _finished(self, index: int, *, is_cut: bool) -> list[Event]:
        streamed = self._streams.pop(index)
        ended, arguments = streamed.ended, streamed.arguments
        assert ended is not None
        assert isinstance(ended.part, ToolCall)
        call, sent, rest = ended.part, arguments.sent, arguments.rest()
        finding = self._validator.find(call, is_cut=is_cut, may_repair=True, sent=sent)
        match finding:
            case Repaired():
                self.changed = self.changed or _REPAIRED
                call = without_span(replace(call, raw=finding.raw, args=finding.args))
                rest = finding.raw[len(sent) :]
            case Invalid() | UnknownCall():
                self.losses += self._validator.flag(call, finding)
            case CutCall() if is_open(call):  # it must not look whole
                self.changed = self.changed or "a call was cut"
                rest = rest.rstrip().removesuffix("}")
                call = replace(call, raw=sent + rest, args=None)
        if call.extra and span_of(call) and not streamed.is_begun and not isinstance(finding, Repaired):
            self.changed = self.changed or "a call cannot be read"
            why = "" if isinstance(finding, CutCall) or not isinstance(finding, Invalid) else fault_text(finding)
            return part_events(index, Text(text=call_text(call, why)), ended.choice)
        begun: list[Event] = [] if streamed.is_begun else [streamed.start]
        grown: list[Event] = [PartDelta(index, rest)] if rest else []
        return [*begun, *grown, ended if call is ended.part else replace(ended, part=call)]


class _StreamedCall:
    """A call that is sent while it grows. is_begun: its start was sent. ended: its end, if that waits. is_whole: it ended and is JSON."""

    def __init__(self, start: PartStarted, arguments: ArgumentStream) -> None:
        self.start = start
        self.arguments = arguments
        self.is_begun = False
        self.ended: PartEnded | None = None
        self.is_whole = False

    @property
    def waits(self) -> bool:
        return self.arguments.is_waiting or self.ended is not None or not self.is_begun

    def grown(self, event: PartDelta) -> list[Event]:
        ready = self.arguments.feed(event.text)
        if ready == event.text:
            return [event]
        return [PartDelta(event.index, ready)] if ready else []
