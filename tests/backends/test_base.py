from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping

import pytest

from toolwire.backends.base import EventReply, is_streamed
from toolwire.events import Event
from toolwire.types import Loss, Request


class Told:
    """A reply that says of itself what it is."""

    headers: Mapping[str, str] = {}
    losses: tuple[Loss, ...] = ()
    is_complete = True

    def __init__(self, content_type: str) -> None:
        self.content_type = content_type

    async def read(self) -> bytes:
        return b""

    def abort(self) -> None:
        pass


@pytest.mark.parametrize(
    ("content_type", "is_asked", "expected"),
    [
        ("text/event-stream; charset=utf-8", False, True),
        ("Text/Event-Stream", True, True),
        ("application/json", True, False),
        ("", True, True),
        ("text/plain", True, True),
        ("", False, False),
        ("text/html", False, False),
    ],
)
def test_a_reply_is_what_it_calls_itself_else_what_was_asked_for(
    content_type: str, is_asked: bool, expected: bool
) -> None:
    assert is_streamed(Told(content_type), Request(model="m", messages=(), stream=is_asked)) is expected


def test_closing_stops_whoever_makes_the_answer() -> None:
    ended: list[str] = []

    async def made() -> AsyncIterator[list[Event]]:
        try:
            while True:
                yield []
        finally:
            ended.append("now")

    async def main() -> None:
        reply = EventReply(events=made())
        async for _ in reply.events:
            break
        assert not ended
        await reply.close()
        assert ended == ["now"]

    asyncio.run(main())


def test_closing_an_answer_that_is_no_generator_does_nothing() -> None:
    class Events:
        def __aiter__(self) -> AsyncIterator[list[Event]]:
            return self

        async def __anext__(self) -> list[Event]:
            raise StopAsyncIteration

    asyncio.run(EventReply(events=Events()).close())
