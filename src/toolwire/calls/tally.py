"""What was found of the calls of one answer, for the counters."""

from __future__ import annotations

from collections import Counter
from typing import Literal

from msgspec import Struct, field


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

    @property
    def accepted(self) -> int:
        """Calls that fitted as the model wrote them."""
        return self.made - self.invalid - self.unknown - self.cut
