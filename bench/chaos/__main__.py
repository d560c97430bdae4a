"""Start everything, break it while conversations run, heal it, and check what was acknowledged."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import signal
import sys
import tempfile
from pathlib import Path

from tests.plain_http import request
from tests.postgres_server import PostgresServer

from .budgets import check_budgets, make_keys
from .faults import ChaosGateway, break_things
from .traffic import Acknowledged, ClientUsage, Findings, converse

_MAX_GROWTH = 64 << 20
_OTHER = "the-key-of-the-owner"


async def check(found: list[Acknowledged], ports: list[int], other: str, findings: Findings) -> None:
    """Every acknowledged answer is there for its key, and for no other one."""
    limit = asyncio.Semaphore(8)

    async def one(answer: Acknowledged, port: int) -> None:
        async with limit:
            status, _, data = await request(port, "GET", f"/v1/responses/{answer.id}", answer.key)
            if status != 200 or json.loads(data)["output"][-1]["content"][0]["text"] != answer.text:
                findings.problems.append(f"the acknowledged answer {answer.id} is lost or altered: {status}")
            status, _, _ = await request(port, "GET", f"/v1/responses/{answer.id}", other)
            if status != 404:
                findings.problems.append(f"another key got {status} for {answer.id}")

    await asyncio.gather(*(one(answer, ports[number % len(ports)]) for number, answer in enumerate(found)))


async def run(seconds: float, seed: int, clients: int, count: int) -> int:
    database = PostgresServer()
    database.start()
    findings, tokens = Findings(), dict[str, int]()
    keys = await make_keys(database.url, clients)
    usages = [ClientUsage() for _ in keys]
    with tempfile.TemporaryDirectory(prefix="toolwire-chaos-") as folder:
        gateways = [ChaosGateway(Path(folder), number, database.url, _OTHER) for number in range(count)]
        try:
            await asyncio.gather(*(gateway.start() for gateway in gateways))
            ports, stop = [gateway.port for gateway in gateways], asyncio.Event()
            traffic = [
                asyncio.create_task(converse(key, ports, findings, usage, stop, random.Random(f"{seed} {number}")))
                for number, (key, usage) in enumerate(zip(keys, usages, strict=True))
            ]
            watching = asyncio.create_task(_watch(gateways, findings))
            faults = await break_things(database, gateways, seconds, random.Random(seed))
            stop.set()
            await asyncio.gather(*traffic)
            watching.cancel()
            for gateway in gateways:
                gateway.step_clock(0.0)
                while (await request(gateway.port, "GET", "/readyz", _OTHER))[0] != 200:
                    await asyncio.sleep(0.1)
            await check(findings.acknowledged, ports, _OTHER, findings)
            tokens = await check_budgets(database.url, usages, findings)
        finally:
            await asyncio.gather(*(gateway.end(signal.SIGKILL) for gateway in gateways))
            database.close()
    _print_summary(findings, faults, tokens)
    return 1 if findings.problems or not findings.acknowledged else 0


async def _watch(gateways: list[ChaosGateway], findings: Findings) -> None:
    """Memory of each process, from half a minute after its start."""
    while True:
        await asyncio.sleep(30)
        for gateway in gateways:
            with contextlib.suppress(OSError):
                if gateway.growth() > _MAX_GROWTH:
                    findings.problems.append(f"the gateway on port {gateway.port} grew by {gateway.growth() >> 20} MB")


def _print_summary(findings: Findings, faults: list[str], tokens: dict[str, int]) -> None:
    summary = {
        "faults": {name: faults.count(name) for name in sorted(set(faults))},
        "requests": findings.requests,
        "acknowledged": len(findings.acknowledged),
        "histories": findings.histories,
        "refused": findings.refused,
        "unstored": findings.unstored,
        "cut": findings.cut,
        "tokens": tokens,
        "slowest_seconds": round(findings.slowest, 1),
        "problems": findings.problems[:20],
    }
    print(json.dumps(summary, indent=1))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.chaos", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long things break")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--gateways", type=int, default=3)
    asked = parser.parse_args()
    return asyncio.run(run(asked.seconds, asked.seed, asked.clients, asked.gateways))


if __name__ == "__main__":
    sys.exit(main())
