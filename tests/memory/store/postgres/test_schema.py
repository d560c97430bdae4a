"""The tables: created once by many gateways that start together, and refused if they are of a later version."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from tests.memory.store.contract import DAY, MB, answer
from tests.postgres_server import PostgresServer
from toolwire.errors import ConfigError
from toolwire.memory.store.postgres.schema import VERSION
from toolwire.memory.store.postgres.store import PostgresStore

pytestmark = pytest.mark.slow


def opened(url: str) -> PostgresStore:
    return PostgresStore(url, max_bytes=MB, max_age=DAY, connections=2)


def test_gateways_that_start_together_create_the_tables_once(server: PostgresServer) -> None:
    url = server.new_space()

    async def main() -> None:
        stores = [opened(url) for _ in range(8)]
        assert await asyncio.gather(*(store.open() for store in stores)) == [""] * 8
        await stores[0].put(answer("a"))
        assert await stores[7].get("ann", "a") == answer("a")
        for store in stores:
            await store.close()

    asyncio.run(main())


@pytest.mark.parametrize("is_compatible", [True, False])
def test_tables_of_a_later_version(server: PostgresServer, is_compatible: bool) -> None:
    url = server.new_space()

    async def main() -> None:
        first = opened(url)
        await first.put(answer("a"))
        await first.close()
        connection = await asyncpg.connect(url)
        later = VERSION + 1
        await connection.execute(
            "UPDATE toolwire_schema SET version = $1, compatible = $2", later, VERSION if is_compatible else later
        )
        await connection.close()
        second = opened(url)
        if is_compatible:
            assert await second.get("ann", "a") == answer("a")
        else:
            with pytest.raises(ConfigError, match="made by a newer toolwire"):
                await second.open()
        await second.close()

    asyncio.run(main())
