"""Calls looked at while they stream through: counted, named right, and told as text where no tool was offered.

Nothing is held back but a call that must not arrive as one (H090), and nothing is judged before it is known whether the answer was
cut in the middle of it.
"""

from __future__ import annotations

from msgspec.structs import replace

from ..events import Event, Finished, Noted, PartDelta, PartEnded, PartStarted
from ..types import Loss, Request, Text, ToolCall
from .arguments import Invalid
from .counts import Tally
from .parts import PartIndexes
from .validation import Checking, Unknown, cut_choices, words_of

_UNASKED = "though no tool was offered"


class Watch:
    """changed says why the back end's own bytes are no longer what the client should see."""

    def __init__(self, checking: Checking, *, has_tools: bool) -> None:
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
            if isinstance(finding, Invalid | Unknown):
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
                return indexes.insert(Text(text=words_of(call, _UNASKED)), event.choice)
            case PartDelta() | PartEnded() | Noted():
                return indexes.forward(event)
            case _:
                return [event]


class Count:
    """Calls are only counted; one whose arguments are no object is wrong without a schema's help."""

    def __init__(self, tally: Tally) -> None:
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
