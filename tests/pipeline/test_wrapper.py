"""What several answers that become one have in common."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

from toolwire.backends.base import EventReply
from toolwire.events import Event, Noted, Started
from toolwire.pipeline.wrapper import Rounds, WrappedReply
from toolwire.types import Loss, Usage


def test_parts_are_numbered_over_all_answers() -> None:
    rounds = Rounds()
    assert [rounds.place() for _ in range(3)] == [0, 1, 2]


def test_the_beginning_is_sent_once() -> None:
    rounds = Rounds()
    assert [rounds.starts() for _ in range(3)] == [True, False, False]


def test_usage_adds_up() -> None:
    rounds = Rounds()
    rounds.add_usage(None)
    assert rounds.usage is None
    first = Usage(input=1, output=2, cached=3, cache_written=4, reasoning=5, extra={"chat": {"a": 1}})
    rounds.add_usage(first)
    assert rounds.usage is first
    rounds.add_usage(None)
    assert rounds.usage is first
    rounds.add_usage(Usage(input=10, output=20, cached=30, cache_written=40, reasoning=50, extra={"chat": {"b": 1}}))
    assert rounds.usage == Usage(
        input=11, output=22, cached=33, cache_written=44, reasoning=55, extra={"chat": {"a": 1, "b": 1}}
    )


def test_what_a_dialect_counts_adds_up_and_of_its_words_the_last_stays() -> None:
    rounds = Rounds()
    for searches, tier in ((1, "standard"), (0, "priority"), (2, True)):
        extra = {"messages": {"server_tool_use": {"web_search_requests": searches}, "service_tier": tier}}
        rounds.add_usage(Usage(extra=extra))
    assert rounds.usage == Usage(
        extra={"messages": {"server_tool_use": {"web_search_requests": 3}, "service_tier": True}}
    )


def test_details_of_any_depth_are_no_trap() -> None:
    deep: dict[str, Any] = {}
    for _ in range(3000):
        deep = {"x": deep}
    rounds = Rounds()
    rounds.add_usage(Usage(extra={"chat": deep}))
    rounds.add_usage(Usage(input=1, extra={"chat": deep}))
    assert rounds.usage is not None
    assert rounds.usage.input == 1


def test_a_loss_is_reported_once() -> None:
    one, two = Loss("one", "", ""), Loss("two", "", "")
    rounds = Rounds((one,))
    assert rounds.new_losses((one, two, two)) == [Noted(note=two)]
    assert rounds.new_losses((two, one)) == []


class Wire:
    """A reply in bytes of which nobody has read any."""

    headers: Mapping[str, str] = {}
    content_type = ""
    losses: tuple[Loss, ...] = ()
    is_complete = False
    aborted = 0

    async def read(self) -> bytes:
        return b""

    def abort(self) -> None:
        self.aborted += 1


async def _events(log: list[str]) -> AsyncIterator[list[Event]]:
    try:
        yield [Started(id="a", model="m")]
    finally:
        log.append("closed")


def test_closing_stops_the_first_reply_before_it_is_read() -> None:
    async def main() -> None:
        wire = Wire()
        reply = WrappedReply(events=_events([]), first=wire)
        await reply.close()
        assert wire.aborted == 1

    asyncio.run(main())


def test_closing_closes_one_that_is_made_of_events() -> None:
    async def main() -> None:
        log: list[str] = []
        first = EventReply(events=_events(log))
        await anext(first.events)
        await WrappedReply(events=_events(log), first=first).close()
        assert log == ["closed"]

    asyncio.run(main())
