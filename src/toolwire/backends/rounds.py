"""Several answers of the model that become one for the client: what all who do that have to count."""

from __future__ import annotations

from ..events import Event, Noted
from ..types import Loss, Usage


class Rounds:
    """Parts are numbered over all rounds, the beginning is told once, usage adds up, a loss is told once."""

    def __init__(self, losses: tuple[Loss, ...] = ()) -> None:
        self._parts = 0
        self._is_started = False
        self._seen = set(losses)
        self.usage: Usage | None = None

    def place(self) -> int:
        """The index of the next part that the client sees."""
        self._parts += 1
        return self._parts - 1

    def starts(self) -> bool:
        """Whether this is the first of the answers: only one beginning is told."""
        is_first, self._is_started = not self._is_started, True
        return is_first

    def add_usage(self, more: Usage | None) -> None:
        before = self.usage
        if before is None or more is None:
            self.usage = before or more
            return
        self.usage = Usage(
            input=before.input + more.input,
            output=before.output + more.output,
            cached=before.cached + more.cached,
            cache_written=before.cache_written + more.cache_written,
            reasoning=before.reasoning + more.reasoning,
            extra=more.extra,
        )

    def new_losses(self, losses: tuple[Loss, ...]) -> list[Event]:
        fresh = [loss for loss in dict.fromkeys(losses) if loss not in self._seen]
        self._seen.update(fresh)
        return [Noted(note=loss) for loss in fresh]
