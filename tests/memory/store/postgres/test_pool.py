"""Outages: calls fail in bounded time, a restart is not noticed, and nothing shows the password."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator

import pytest

from tests.memory.store.contract import DAY, MB, answer
from tests.postgres_server import PostgresServer
from toolwire.errors import ConfigError, GatewayError
from toolwire.memory.store.postgres.pool import ConnectionPool, shown_url
from toolwire.memory.store.postgres.store import PostgresStore

pytestmark = pytest.mark.slow


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    started = PostgresServer()
    started.start()
    yield started
    started.close()


def test_a_restart_is_not_noticed_and_an_outage_fails_fast(own_server: PostgresServer) -> None:
    async def main() -> None:
        store = PostgresStore(own_server.url, max_bytes=MB, max_age=DAY, connections=3, patience=3.0)
        await store.put(answer("before"))
        own_server.kill()
        waiting = [asyncio.create_task(store.put(answer(f"a{number}"))) for number in range(10)]
        await asyncio.sleep(0)
        await asyncio.to_thread(own_server.start)
        await asyncio.gather(*waiting)
        assert await store.get("ann", "before") == answer("before")

        own_server.stop()
        begun = time.monotonic()
        with pytest.raises(GatewayError) as caught:
            await store.get("ann", "before")
        assert caught.value.status == 503
        assert time.monotonic() - begun < 5
        begun = time.monotonic()
        for _ in range(50):
            with pytest.raises(GatewayError):
                await store.put(answer("lost"))
        assert time.monotonic() - begun < 0.5
        assert not await store.is_available()
        await asyncio.to_thread(own_server.start)
        while not await store.is_available():
            await asyncio.sleep(0.05)
        assert await store.get("ann", "a9") == answer("a9")
        await store.close()

    asyncio.run(main())


def test_a_server_that_does_not_reply_is_given_up(own_server: PostgresServer) -> None:
    async def main() -> None:
        store = PostgresStore(own_server.url, max_bytes=MB, max_age=DAY, connections=2, patience=0.5)
        await store.put(answer("a"))
        own_server.freeze(is_frozen=True)
        begun = time.monotonic()
        outcomes = await asyncio.gather(*(store.get("ann", "a") for _ in range(20)), return_exceptions=True)
        assert {isinstance(outcome, GatewayError) and outcome.status for outcome in outcomes} == {503}
        assert time.monotonic() - begun < 3
        own_server.freeze(is_frozen=False)
        while not await store.is_available():
            await asyncio.sleep(0.05)
        assert await store.get("ann", "a") == answer("a")
        await store.close()

    asyncio.run(main())


def test_cancelled_callers_lose_no_write_and_no_connection(server: PostgresServer) -> None:
    url = server.new_space()

    async def main() -> None:
        store = PostgresStore(url, max_bytes=64 * MB, max_age=DAY, connections=2)
        await store.put(answer("first"))
        tasks = [asyncio.create_task(store.put(answer(f"a{number}"))) for number in range(30)]
        reads = [asyncio.create_task(store.get("ann", "first")) for _ in range(30)]
        await asyncio.sleep(0.002)
        for task in (*tasks, *reads):
            task.cancel()
        await asyncio.gather(*tasks, *reads, return_exceptions=True)
        assert await store.get("ann", "first") == answer("first")
        await asyncio.gather(*(store.put(answer(f"b{number}")) for number in range(30)))
        await store.close()

    asyncio.run(main())


def test_a_wrong_database_is_the_owners_error_without_the_password(
    server: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    url = server.url.replace("toolwire@", "toolwire:hunter2@").replace("/postgres", "/nowhere")

    async def main() -> None:
        store = PostgresStore(url, max_bytes=MB, max_age=DAY)
        with pytest.raises(ConfigError) as caught:
            await store.open()
        assert "nowhere" in caught.value.message
        assert "hunter2" not in caught.value.sentence()
        with pytest.raises(GatewayError) as later:
            await store.get("ann", "a")
        assert "nowhere" not in later.value.message
        await store.close()

    with caplog.at_level(logging.DEBUG):
        asyncio.run(main())
    assert "hunter2" not in caplog.text


def test_an_unreachable_server_is_no_reason_not_to_start() -> None:
    async def main() -> None:
        pool = ConnectionPool("postgresql://ann:hunter2@127.0.0.1:1/x", size=1, patience=0.2)
        assert "cannot be reached" in await pool.open()
        await pool.close()

    asyncio.run(main())


def test_a_shown_url_has_no_password() -> None:
    assert shown_url("postgresql://ann:hunter2@a:1,b:2/x?sslmode=require") == "postgresql://ann@a:1,b:2/x"
    assert "hunter2" not in shown_url("postgresql://ann:hunter2@[/x")
