"""Holds the calls of one answer until it is complete: until then a call can still be repaired or dropped.

Text and reasoning are sent at once, up to the first call. Reasoning and text after a call are held with it, because their position is part
of the signature (H080) and of the meaning. An answer that corrects another one comes after what is left of that one: text of the earlier
answer is sent before its own, and while a call of the earlier answer is held, its own text is held, too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ..errors import GatewayError
from ..events import Event, Failed, Finished, Noted, PartDelta, PartEnded, PartStarted, Started, content_of
from ..types import Opaque, Part, Reasoning, Text, ToolCall, Usage
from .arguments import Invalid, Repaired
from .parts import PartIndexes
from .validation import (
    CallValidator,
    CutCall,
    Finding,
    UnknownCall,
    call_text,
    cut_choices,
    fault_text,
    is_open,
    span_of,
    without_span,
)

_UNKNOWN = {"emit": "pass", "text": "text", "error": "error"}


class HeldCall(Struct):
    """finding: set when the answer is complete. is_dropped: it repeats a call of an earlier answer."""

    part: ToolCall
    choice: int
    finding: Finding | None = None
    is_dropped: bool = False

    @property
    def fault(self) -> Invalid | UnknownCall | None:
        return self.finding if isinstance(self.finding, Invalid | UnknownCall) else None

    @property
    def why(self) -> str:
        """What is wrong with it, to follow its name; "" where nothing is."""
        return "" if self.fault is None else fault_text(self.fault)


class HeldText(Struct):
    """A thought, or text behind a call."""

    part: Reasoning | Text
    choice: int


Held: TypeAlias = HeldCall | HeldText


class HeldAnswer:
    """place: returns the index of the next part that the client sees. starts: this is the first of several answers.

    earlier: valid output of earlier answers that was not sent yet.
    """

    def __init__(
        self,
        checking: CallValidator,
        place: Callable[[], int],
        starts: Callable[[], bool],
        earlier: Iterable[Held] = (),
    ) -> None:
        self._checking = checking
        self._indexes = PartIndexes(place)
        self._starts = starts
        self._parts: dict[int, Part | Held] = {}
        self._earlier = deque(earlier)
        self._calling = {held.choice for held in self.accepted}  # choices that have begun to call
        self.held: list[Held] = []
        self.has_sent = False
        self.finished: Finished | None = None
        self.error: GatewayError | None = None

    @property
    def is_over(self) -> bool:
        return self.finished is not None or self.error is not None

    @property
    def is_cut(self) -> bool:
        """The answer ended early, so the model is not asked to correct it."""
        return self.finished is None or bool(cut_choices(self.finished))

    @property
    def calls(self) -> list[HeldCall]:
        return [held for held in self.held if isinstance(held, HeldCall)]

    @property
    def wrong(self) -> list[HeldCall]:
        return [held for held in self.calls if held.fault is not None]

    @property
    def accepted(self) -> list[HeldCall]:
        """Right calls of earlier answers."""
        return [held for held in self._earlier if isinstance(held, HeldCall)]

    @property
    def right(self) -> list[Held]:
        """What can be sent unchanged: valid calls and the text between them, those of earlier answers first."""
        return [*self._earlier, *(held for held in self.held if isinstance(held, HeldText) or _is_right(held))]

    @property
    def parts(self) -> tuple[Part, ...]:
        """The whole answer, repaired calls as they are now (H023)."""
        return tuple(part.part if isinstance(part, HeldCall | HeldText) else part for part in self._parts.values())

    def send(self, events: list[Event]) -> list[Event]:
        kept: list[Event] = []
        for event in events:
            if self.is_over:
                break
            kept += self._event(event)
        return kept

    def released(self, policy: str, unknown: str = "correct") -> list[Event]:
        """The events of everything held. policy: what becomes of invalid calls; unknown: of calls of unknown tools."""
        events = [event for held in self._earlier for event in self._let_go(held)]
        for held in self.held:
            if isinstance(held, HeldCall) and held.fault is not None:
                is_unknown = isinstance(held.fault, UnknownCall) and unknown != "correct"
                events += self._given_up(held, held.fault, _UNKNOWN[unknown] if is_unknown else policy)
            elif isinstance(held, HeldText) or _is_right(held):
                events += self._let_go(held)
        return events

    def words(self) -> list[Event]:
        """The held text alone, for an answer that fails."""
        waiting = (*self._earlier, *self.held)
        said = [held for held in waiting if isinstance(held, HeldText) and content_of(held.part)]
        return [event for held in said for event in self._let_go(held)]

    def _let_go(self, held: Held) -> list[Event]:
        part: Part = held.part
        if isinstance(part, ToolCall) and (span := span_of(part)):  # the answer was cut in it
            part = Text(text=span)
        elif isinstance(part, ToolCall) and is_open(part):  # it must not look whole
            part = replace(part, raw=part.raw.rstrip().removesuffix("}"), args=None)
        return self._indexes.insert(part, held.choice)

    def _event(self, event: Event) -> list[Event]:
        match event:
            case PartDelta():
                return self._indexes.forward(event)
            case Started():
                return [event] if self._starts() else []
            case PartStarted():
                return self._started(event)
            case PartEnded():
                return self._ended(event)
            case Noted():
                return self._noted(event)
            case Finished():
                self.finished = event
                self._judge(cut_choices(event))
                return []
            case Failed():
                self.error = event.error
                return []

    def _started(self, event: PartStarted) -> list[Event]:
        if (held := self._holds(event)) is not None:
            self.held.append(held)
            self._parts[event.index] = held
            return []
        self.has_sent = True
        earlier = self._words_before()
        self._parts[event.index] = event.part
        return [*earlier, self._indexes.open(event)]

    def _words_before(self) -> list[Event]:
        """Held text of earlier answers, up to their first held call."""
        events: list[Event] = []
        while self._earlier and isinstance(self._earlier[0], HeldText):
            events += self._let_go(self._earlier.popleft())
        return events

    def _holds(self, event: PartStarted) -> Held | None:
        match event.part:
            case ToolCall() as call:
                self._calling.add(event.choice)
                return HeldCall(call, event.choice)
            case (Reasoning() | Text()) as words if event.choice in self._calling:
                return HeldText(words, event.choice)
            case _:
                return None

    def _ended(self, event: PartEnded) -> list[Event]:
        match self._parts[event.index], event.part:
            case HeldCall() as held, ToolCall() as call:
                held.part = call
                return []
            case HeldText() as held_words, (Reasoning() | Text()) as words:
                held_words.part = words
                return []
            case _:
                self._parts[event.index] = event.part
                return self._indexes.forward(event)

    def _noted(self, event: Noted) -> list[Event]:
        # Opaque events between the parts describe one answer, and the client may get another.
        is_void = event.index is None and isinstance(event.note, Opaque | Usage)
        return [] if is_void else self._indexes.forward(event)

    def _judge(self, cut: frozenset[int]) -> None:
        for held in self.calls:
            call = self._checking.decoded(self._checking.offer.named(held.part))
            held.finding = self._checking.find(call, is_cut=held.choice in cut, may_repair=True)
            if isinstance(held.finding, Repaired):
                call = replace(call, raw=held.finding.raw, args=held.finding.args)
            held.part = without_span(call) if held.fault is None and not isinstance(held.finding, CutCall) else call

    def _given_up(self, held: HeldCall, fault: Invalid | UnknownCall, policy: str) -> list[Event]:
        call = held.part
        part = Text(text=call_text(call, held.why)) if policy == "text" or span_of(call) else call
        flags = [Noted(note=loss) for loss in self._checking.flag(call, fault)]
        return [*self._indexes.insert(part, held.choice), *flags]


def _is_right(held: HeldCall) -> bool:
    return held.fault is None and not held.is_dropped
