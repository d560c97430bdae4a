"""A summary in front of an answer: one answer for the client."""

from __future__ import annotations

import asyncio

from tests.pipeline.compaction.model import Knower
from toolwire.events import Event, Finished, PartEnded, PartStarted, Started
from toolwire.pipeline.compaction.backend import CompactedBackend, MadeSummary, SummaryBackend
from toolwire.types import Message, Opaque, Request, Text, Usage

PART = Opaque(dialect="responses", value={"type": "compaction", "id": "cmp_1"})
REQUEST = Request(model="m", messages=(Message(role="user", parts=(Text(text="hi"),)),))
MADE = MadeSummary(parts=[PART], usage=Usage(input=7, output=3))


def events_of(backend: CompactedBackend | SummaryBackend) -> list[Event]:
    async def read() -> list[Event]:
        reply = await backend.open(REQUEST, is_verbatim=False)
        return [event async for events in reply.events for event in events]

    return asyncio.run(read())


def test_parts_are_numbered_on_and_usage_is_the_sum() -> None:
    backend = CompactedBackend(Knower(), MADE)
    events = events_of(backend)
    assert isinstance(events[0], Started)
    starts = [(event.index, type(event.part)) for event in events if isinstance(event, PartStarted)]
    assert starts == [(0, Opaque), (1, Text)]
    last = events[-1]
    assert isinstance(last, Finished)
    assert last.usage is not None
    assert (last.usage.input, last.usage.output) == (107, 13)
    again = events_of(backend)  # a correction
    assert [event.part for event in again if isinstance(event, PartEnded)] == [Text(text="I know nothing")]


def test_a_summary_alone_asks_no_model() -> None:
    inner = Knower()
    events = events_of(SummaryBackend(inner, MADE, "compaction"))
    assert [event.part for event in events if isinstance(event, PartEnded)] == [PART]
    assert not inner.requests
