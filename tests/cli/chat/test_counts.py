"""A chat's counts in the store of its configuration."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from toolwire.cli.chat.counts import ChatCounts
from toolwire.config.file import Config, StoreConfig
from toolwire.memory.store import SqliteStore
from toolwire.server.stats_writer import recorded
from toolwire.telemetry import Record

pytestmark = pytest.mark.slow


def config_of(path: Path) -> Config:
    return Config(store=StoreConfig(kind="sqlite", path=str(path)))


async def requests_in(path: Path) -> int:
    store = SqliteStore(path, max_bytes=8 << 20, max_age=1e9)
    today = int(time.time()) // 86400
    lines = await recorded(store, [today - 1, today])
    await store.close()
    return sum(line.counts.requests for line in lines)


def test_what_was_counted_is_in_the_file_at_the_end(tmp_path: Path) -> None:
    async def main() -> None:
        for number in range(1, 3):
            async with ChatCounts(config_of(tmp_path / "a.db")) as counts:
                counts.history.closed(Record(backend="b", sent_model="m"))
            assert counts.problem == ""
            assert await requests_in(tmp_path / "a.db") == number

    asyncio.run(main())


def test_a_store_in_memory_is_no_place_and_no_problem() -> None:
    async def main() -> None:
        async with ChatCounts(Config(store=StoreConfig(kind="memory"))) as counts:
            counts.history.closed(Record(backend="b", sent_model="m"))
        assert counts.problem == ""

    asyncio.run(main())


def test_a_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_text("no database " * 100)

    async def main() -> None:
        async with ChatCounts(config_of(tmp_path / "a.db")) as counts:
            counts.history.closed(Record(backend="b", sent_model="m"))
        assert counts.problem.startswith("this chat is not counted: ")
        assert str(tmp_path / "a.db") in counts.problem

    asyncio.run(main())


def test_a_default_file_that_cannot_be_written_is_no_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").write_text("a file in place of a folder")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))

    async def main() -> None:
        async with ChatCounts(Config()) as counts:
            counts.history.closed(Record(backend="b", sent_model="m"))
        assert counts.problem == ""

    asyncio.run(main())
