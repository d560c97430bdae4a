"""Back ends for one request whose conversation was compacted: the summary alone, or in front of the answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ...backends.base import Backend, EventReply
from ...calls.parts import PartIndexes
from ...events import Event, Failed, Finished, Noted, PartEnded, PartStarted, Started
from ...ids import new_id
from ...types import Choice, Loss, Opaque, Request, Usage
from ..answer import ReplyReader
from ..wrapper import BackendWrapper, Rounds, wrap_reply

_HOW = "compaction"


class MadeSummary(Struct, frozen=True, kw_only=True):
    """parts: the summary for the client, and what comes before it. notes: events about the last one. usage: of its requests."""

    parts: Sequence[Opaque]
    notes: Sequence[Opaque] = ()
    usage: Usage | None = None
    losses: tuple[Loss, ...] = ()

    def events(self) -> list[Event]:
        events: list[Event] = []
        for index, part in enumerate(self.parts):
            events.append(PartStarted(index=index, part=part))
            if index == len(self.parts) - 1:
                events += [Noted(note=note, index=index) for note in self.notes]
            events.append(PartEnded(index=index, part=part))
        return events


class SummaryBackend(BackendWrapper):
    """Answers with the summary, and asks no model."""

    def __init__(self, inner: Backend, made: MadeSummary, reason: str) -> None:
        super().__init__(inner)
        self._made = made
        self._choice = Choice(reason="stop", raw_reason=reason)

    async def open(self, request: Request, *, is_verbatim: bool) -> EventReply:
        return EventReply(events=self._events(request), losses=self._made.losses, how=_HOW)

    async def _events(self, request: Request) -> AsyncIterator[list[Event]]:
        finished = Finished(choices=(self._choice,), usage=self._made.usage)
        yield [Started(id=new_id("resp_"), model=request.model), *self._made.events(), finished]


class CompactedBackend(BackendWrapper):
    """Answers the request, which has the summary already, and puts the summary in front of the answer."""

    def __init__(self, inner: Backend, made: MadeSummary) -> None:
        super().__init__(inner)
        self._made = made
        self._is_shown = False

    async def open(self, request: Request, *, is_verbatim: bool) -> EventReply:
        reply = await self._inner.open(request, is_verbatim=False)
        reader = ReplyReader(reply, self._inner.dialect, request)
        if self._is_shown:  # the request for a correction: the client has the summary
            return wrap_reply(reply, reader.events(), how=_HOW)
        self._is_shown = True
        return wrap_reply(reply, self._events(reader), self._made.losses, _HOW)

    async def _events(self, reader: ReplyReader) -> AsyncIterator[list[Event]]:
        rounds = Rounds()
        rounds.add_usage(self._made.usage)
        rounds.count = len(self._made.parts)
        indexes, is_over = PartIndexes(rounds.place), False
        try:
            async for events in reader.events():
                sent: list[Event] = []
                for event in events:
                    match event:
                        case Started():
                            sent += [event, *self._made.events()]
                        case PartStarted():
                            sent.append(indexes.open(event))
                        case Finished():
                            is_over = True
                            rounds.add_usage(event.usage)
                            sent.append(replace(event, usage=rounds.usage))
                        case Failed():
                            sent.append(event)
                        case _:
                            sent += indexes.forward(event)
                yield sent
        finally:
            await reader.release(is_over=is_over)
