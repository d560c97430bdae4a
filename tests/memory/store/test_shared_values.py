"""Counters and records in SQLite: shared by processes, and harmless for toolwire 0.1. The contract has the rest."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.memory.store.contract import DAY, MB, Clock
from toolwire.memory.store import CounterChange, SharedRecord, SqliteStore
from toolwire.memory.store.schema import VERSION


def test_two_connections_share_a_limit(tmp_path: Path) -> None:
    async def main() -> None:
        stores = [SqliteStore(tmp_path / "state.db", max_bytes=MB, max_age=DAY) for _ in range(2)]
        change = CounterChange("c", 1, limit=25)
        refusals = await asyncio.gather(*(stores[number % 2].apply([change]) for number in range(60)))
        assert refusals.count("") == 25
        assert await stores[1].counters(["c"]) == {"c": 25}
        for store in stores:
            await store.close()

    asyncio.run(main())


def test_the_version_of_the_file_stays_and_expired_rows_go(tmp_path: Path) -> None:
    clock = Clock()

    async def main() -> None:
        store = SqliteStore(tmp_path / "state.db", max_bytes=MB, max_age=DAY, clock=clock)
        for number in range(20):
            await store.apply(put=[SharedRecord("s", str(number), b"", clock.now + 1)])
        clock.now += 2
        for _ in range(3):
            await store.apply([CounterChange("c", 1)])
        await store.close()

    asyncio.run(main())
    with closing(sqlite3.connect(tmp_path / "state.db")) as connection:
        assert connection.execute("SELECT count(*) FROM records").fetchone() == (0,)
        assert connection.execute("PRAGMA user_version").fetchone() == (VERSION,)
