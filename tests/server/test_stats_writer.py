"""Counts in the store: several processes add up, a restart loses nothing, and a store that fails costs nothing else."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.server.harness import ask, gateway, server_config
from toolwire.calls.validation import CallTally
from toolwire.config.file import Config, StoreConfig, with_backends
from toolwire.errors import InternalError, UpstreamError
from toolwire.memory.store import Item, Store
from toolwire.memory.store.memory import MemoryStore
from toolwire.memory.store.sqlite import SqliteStore
from toolwire.server.stats_writer import OWNER, Recorder, day_name, recorded
from toolwire.telemetry import Record
from toolwire.telemetry.hourly import HOUR, HourlyCounts
from toolwire.telemetry.quality import CallQuality

DAY = 20_000
NOON = DAY * 86400 + 12 * HOUR


def memory(path: Path) -> Store:
    return MemoryStore(max_bytes=1 << 20, max_age=1e9)


def sqlite(path: Path) -> Store:
    return SqliteStore(path / "store.db", max_bytes=8 << 20, max_age=1e9)


def counting(*backends: str, now: float = NOON) -> HourlyCounts:
    history = HourlyCounts(lambda: now)
    for backend in backends:
        history.closed(Record(backend=backend, sent_model="m"))
    return history


def no_error(error: InternalError, request_id: str) -> None:
    raise AssertionError(error)


async def requests_in(store: Store, *days: int) -> dict[str, int]:
    found: dict[str, int] = {}
    for line in await recorded(store, days):
        found[line.backend] = found.get(line.backend, 0) + line.counts.requests
    return found


@pytest.mark.parametrize("opened", [memory, sqlite])
def test_processes_add_up_and_writing_again_does_not(opened: Callable[[Path], Store], tmp_path: Path) -> None:
    async def main() -> None:
        store = opened(tmp_path)
        first, second = counting("a", "a", "b"), counting("a")
        writers = [Recorder(store, first, no_error), Recorder(store, second, no_error)]
        for writer in (*writers, *writers):
            await writer.write()
        assert await requests_in(store, DAY) == {"a": 3, "b": 1}
        first.closed(Record(backend="a", sent_model="m"))
        await writers[0].write()
        assert await requests_in(store, DAY) == {"a": 4, "b": 1}
        assert await requests_in(store, DAY - 1, DAY + 1) == {}
        await store.close()

    asyncio.run(main())


def test_a_restart_resumes_from_what_is_stored(tmp_path: Path) -> None:
    async def life() -> None:
        store = sqlite(tmp_path)
        writer = Recorder(store, counting("a", "b"), no_error)
        writer.start()
        await writer.stop()
        await store.close()

    async def main() -> None:
        await life()
        await life()
        store = sqlite(tmp_path)
        assert await requests_in(store, DAY) == {"a": 2, "b": 2}
        await store.close()

    asyncio.run(main())


def test_hours_of_two_days_go_to_their_days() -> None:
    async def main() -> None:
        store = memory(Path())
        now = [float(NOON)]
        history = HourlyCounts(lambda: now[0])
        for hours in range(0, 36, 6):
            now[0] = NOON + hours * HOUR
            history.closed(Record(backend="a", sent_model="m"))
        await Recorder(store, history, no_error).write()
        assert [await requests_in(store, day) for day in (DAY, DAY + 1)] == [{"a": 2}, {"a": 4}]

    asyncio.run(main())


def test_many_lines_are_all_written(tmp_path: Path) -> None:
    async def main() -> None:
        store = sqlite(tmp_path)
        history = HourlyCounts(lambda: NOON)
        for number in range(300):
            history.closed(Record(backend=f"b{number % 3}", sent_model=f"m{number}"))
        await Recorder(store, history, no_error).write()
        assert await requests_in(store, DAY) == {"b0": 100, "b1": 100, "b2": 100}
        assert history.unwritten() == []
        await store.close()

    asyncio.run(main())


class Failing(MemoryStore):
    is_well = False

    async def append(self, owner: str, conversation: str, items: object) -> bool:
        if not self.is_well:
            raise UpstreamError("the disk is full.")
        return await super().append(owner, conversation, items)  # type: ignore[arg-type] # handed on


def test_what_a_store_did_not_take_is_written_the_next_time() -> None:
    async def main() -> None:
        store = Failing(max_bytes=1 << 20, max_age=1e9)
        writer = Recorder(store, counting("a"), no_error, every=0.01)
        writer.start()
        await asyncio.sleep(0.05)
        assert await requests_in(store, DAY) == {}
        store.is_well = True
        await asyncio.sleep(0.05)
        assert await requests_in(store, DAY) == {"a": 1}
        await store.close()
        await writer.stop()

    asyncio.run(main())


class Faulty(MemoryStore):
    """A store with a mistake in it: what it raises first is no error of the tree."""

    attempts = 0

    async def append(self, owner: str, conversation: str, items: object) -> bool:
        self.attempts += 1
        if self.attempts <= 2:
            raise ZeroDivisionError("a mistake")
        return await super().append(owner, conversation, items)  # type: ignore[arg-type] # handed on


def test_an_unexpected_error_is_reported_once_and_writing_continues() -> None:
    async def main() -> None:
        reported: list[InternalError] = []
        store = Faulty(max_bytes=1 << 20, max_age=1e9)
        writer = Recorder(store, counting("a"), lambda error, _: reported.append(error), every=0.001)
        writer.start()
        async with asyncio.timeout(20):
            while await requests_in(store, DAY) != {"a": 1}:
                await asyncio.sleep(0)
        await writer.stop()
        assert [type(error.__cause__) for error in reported] == [ZeroDivisionError]

    asyncio.run(main())


def test_stopping_does_not_fail_where_writing_does() -> None:
    async def main() -> None:
        reported: list[InternalError] = []
        writer = Recorder(
            Faulty(max_bytes=1 << 20, max_age=1e9), counting("a"), lambda error, _: reported.append(error)
        )
        writer.start()
        await writer.stop()
        assert len(reported) == 1

    asyncio.run(main())


def test_damaged_lines_are_passed_over() -> None:
    async def main() -> None:
        store = memory(Path())
        await Recorder(store, counting("a"), no_error).write()
        await store.append(OWNER, day_name(DAY), [Item("x", b"{}"), Item("y", b"no")])
        assert await requests_in(store, DAY) == {"a": 1}

    asyncio.run(main())


def test_a_gateway_stores_its_counts_in_its_file(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    config = Config(server=server_config(), store=StoreConfig(kind="sqlite", path=str(file)))
    body = {"model": "demo/echo-tools", "messages": [{"role": "user", "content": "hi"}]}
    for _ in range(2):
        with gateway(with_backends(config, ())) as running:
            assert ask(running.port, "POST", "/v1/chat/completions", body).status == 200
            assert ask(running.port, "POST", "/v1/chat/completions", body | {"model": "nobody/none"}).status == 404

    async def main() -> None:
        store = SqliteStore(file, max_bytes=512 << 20, max_age=1e9)
        today = int(time.time()) // 86400
        lines = await recorded(store, [today - 1, today])
        await store.close()
        assert {(line.backend, line.model) for line in lines} == {("demo", "echo-tools")}
        assert sum(line.counts.requests for line in lines) == 2
        assert sum(line.counts.tokens_out for line in lines) > 0

    asyncio.run(main())


def test_the_quality_of_calls_is_measured_from_the_counts_of_all_processes() -> None:
    async def main() -> None:
        store, now = memory(Path()), time.time()
        for accepted in (20, 10):  # two processes
            history = HourlyCounts(lambda: now)
            tally = CallTally(made=20, invalid=20 - accepted)
            history.closed(Record(backend="a", sent_model="m", tally=tally))
            await Recorder(store, history, no_error).write()
        quality = CallQuality()
        reader = Recorder(store, HourlyCounts(), no_error, quality, every=3600)
        reader.start()
        while quality.share("a", "m") is None:
            await asyncio.sleep(0.01)
        assert quality.share("a", "m") == 0.75
        await reader.stop()

    asyncio.run(asyncio.wait_for(main(), 60))
