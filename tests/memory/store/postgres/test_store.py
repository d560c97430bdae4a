"""The store in PostgreSQL fulfils the contract, whatever the clocks of the gateways say."""

from __future__ import annotations

import asyncio
import time

import pytest

from tests.memory.store.contract import DAY, MB, StoreContract
from tests.postgres_server import PostgresServer
from toolwire.memory.store import CounterChange, Entry, SharedRecord, Store
from toolwire.memory.store.postgres.store import PostgresStore

pytestmark = pytest.mark.slow


class TestPostgresStore(StoreContract):
    url: str

    @pytest.fixture(autouse=True)
    def _space(self, server: PostgresServer) -> None:
        self.url = server.new_space()

    def open(self, max_bytes: int = 64 * MB, max_age: float = 30 * DAY) -> Store:
        return PostgresStore(self.url, max_bytes=max_bytes, max_age=max_age, clock=self.clock, connections=4)


@pytest.mark.parametrize("step", [-400 * DAY, 400 * DAY])
def test_a_gateway_whose_clock_is_set_deletes_nothing(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch, step: float
) -> None:
    url, now = server.new_space(), time.time()

    async def run() -> None:
        right, wrong = (PostgresStore(url, max_bytes=64 * MB, max_age=30 * DAY, connections=2) for _ in range(2))
        await right.put(Entry(owner="ann", id="one", kind="responses", created=now))
        change = CounterChange("count", 1, 10, now + 600)
        await right.apply([change], put=[SharedRecord("space", "name", b"", now + 600)])
        with monkeypatch.context() as patch:
            patch.setattr(time, "time", lambda: now + step)
            assert await wrong.get("ann", "one") is not None  # starts to look for expired entries
            await wrong.close()
            later = PostgresStore(url, max_bytes=64 * MB, max_age=30 * DAY, connections=2)
            assert await later.kind_of("ann", "one") == "responses"
            await later.put(Entry(owner="ann", id="two", kind="responses", created=now))
            await later.apply([change])
            assert await later.counters(["count"]) == {"count": 2}
            await later.close()
        other = PostgresStore(url, max_bytes=64 * MB, max_age=30 * DAY, connections=2)
        assert await other.get("ann", "two") is not None
        await other.close()
        assert len(await right.records("space")) == 1
        await right.close()

    asyncio.run(run())
