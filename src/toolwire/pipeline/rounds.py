"""Several answers of the model that become one for the client: what all who do that have to count."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ..backends.base import EventReply, WireReply
from ..events import Event, Noted
from ..types import Loss, Usage

_LEVELS = 4  # of what a dialect counts beside tokens


class Rounds:
    """Parts are numbered over all rounds, the beginning is told once, usage adds up, a loss is told once."""

    def __init__(self, losses: tuple[Loss, ...] = ()) -> None:
        self.count = 0  # parts that the client has seen begin
        self._is_started = False
        self._seen = set(losses)
        self.usage: Usage | None = None

    def place(self) -> int:
        """The index of the next part that the client sees."""
        self.count += 1
        return self.count - 1

    def starts(self) -> bool:
        """Whether this is the first of the answers: only one beginning is told."""
        is_first, self._is_started = not self._is_started, True
        return is_first

    def add_usage(self, more: Usage | None) -> None:
        before = self.usage
        if before is None or more is None:
            self.usage = before or more
            return
        self.usage = before.plus(replace(more, extra=_added(before.extra, more.extra, _LEVELS)))

    def new_losses(self, losses: tuple[Loss, ...]) -> list[Event]:
        fresh = [loss for loss in dict.fromkeys(losses) if loss not in self._seen]
        self._seen.update(fresh)
        return [Noted(note=loss) for loss in fresh]


class RoundsReply(EventReply, kw_only=True):
    """One that begins with another reply, and stops that one too: nobody may have begun to read it."""

    first: WireReply | EventReply

    async def close(self) -> None:
        await super().close()
        if isinstance(self.first, EventReply):
            await self.first.close()
        else:
            self.first.abort()


def _added(before: dict[str, Any], more: dict[str, Any], levels: int) -> dict[str, Any]:
    """Counts add up; of anything else the last word stays."""
    added = before | more
    for name in before.keys() & more.keys():
        old, new = before[name], more[name]
        if isinstance(old, dict) and isinstance(new, dict) and levels:
            added[name] = _added(old, new, levels - 1)
        elif type(old) is int and type(new) is int:
            added[name] = old + new
    return added
