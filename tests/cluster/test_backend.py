"""A run continues in its own process, whichever process gets the request; without that process a new run starts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.cluster.nodes import Process, Runs, answer, asking, continuing, processes, run_of
from toolwire.backends.base import EventReply
from toolwire.errors import UpstreamError
from toolwire.memory.store import MemoryStore


def play(test: Callable[[list[Process], MemoryStore], Awaitable[None]], number: int = 2) -> None:
    async def main() -> None:
        store = MemoryStore(max_bytes=8 << 20, max_age=1e6)
        async with processes(store, number) as started:
            await test(started, store)
        await store.close()

    asyncio.run(main())


def test_a_continuation_reaches_the_run_from_every_process() -> None:
    async def test(started: list[Process], store: MemoryStore) -> None:
        request = asking()
        events = await answer(started[0].backends["runs"], request)
        name = run_of(events)
        for step in range(1, 9):
            request = continuing(request, events)
            events = await answer(started[step % 3].backends["runs"], request)
            assert run_of(events) == name
        assert [len(process.runs.parking) for process in started] == [1, 0, 0]

    play(test, 3)


def test_another_owner_or_another_history_gets_a_new_run() -> None:
    async def test(started: list[Process], store: MemoryStore) -> None:
        request = asking()
        events = await answer(started[0].backends["runs"], request)
        for other in (asking(owner="bob"), asking("another question")):
            found = await answer(started[1].backends["runs"], continuing(other, events))
            assert run_of(found) != run_of(events)

    play(test)


def test_a_dead_process_is_replaced_by_a_new_run() -> None:
    async def test(started: list[Process], store: MemoryStore) -> None:
        request = asking()
        events = await answer(started[0].backends["runs"], request)
        started[0].die()
        found = await answer(started[1].backends["runs"], continuing(request, events))
        assert run_of(found) != run_of(events)
        assert len(started[1].runs.parking) == 1

    play(test)


def test_a_run_that_is_gone_is_replaced_by_a_new_one() -> None:
    async def test(started: list[Process], store: MemoryStore) -> None:
        request = asking()
        events = await answer(started[0].backends["runs"], request)
        await started[0].runs.parking.close()
        found = await answer(started[1].backends["runs"], continuing(request, events))
        assert run_of(found) != run_of(events)

    play(test)


def test_a_process_with_another_secret_gets_and_gives_nothing() -> None:
    async def test(started: list[Process], store: MemoryStore) -> None:
        stranger = Process(store, "another secret of another cluster")
        await stranger.listen()
        request = asking()
        events = await answer(started[0].backends["runs"], request)
        found = await answer(stranger.backends["runs"], continuing(request, events))
        assert run_of(found) != run_of(events)
        assert len(started[0].runs.parking) == 1
        await stranger.close()

    play(test, 1)


def test_a_client_that_disconnects_stops_the_run_in_its_process() -> None:
    async def test(started: list[Process], store: MemoryStore) -> None:
        request = asking()
        events = await answer(started[0].backends["runs"], request)
        started[0].runs.waits = asyncio.Event()
        reply = await started[1].backends["runs"].open(continuing(request, events), is_verbatim=False)
        assert isinstance(reply, EventReply)
        assert await anext(reply.events.__aiter__())
        await reply.close()
        async with asyncio.timeout(5):
            while not started[0].runs.stopped:
                await asyncio.sleep(0.01)

    play(test)


def test_a_process_that_dies_in_the_middle_of_an_answer_is_an_error() -> None:
    async def test(started: list[Process], store: MemoryStore) -> None:
        request = asking()
        events = await answer(started[0].backends["runs"], request)
        started[0].runs.waits = asyncio.Event()
        reply = await started[1].backends["runs"].open(continuing(request, events), is_verbatim=False)
        assert isinstance(reply, EventReply)
        iterator = reply.events.__aiter__()
        await anext(iterator)
        started[0].die()
        with pytest.raises(UpstreamError):
            await anext(iterator)
        await reply.close()

    play(test)


def test_the_error_of_the_back_end_is_the_answer() -> None:
    async def test(started: list[Process], store: MemoryStore) -> None:
        request = asking()
        events = await answer(started[0].backends["runs"], request)
        started[0].runs.fault = UpstreamError("busy", status=429, code="rate_limited", headers={"retry-after": "7"})
        with pytest.raises(UpstreamError) as caught:
            await answer(started[1].backends["runs"], continuing(request, events))
        assert (caught.value.status, caught.value.headers) == (429, {"retry-after": "7"})

    play(test)


def test_what_only_one_process_has_is_reached_from_all() -> None:
    async def test(started: list[Process], store: MemoryStore) -> None:
        here, there = started[0].backends["windows"], started[1]
        assert here.absence is not None
        with pytest.raises(UpstreamError, match="no window"):
            await answer(here, asking())
        there.windows.window = "a window"
        async with asyncio.timeout(10):
            while here.absence is not None:
                await asyncio.sleep(0.05)
        assert run_of(await answer(here, asking())) == "a window"
        assert [model.id for model in await here.models()] == ["model of a window"]

    play(test)


def test_without_its_store_a_process_answers_alone() -> None:
    async def main() -> None:
        store = MemoryStore(max_bytes=8 << 20, max_age=1e6)
        process = Process(store)
        await process.listen()
        await store.close()
        request = asking()
        events = await answer(process.backends["runs"], request)
        found = await answer(process.backends["runs"], continuing(request, events))
        assert run_of(found) == run_of(events)
        assert isinstance(process.runs, Runs)
        await process.close()

    asyncio.run(main())
