"""The measured quality of tool calls: which share of them was valid as the model wrote them, by back end and model."""

from __future__ import annotations

from collections.abc import Iterable

from .hourly import Counts, HourLine

_LEAST_CALLS = 20  # below which a share means nothing


class CallQuality:
    """Of the lines of the last update."""

    def __init__(self) -> None:
        self._shares: dict[tuple[str, str], float] = {}

    def update(self, lines: Iterable[HourLine]) -> None:
        """lines: all that count, of all processes."""
        sums: dict[tuple[str, str], Counts] = {}
        for line in lines:
            sums.setdefault((line.backend, line.model), Counts()).add(line.counts)
        self._shares = {
            key: counts.accepted / counts.calls for key, counts in sums.items() if counts.calls >= _LEAST_CALLS
        }

    def share(self, backend: str, model: str) -> float | None:
        """None if too few calls were counted. model: the name that the back end received."""
        return self._shares.get((backend, model))
