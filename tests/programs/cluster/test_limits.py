"""200 keys and 1,000 conversations through six processes: in each minute a key gets exactly as many requests as it may send."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from pathlib import Path

import asyncpg
import pytest

from tests.plain_http import request
from tests.postgres_server import PostgresServer
from tests.programs.cluster.stage import gateways
from toolwire.memory.keys import KeyDirectory, NamedKey
from toolwire.memory.store.postgres.store import PostgresStore

pytestmark = pytest.mark.slow

KEYS = 200
CONVERSATIONS = 5  # of each key
TURNS = 2
LIMIT = 6  # requests per minute
BODY = {"model": "scripted/x", "messages": [{"role": "user", "content": "Hello."}], "max_tokens": 50}


async def make_keys(url: str) -> dict[str, NamedKey]:
    """By their secrets."""
    store = PostgresStore(url, max_bytes=1 << 30, max_age=1e9)
    directory, made = KeyDirectory(store, time.time), {}
    for number in range(KEYS):
        draft = NamedKey(
            id="", name=f"key-{number}", hash="", created=0.0, requests_per_minute=LIMIT, budget=10**9, period="month"
        )
        key, secret = await directory.create(draft)
        made[secret] = key
    await store.close()
    return made


async def converse(port: int, secret: str, limit: asyncio.Semaphore) -> Counter[int]:
    """The statuses of one conversation. A key is known to all gateways after a few seconds."""
    statuses: Counter[int] = Counter()
    async with limit:
        for _ in range(TURNS):
            while (found := await request(port, "POST", "/v1/chat/completions", secret, BODY))[0] == 401:
                await asyncio.sleep(0.2)
            statuses[found[0]] += 1
            if found[0] == 429:
                assert 1 <= int(found[1]["retry-after"]) <= 61
    return statuses


async def check_key(port: int, secret: str, key: NamedKey, limit: asyncio.Semaphore, pool: asyncpg.Pool) -> int:
    """How many requests were refused. The counters are read before they expire."""
    results = await asyncio.gather(*(converse(port, secret, limit) for _ in range(CONVERSATIONS)))
    rows = await pool.fetch("SELECT value FROM toolwire_counters WHERE starts_with(name, $1)", f"rpm {key.id} ")
    windows = [row["value"] for row in rows]
    statuses = sum(results, Counter[int]())
    assert set(statuses) <= {200, 429}
    assert max(windows) <= LIMIT
    assert sum(windows) == statuses[200] >= LIMIT  # what was admitted is what was counted, in every minute
    return statuses[429]


async def check(port: int, url: str) -> None:
    keys, limit = await make_keys(url), asyncio.Semaphore(64)
    async with asyncpg.create_pool(url, min_size=1, max_size=2) as pool:
        checks = [check_key(port, secret, key, limit, pool) for secret, key in keys.items()]
        assert sum(await asyncio.gather(*checks))


def test_limits_are_exact_under_load(tmp_path: Path) -> None:
    database = PostgresServer()
    database.start()
    try:
        with gateways(tmp_path, database) as site:
            port = int(site.address.rpartition(":")[2])
            asyncio.run(check(port, database.url))
    finally:
        database.close()
