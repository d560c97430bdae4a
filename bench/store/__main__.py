"""Compare SQLite and PostgreSQL as the store: CPU time of the gateway for each stateful request, one gateway and two, and look-ups
among many answers."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import asyncpg

from tests.free_port import free_port
from tests.plain_http import request
from tests.postgres_server import PostgresServer
from toolwire.memory.store import Entry, Item
from toolwire.memory.store.postgres.store import PostgresStore

_CONFIG = """
[server]
port = {port}
log = "warning"
[store]
url = "{url}"
[backends.scripted]
kind = "scripted"
"""
_TICK = os.sysconf("SC_CLK_TCK")
# Ids of the same form as ours, with the key that the store computes; the rows that are looked up are written through the store.
_FILL = """
INSERT INTO toolwire_entries (key, parent_key, used, size, created, alive, kind, status, owner, id, previous, conversation, keeper,
    item_keys, head, input, output, body)
SELECT hashtextextended(n::text, 7), CASE WHEN n % 10 > 0 THEN hashtextextended((n - 1)::text, 7) END, n, 1500, n, 0, 'responses',
    'completed', 'owner', ('resp_' || n)::bytea, '', '', '', '{}', '', '[]', '\\x90', convert_to(repeat('x', 1000), 'UTF8')
FROM generate_series($1::bigint, $2::bigint) AS n ON CONFLICT DO NOTHING"""


async def cpu_per_request(
    url: str, requests: int, conversations: int, gateways: int = 1, *, is_sticky: bool = True
) -> float:
    """Milliseconds of CPU time of the gateways. is_sticky: a conversation stays at one of them; else each turn reaches another one, which
    must read and decode what the other has in its cache."""
    with tempfile.TemporaryDirectory(prefix="toolwire-store-") as folder, contextlib.ExitStack() as stack:
        started = [_start(Path(folder), number, url, stack) for number in range(gateways)]
        ports = [port for port, _ in started]
        for port in ports:
            await _until_ready(port)
        await _converse(ports, 50 * gateways, conversations, is_sticky=is_sticky)
        before = sum(_cpu(process) for _, process in started)
        await _converse(ports, requests, conversations, is_sticky=is_sticky)
        return (sum(_cpu(process) for _, process in started) - before) / requests * 1000


def _start(folder: Path, number: int, url: str, stack: contextlib.ExitStack) -> tuple[int, int]:
    """Port and process of a gateway that is killed at the end."""
    path, port = folder / f"toolwire-{number}.toml", free_port()
    path.write_text(_CONFIG.format(port=port, url=url.replace("FOLDER", str(folder))), encoding="utf-8")
    command = [sys.executable, "-m", "toolwire", "serve", "--config", str(path)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    stack.callback(process.wait)
    stack.callback(process.send_signal, signal.SIGKILL)
    return port, process.pid


async def _until_ready(port: int) -> None:
    while True:
        try:
            if (await request(port, "GET", "/readyz", ""))[0] == 200:
                return
        except OSError:
            pass
        await asyncio.sleep(0.05)


async def _converse(ports: list[int], requests: int, conversations: int, *, is_sticky: bool) -> None:
    async def one(number: int) -> None:
        previous = ""
        for turn in range(requests // conversations):
            body = {"model": "scripted/x", "input": f"turn {turn} of {number}"}
            if turn % 10:
                body["previous_response_id"] = previous
            port = ports[(number if is_sticky else turn) % len(ports)]
            status, _, data = await request(port, "POST", "/v1/responses", "key", body)
            assert status == 200, data
            previous = data.partition(b'"id":"')[2].partition(b'"')[0].decode()

    await asyncio.gather(*(one(number) for number in range(conversations)))


def _cpu(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


async def lookups(url: str, sizes: list[int]) -> None:
    """Median time of get() and of the chain of ten answers, while the store grows."""
    store = PostgresStore(url, max_bytes=1 << 40, max_age=1e10)
    for number in range(10):
        previous = f"mine_{number - 1}" if number else ""
        output = (Item(f"item_{number}", b"{}"),)
        await store.put(
            Entry(
                owner="me",
                id=f"mine_{number}",
                kind="responses",
                created=1.0,
                previous=previous,
                output=output,
                body=b"x" * 1000,
            )
        )
    connection = await asyncpg.connect(url)
    filled = 0
    for size in sizes:
        while filled < size:
            step = min(50_000, size - filled)
            await connection.execute(_FILL, filled + 1, filled + step)
            filled += step
        await connection.execute("ANALYZE toolwire_entries")
        gets, chains = [], []
        for _ in range(300):
            begun = time.perf_counter()
            await store.get("me", "mine_5")
            middle = time.perf_counter()
            await store.chain("me", "mine_9")
            gets.append(middle - begun)
            chains.append(time.perf_counter() - middle)
        print(f"{size:>9,} answers: get {_micros(gets):>6.0f} us, chain of 10 {_micros(chains):>6.0f} us", flush=True)
    await connection.close()
    await store.close()


def _micros(seconds: list[float]) -> float:
    return statistics.median(seconds) * 1e6


async def run(requests: int, most: int) -> None:
    database = PostgresServer()
    database.start()
    try:
        url = await database.new_space_url()
        found: dict[str, list[float]] = {
            "SQLite": [],
            "PostgreSQL": [],
            "two gateways": [],
            "two gateways, each turn elsewhere": [],
        }
        for _ in range(3):
            found["SQLite"].append(await cpu_per_request("sqlite:///FOLDER/state.db", requests, 10))
            found["PostgreSQL"].append(await cpu_per_request(url, requests, 10))
            found["two gateways"].append(await cpu_per_request(url, requests, 10, gateways=2))
            found["two gateways, each turn elsewhere"].append(
                await cpu_per_request(url, requests, 10, gateways=2, is_sticky=False)
            )
        for name, values in found.items():
            print(f"{name}: {min(values):.2f} ms of CPU per stateful request", flush=True)
        one, two, wandering = (min(values) for name, values in found.items() if name != "SQLite")
        print(f"PostgreSQL needs {one / min(found['SQLite']):.2f} times the CPU of SQLite", flush=True)
        # With a core for each of them: a machine with two cores for everything cannot show it by requests per second.
        print(f"two gateways carry {2 * one / two:.2f} times as many requests as one,", flush=True)
        print(f"and {2 * one / wandering:.2f} times as many if each turn reaches another gateway", flush=True)
        await lookups(await database.new_space_url(), [size for size in (1000, 100_000, 1_000_000) if size <= most])
    finally:
        database.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.store", description=__doc__)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--answers", type=int, default=1_000_000, help="of the largest store")
    asked = parser.parse_args()
    asyncio.run(run(asked.requests, asked.answers))


if __name__ == "__main__":
    main()
