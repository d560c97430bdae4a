from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from toolwire.backends.base import EventReply
from toolwire.events import Event


def test_closing_stops_the_source_of_the_answer() -> None:
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
