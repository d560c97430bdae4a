"""Which flow came before another one in the same conversation."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Container

from .record import FlowSummary

_MAX_CONVERSATIONS = 20_000


class ConversationIndex:
    """Numbers of flows by conversation. Flows that are evicted are forgotten when they are met."""

    def __init__(self) -> None:
        self._numbers: dict[str, list[int]] = {}

    def add(self, summary: FlowSummary) -> None:
        if not summary.conversation:
            return
        if len(self._numbers) > _MAX_CONVERSATIONS:
            del self._numbers[next(iter(self._numbers))]
        numbers = self._numbers.setdefault(summary.conversation, [])
        place = bisect_left(numbers, summary.seq)
        if numbers[place : place + 1] != [summary.seq]:
            insort(numbers, summary.seq)

    def previous(self, summary: FlowSummary, existing: Container[int]) -> int | None:
        """The number of the last flow before this one that still exists."""
        numbers = self._numbers.get(summary.conversation, [])
        place = bisect_left(numbers, summary.seq) - 1
        while place >= 0 and numbers[place] not in existing:
            del numbers[place]
            place -= 1
        return numbers[place] if place >= 0 else None

    def clear(self) -> None:
        self._numbers.clear()
