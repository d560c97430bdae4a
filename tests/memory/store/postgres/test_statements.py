"""Two gateways at once: no deadlock, no lost item, no entry without its items."""

from __future__ import annotations

import asyncio
import random

import pytest

from tests.memory.store.contract import DAY, MB, answer, conversation, items
from tests.postgres_server import PostgresServer
from toolwire.memory.store import CounterChange, Item
from toolwire.memory.store.postgres.statements import chain_of
from toolwire.memory.store.postgres.store import PostgresStore

pytestmark = pytest.mark.slow


def test_gateways_write_the_same_entries_without_deadlocks(server: PostgresServer) -> None:
    url = server.new_space()

    async def work(store: PostgresStore, seed: int) -> None:
        choice = random.Random(seed)
        for _ in range(60):
            names = [str(number) for number in range(8)]
            choice.shuffle(names)
            await store.put(answer(names[0], output=tuple(Item(name, b"1") for name in names)))
            assert await store.append("ann", "c", [Item(name, names[0].encode()) for name in names[:4]])
            await store.apply([CounterChange(name, 1) for name in names])
            await store.find_items("ann", names)

    async def main() -> None:
        stores = [PostgresStore(url, max_bytes=64 * MB, max_age=DAY, connections=3) for _ in range(2)]
        await stores[0].put(conversation("c"))
        await asyncio.gather(*(work(stores[seed % 2], seed) for seed in range(6)))
        assert await stores[0].counters(["0", "7"]) == {"0": 360, "7": 360}
        assert len(await stores[1].items("ann", "c")) == 8
        for store in stores:
            await store.close()

    asyncio.run(main())


def test_an_append_beside_a_deletion_leaves_no_items(server: PostgresServer) -> None:
    url = server.new_space()

    async def main() -> None:
        stores = [PostgresStore(url, max_bytes=64 * MB, max_age=DAY, connections=2) for _ in range(2)]
        for number in range(40):
            await stores[0].put(conversation("c"))
            await asyncio.gather(
                stores[0].append("ann", "c", items(f"i{number}")), stores[1].delete("ann", "c"), return_exceptions=False
            )
            await stores[0].delete("ann", "c")
            assert await stores[1].find_items("ann", [f"i{number}"]) == {}
        for store in stores:
            await store.close()

    asyncio.run(main())


def test_rows_without_the_wanted_id_are_no_chain() -> None:
    assert chain_of([], "a") is None
    assert chain_of([], "") is None
