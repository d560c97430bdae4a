"""One answer as events, for whoever runs the tools here; what is to be remembered of it is kept, as of any other."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing

from ..calls.turn import Turn
from ..dialects.base import garbage
from ..errors import GatewayError
from ..events import Event, Failed, Finished
from ..memory.signatures import Recall
from ..telemetry import Record
from ..types import Loss, Part
from .reader import Reading


class Answering:
    """One answer under way. Whoever reads it calls release() at the end, however it came about."""

    def __init__(self, reading: Reading, turn: Turn, record: Record, recall: Recall | None = None) -> None:
        self._reading = reading
        self._turn = turn
        self._record = record
        self._recall = recall
        self._losses: list[Loss] = []

    def lose(self, losses: Iterable[Loss]) -> None:
        self._losses += losses

    @property
    def parts(self) -> list[Part]:
        """Those that are complete."""
        return self._turn.parts()

    async def events(self) -> AsyncGenerator[list[Event], None]:
        """Until it ends, in Finished or Failed: it always does."""
        try:
            async with aclosing(self._reading.events()) as read:  # type: ignore[type-var] # a generator, though it does not say so
                async for given in read:
                    events = self._turn.send(given)
                    last = next((event for event in events if isinstance(event, Finished | Failed)), None)
                    if isinstance(last, Finished) and self._recall is not None and self._turn.calls:
                        self._losses += await self._recall.keep(self._turn.parts())
                    yield events
                    if last is not None:
                        await self._reading.finish()
                        self._note(last)
                        return
            ending = Failed(error=garbage("the back end's answer has no end."))
        except GatewayError as error:
            ending = Failed(error=error)
        self._note(ending)
        yield [ending]

    async def release(self) -> None:
        await self._reading.release()

    def _note(self, last: Finished | Failed) -> None:
        record, turn = self._record, self._turn
        record.usage, record.losses = turn.usage, [*self._losses, *turn.all_losses()]
        if isinstance(last, Failed):
            record.outcome, record.error = "error", last.error.code
