"""Eviction with two gateways: neither removes what the other has just used."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from tests.memory.store.contract import DAY, MB, Clock, answer
from tests.postgres_server import PostgresServer
from toolwire.memory.store.postgres.store import PostgresStore

pytestmark = pytest.mark.slow


def test_a_branch_in_use_keeps_its_trunk_and_the_other_branch_goes(server: PostgresServer) -> None:
    url, clock = server.new_space(), Clock()

    async def main() -> None:
        store = PostgresStore(url, max_bytes=MB, max_age=DAY, connections=2, clock=clock)
        await store.put(answer("trunk"))
        for branch in ("used", "idle"):
            await store.put(answer(branch, previous="trunk", body=b"x" * 20_000))
        for number in range(60):
            await store.put(answer(f"x{number}", body=b"x" * 40_000))
            await store.kind_of("ann", "used")
        assert await store.get("ann", "idle") is None
        assert [entry.id for entry in await store.chain("ann", "used") or []] == ["trunk", "used"]
        await store.close()

    asyncio.run(main())


def test_two_gateways_stay_below_the_limit_together(server: PostgresServer) -> None:
    url = server.new_space()

    async def main() -> None:
        stores = [PostgresStore(url, max_bytes=MB, max_age=DAY, connections=2) for _ in range(2)]
        for number in range(80):
            await stores[number % 2].put(answer(f"a{number}", body=b"x" * 30_000))
        for store in stores:
            await store.close()
        connection = await asyncpg.connect(url)  # reading through a store would be a use, while the other one evicts
        rows = await connection.fetch("SELECT id FROM toolwire_entries")
        await connection.close()
        present = sorted(int(row["id"].removeprefix(b"a")) for row in rows)
        assert 15 <= len(present) <= 70
        assert present == list(range(80 - len(present), 80))

    asyncio.run(main())
