"""The way to a window: in order, bounded, and known to be full."""

from __future__ import annotations

import asyncio

import pytest

from toolwire.backends.vscode.outbox import Outbox

pytestmark = pytest.mark.slow


def test_what_is_put_in_comes_out_in_order() -> None:
    async def main() -> None:
        outbox = Outbox()
        assert outbox.put("a")
        assert outbox.put("b")
        waiting = asyncio.create_task(_all(outbox))
        await asyncio.sleep(0)
        outbox.put("c")
        outbox.close()
        assert not outbox.put("d")
        assert await waiting == ["a", "b", "c"]

    asyncio.run(main())


def test_a_window_that_does_not_read_is_given_up() -> None:
    async def main() -> None:
        outbox = Outbox(most=100)
        assert outbox.put("a" * 200)  # one always has room
        assert not outbox.put("b")
        assert outbox.full.is_set()
        await outbox.next()
        assert not outbox.put("c")  # it is too late

    asyncio.run(main())


def test_those_who_can_wait_for_room() -> None:
    async def main() -> None:
        outbox = Outbox()
        outbox.put("a" * 300_000)
        waiting = asyncio.create_task(outbox.room())
        await asyncio.sleep(0.01)
        assert not waiting.done()
        await outbox.next()
        await asyncio.wait_for(waiting, 1)
        outbox.put("a" * 300_000)
        waiting = asyncio.create_task(outbox.room())
        await asyncio.sleep(0)
        outbox.close()
        await asyncio.wait_for(waiting, 1)

    asyncio.run(main())


async def _all(outbox: Outbox) -> list[str]:
    found: list[str] = []
    while (text := await outbox.next()) is not None:
        found.append(text)
    return found
