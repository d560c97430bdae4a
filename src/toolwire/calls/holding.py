"""One answer of the model whose calls wait until it is whole: only then can a call still be repaired, or taken back.

Text and reasoning leave at once. What the model thought between two calls keeps its place between them, because that place is
part of its proof (H080), so it waits with them.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from ..events import Event, Failed, Finished, Noted, PartDelta, PartEnded, PartStarted, Started, content_of, emptied
from ..types import Opaque, Part, Reasoning, Text, ToolCall, Usage
from .arguments import Invalid, Repaired
from .checking import Checking, Finding, Unknown, loss_of, reason_of, words_of

_ENDS_EARLY = ("length", "refused")


class Held(Struct):
    """A part that waits; finding is there once the answer is whole, for calls."""

    part: Part
    choice: int
    finding: Finding | None = None
    is_dropped: bool = False

    @property
    def is_wrong(self) -> bool:
        return isinstance(self.finding, Invalid | Unknown)


class Holding:
    """place gives the index of the next part that the client sees, starts whether this is the first of several answers."""

    def __init__(self, checking: Checking, place: Callable[[], int], starts: Callable[[], bool]) -> None:
        self._checking = checking
        self._place = place
        self._starts = starts
        self._places: dict[int, int] = {}
        self._open: dict[int, Held] = {}
        self._held: list[Held] = []
        self._said: list[Part | Held] = []
        self.finished: Finished | None = None
        self.is_over = False

    @property
    def is_cut(self) -> bool:
        """It ended before the model wanted to; it is not asked again for what is missing."""
        return self.finished is None or any(choice.reason in _ENDS_EARLY for choice in self.finished.choices)

    @property
    def calls(self) -> list[Held]:
        return [held for held in self._held if isinstance(held.part, ToolCall)]

    @property
    def said(self) -> tuple[Part, ...]:
        """The whole answer, repaired calls as they are now (H023)."""
        return tuple(part.part if isinstance(part, Held) else part for part in self._said)

    def send(self, events: list[Event]) -> list[Event]:
        kept: list[Event] = []
        for event in events:
            if self.is_over:
                break
            kept += self._event(event)
        return kept

    def released(self, policy: str) -> list[Event]:
        """All that waited, as it may leave: policy says what becomes of calls that are still wrong."""
        events: list[Event] = []
        for held in self._held:
            if held.is_dropped:
                continue
            events += self._given_up(held, policy) if held.is_wrong else self.let_go(held)
        return events

    def let_go(self, held: Held) -> list[Event]:
        return self._events(held.part, held.choice)

    def _event(self, event: Event) -> list[Event]:
        match event:
            case PartDelta():
                place = self._places.get(event.index)
                return [] if place is None else [PartDelta(place, event.text, event.logprobs)]
            case Started():
                return [event] if self._starts() else []
            case PartStarted():
                return self._started(event)
            case PartEnded():
                return self._ended(event)
            case Noted():
                return self._noted(event)
            case Finished():
                self.is_over, self.finished = True, event
                self._judge()
                return []
            case Failed():
                self.is_over = True
                return [event]

    def _started(self, event: PartStarted) -> list[Event]:
        is_between = isinstance(event.part, Reasoning) and bool(self._held)
        if isinstance(event.part, ToolCall) or is_between:
            self._open[event.index] = Held(event.part, event.choice)
            self._held.append(self._open[event.index])
            return []
        self._places[event.index] = self._place()
        return [replace(event, index=self._places[event.index])]

    def _ended(self, event: PartEnded) -> list[Event]:
        if (held := self._open.pop(event.index, None)) is not None:
            held.part = event.part
            self._said.append(held)
            return []
        self._said.append(event.part)
        return [replace(event, index=self._places[event.index])]

    def _noted(self, event: Noted) -> list[Event]:
        if event.index is not None:
            place = self._places.get(event.index)
            return [] if place is None else [replace(event, index=place)]
        # Events of its own between the parts tell of one answer, and the client may get another.
        return [] if isinstance(event.note, Opaque | Usage) else [event]

    def _judge(self) -> None:
        for held in self.calls:
            assert isinstance(held.part, ToolCall)
            call = self._checking.offer.named(held.part)
            held.finding = self._checking.find(call, is_cut=self.is_cut, may_repair=True)
            if isinstance(held.finding, Repaired):
                call = replace(call, raw=held.finding.raw, args=held.finding.args)
            held.part = call

    def _given_up(self, held: Held, policy: str) -> list[Event]:
        call, finding = held.part, held.finding
        assert isinstance(call, ToolCall)
        assert isinstance(finding, Invalid | Unknown)
        flag = Noted(note=loss_of(call, finding))
        if policy == "text":
            return [*self._events(Text(text=words_of(call, reason_of(finding))), held.choice), flag]
        return [*self._events(call, held.choice), flag]

    def _events(self, part: Part, choice: int) -> list[Event]:
        place, content = self._place(), content_of(part)
        events: list[Event] = [PartStarted(index=place, part=emptied(part), choice=choice)]
        if content:
            events.append(PartDelta(place, content))
        return [*events, PartEnded(index=place, part=part, choice=choice)]
