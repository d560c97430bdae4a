"""What was found of the calls of one answer, for the counters."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct, field


class Tally(Struct, kw_only=True):
    """made counts every call the model made, also those that the client never saw.

    invalid: its arguments did not fit, before any repair. corrected: in its place a later round gave one that fits.
    """

    made: int = 0
    invalid: int = 0
    repaired: int = 0
    unknown: int = 0  # calls of tools that nobody offered
    cut: int = 0  # calls that the answer ended in
    corrections: int = 0  # times that the model was asked again
    corrected: int = 0
    exhausted: int = 0  # answers in which calls stayed wrong to the end of the corrections
    held_seconds: float = 0.0
    repairs: Counter[str] = field(default_factory=Counter)  # by what was done

    @property
    def accepted(self) -> int:
        """Calls that fitted as the model wrote them."""
        return self.made - self.invalid - self.unknown - self.cut
