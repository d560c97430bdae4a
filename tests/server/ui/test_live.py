"""The stream of changes: flows appear while they are open, change at most ten times a second, and end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

from tests.flows.drafts import begin, finish, recorder
from toolwire.server.ui.live import LiveFeeds


async def next_flows(pieces: AsyncGenerator[bytes]) -> list[Any]:
    """The next piece with events; "reset" for that event."""
    async for piece in pieces:
        if b"event: " in piece:
            blocks = piece.decode().split("\n\n")[:-1]
            return [
                "reset" if block.startswith("event: reset") else json.loads(block.partition("data: ")[2])
                for block in blocks
            ]
    raise AssertionError("the stream has ended")


def test_a_flow_is_sent_when_it_begins_grows_and_ends() -> None:
    async def check() -> None:
        flows = recorder()
        pieces = LiveFeeds(flows).follow()
        assert await anext(pieces) == b": live\n\n"
        draft = begin(flows)
        assert [flow["outcome"] for flow in await next_flows(pieces)] == ["open"]
        draft.record.model = "m"
        draft.client.receive(b"x")
        draft.client.receive(b"y")
        assert [flow["model"] for flow in await next_flows(pieces)] == ["m"]
        finish(draft)
        assert [flow["outcome"] for flow in await next_flows(pieces)] == ["ok"]
        flows.delete()
        assert await next_flows(pieces) == ["reset"]
        await pieces.aclose()
        assert flows.listeners == set()

    asyncio.run(check())


def test_a_reader_that_does_not_read_starts_again() -> None:
    async def check() -> None:
        flows = recorder()
        pieces = LiveFeeds(flows).follow()
        await anext(pieces)
        for _ in range(2001):
            finish(begin(flows))
        found = await next_flows(pieces)
        assert found[0] == "reset"
        assert len(found) < 10
        await pieces.aclose()

    asyncio.run(check())


def test_streams_end_with_the_server_and_their_number_is_limited() -> None:
    async def check() -> None:
        feeds = LiveFeeds(recorder(), most=1)
        pieces = feeds.follow()
        await anext(pieces)
        assert feeds.is_full
        feeds.close()
        assert [piece async for piece in pieces] == []
        assert not feeds.is_full

    asyncio.run(check())
