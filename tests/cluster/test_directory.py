"""Records of processes and runs: renewed, found by others, and gone with their process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tests.memory.store.contract import Clock
from toolwire.backends.continuation import ResumePoint
from toolwire.cluster.directory import ALIVE, Directory, Peer, job_name, lease_name
from toolwire.memory.store import MemoryStore

POINT = ResumePoint(frozenset({"a", "b"}), "history", "ann")


def play(test: Callable[[Directory, Directory, Clock], Awaitable[None]]) -> None:
    async def main() -> None:
        clock = Clock()
        store = MemoryStore(max_bytes=1 << 20, max_age=1e6, clock=clock)
        names = [Peer(id=name, address=f"http://{name}") for name in ("p1", "p2")]
        first, second = (Directory(store, peer, clock=clock) for peer in names)
        await first.renew()
        await second.renew()
        await test(first, second, clock)
        await store.close()

    asyncio.run(main())


def test_a_lease_is_found_by_others_after_it_is_flushed() -> None:
    async def test(first: Directory, second: Directory, clock: Clock) -> None:
        first.lease("b", POINT, 600)
        assert await second.holder("b", POINT) is None
        await first.flush()
        assert await second.holder("b", POINT) == first.own
        assert await first.holder("b", POINT) is None
        assert await second.holder("other", POINT) is None
        clock.now += 601
        assert await second.holder("b", POINT) is None

    play(test)


def test_a_process_without_a_renewal_holds_nothing() -> None:
    async def test(first: Directory, second: Directory, clock: Clock) -> None:
        first.lease("b", POINT, 600)
        await first.flush()
        clock.now += ALIVE + 1
        assert await second.holder("b", POINT) is None
        await first.renew()
        assert await second.holder("b", POINT) == first.own
        await first.stop()
        assert await second.peers(is_fresh=True) == {}

    play(test)


def test_a_background_answer_is_found() -> None:
    async def test(first: Directory, second: Directory, clock: Clock) -> None:
        await first.note_job("ann", "resp_1")
        assert await second.runner("ann", "resp_1") == first.own
        assert await second.runner("bob", "resp_1") is None

    play(test)


def test_names_differ_by_every_part_and_show_nothing() -> None:
    points = [
        POINT,
        ResumePoint(frozenset({"a"}), "history", "ann"),
        ResumePoint(frozenset({"a", "b"}), "another", "ann"),
        ResumePoint(frozenset({"a", "b"}), "history", "bob"),
    ]
    assert len({lease_name(backend, point) for backend in ("b", "c") for point in points}) == 8
    assert job_name("a", "bc") != job_name("ab", "c")
    assert "ann" not in lease_name("b", POINT)
