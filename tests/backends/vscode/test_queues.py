"""What waits for one request: in order, bounded, and ended by whatever ends it."""

from __future__ import annotations

import asyncio

import pytest

from toolwire.backends.sessions import SessionLost
from toolwire.backends.vscode.queues import Inbox, Outbox, Overflow
from toolwire.backends.vscode.wire.shapes import End, Parts, TextPart

pytestmark = pytest.mark.slow


def parts(seq: int) -> Parts:
    return Parts(id="r", seq=seq, parts=(TextPart(text="a"),))


def test_frames_are_read_in_order_and_waited_for() -> None:
    async def main() -> None:
        inbox = Inbox("r")
        reading = asyncio.create_task(inbox.next())
        await asyncio.sleep(0)
        assert inbox.put(parts(0), 10)
        assert await reading == parts(0)
        inbox.put(parts(1), 10)
        inbox.put(End(id="r", cancelled=False), 10)
        assert [await inbox.next(), *inbox.ready()] == [parts(1), End(id="r", cancelled=False)]
        assert inbox.ready() == []

    asyncio.run(main())


def test_too_much_that_nobody_reads_is_thrown_away() -> None:
    async def main() -> None:
        inbox = Inbox("r", most=1000)
        assert inbox.put(parts(0), 5000)  # the next one to be read always has room
        assert inbox.put(parts(1), 700)
        assert not inbox.put(parts(2), 10)
        assert inbox.put(parts(3), 10)  # nobody is told twice
        with pytest.raises(Overflow):
            await inbox.next()

    asyncio.run(main())


def test_what_was_read_makes_room() -> None:
    async def main() -> None:
        inbox = Inbox("r", most=1000)
        for seq in range(100):
            assert inbox.put(parts(seq), 500)
            assert await inbox.next() == parts(seq)

    asyncio.run(main())


def test_small_frames_are_not_free() -> None:
    async def main() -> None:
        inbox = Inbox("r", most=10_000)
        assert sum(inbox.put(parts(seq), 1) for seq in range(39)) == 39
        assert not inbox.put(parts(39), 1)

    asyncio.run(main())


def test_what_came_before_the_end_is_still_read() -> None:
    async def main() -> None:
        inbox = Inbox("r")
        inbox.put(parts(0), 10)
        inbox.end(SessionLost("it left"))
        inbox.end(SessionLost("again"))
        assert await inbox.next() == parts(0)
        with pytest.raises(SessionLost, match="it left"):
            await inbox.next()

    asyncio.run(main())


def test_a_reader_that_waits_hears_of_the_end() -> None:
    async def main() -> None:
        inbox = Inbox("r")
        reading = asyncio.create_task(inbox.next())
        await asyncio.sleep(0)
        inbox.end(SessionLost("it left"))
        with pytest.raises(SessionLost, match="it left"):
            await asyncio.wait_for(reading, 1)

    asyncio.run(main())


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
