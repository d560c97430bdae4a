"""What was found of the calls of one answer, for the counters."""

from __future__ import annotations

from collections import Counter
from typing import Literal

from msgspec import Struct, field

from ..types import ToolCall
from .tools.names import is_legal

_MOST_CALLS = 100  # that are named; all are counted
_LONGEST = 100  # characters of an id or a name
_NAMELESS = "a name that no tool can have"
_UNKNOWN = ("unknown", "barred", "unasked")


class CallMade(Struct, frozen=True):
    """One call for the log. outcome: right, repaired, invalid, unknown (no such tool), barred (may not be called now), unasked (no
    tool was offered), cut (the answer ended in it), unchecked."""

    id: str
    name: str
    outcome: str


class LocalCall(Struct, frozen=True, kw_only=True):
    """A tool that the gateway ran itself because the back end's agent asked for it. confinement: how a command was confined."""

    name: str
    outcome: Literal["ok", "failed", "refused"]
    seconds: float
    confinement: str = ""


class Tally(Struct, kw_only=True):
    """made counts every call of an answer that came to its end, also those that the client never saw.

    invalid: its arguments did not fit, before any repair. corrected: in its place a later round gave one that fits.
    """

    made: int = 0
    invalid: int = 0
    repaired: int = 0
    unknown: int = 0  # calls of tools that nobody offered
    cut: int = 0  # calls that the answer ended in
    corrections: int = 0  # times that the model was asked again
    corrected: int = 0
    refused: int = 0  # times that the back end took the request for it as wrong (400)
    exhausted: int = 0  # answers in which calls stayed wrong to the end of the corrections
    held_seconds: float = 0.0
    last_round: int = 0  # the index of the first part that came from the last time the model was asked
    repairs: Counter[str] = field(default_factory=Counter)  # by what was done
    calls: list[CallMade] = []

    def note(self, call: ToolCall, outcome: str) -> None:
        """For the log, where a name that is no name may be a word of the arguments."""
        if len(self.calls) < _MOST_CALLS:
            name = call.name[:_LONGEST] if outcome not in _UNKNOWN or is_legal(call.name) else _NAMELESS
            self.calls.append(CallMade(call.id[:_LONGEST], name, outcome))

    @property
    def unknown_names(self) -> tuple[str, ...]:
        """Tools that the model called and nobody offered, each once."""
        return tuple(dict.fromkeys(call.name for call in self.calls if call.outcome in _UNKNOWN))

    @property
    def accepted(self) -> int:
        """Calls that fitted as the model wrote them."""
        return self.made - self.invalid - self.unknown - self.cut
