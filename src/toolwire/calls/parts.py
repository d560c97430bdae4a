"""The one renumberer of part indexes: an answer that gains or loses parts on its way to the client keeps its indexes dense."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from msgspec.structs import replace

from ..events import Event, Noted, PartDelta, PartEnded, PartStarted, content_of, emptied
from ..types import Part, Text


class PartIndexes:
    """Maps the part indexes of one back-end answer to those that the client sees.

    A part that was not opened here is hidden, with every event that refers to it. Parts below `first` keep their indexes.
    allocate: returns the client's next index; several answers that become one share it.
    """

    def __init__(self, allocate: Callable[[], int] | None = None, first: int = 0) -> None:
        self.allocate = allocate or count(first).__next__
        self._first = first
        self._indexes: dict[int, int] = {}

    def open(self, event: PartStarted) -> PartStarted:
        """The event under the client's next index."""
        if event.index < self._first:
            return event
        index = self._indexes[event.index] = self.allocate()
        return event if index == event.index else replace(event, index=index)

    def get(self, index: int) -> int | None:
        """The client's index of a part; None while it is hidden."""
        return self._indexes.get(index, index if index < self._first else None)

    def hide(self, index: int) -> None:
        self._indexes.pop(index, None)

    def forward(self, event: PartDelta | PartEnded | Noted) -> list[Event]:
        """The event under the client's index, nothing if its part is hidden."""
        if event.index is None:
            return [event]
        index = self.get(event.index)
        if index == event.index:
            return [event]
        if index is None:
            return []
        if isinstance(event, PartDelta):
            return [PartDelta(index, event.text, event.logprobs)]
        return [replace(event, index=index)]

    def insert(self, part: Part, choice: int) -> list[Event]:
        """The events of a whole part that the back end did not send, or not here."""
        return part_events(self.allocate(), part, choice)


def part_events(index: int, part: Part, choice: int) -> list[Event]:
    """The events of a whole part."""
    content = content_of(part)
    events: list[Event] = [PartStarted(index=index, part=emptied(part), choice=choice)]
    if content:
        events.append(PartDelta(index, content))
    if isinstance(part, Text):
        events += [Noted(note=citation, index=index) for citation in part.citations]
    return [*events, PartEnded(index=index, part=part, choice=choice)]
