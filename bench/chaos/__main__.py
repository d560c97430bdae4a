"""Start everything, break it while conversations run, heal it, and check what was acknowledged."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.plain_http import request
from tests.postgres_server import PostgresServer

from .traffic import Acknowledged, Findings, converse

_MAX_GROWTH = 64 << 20
_CONFIG = """
[server]
port = {port}
keys = [{keys}]
log = "warning"
shutdown_seconds = 5
[store]
url = "{url}"
connections = 6
[cluster]
secret = "a secret for all gateways"
[backends.scripted]
kind = "scripted"
"""


class ChaosGateway:
    """`toolwire serve` as a process that can be killed and started again on its port."""

    def __init__(self, folder: Path, number: int, url: str, keys: list[str]) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self._path = folder / f"gateway-{number}.toml"
        names = ", ".join(f'"{key}"' for key in keys)
        self._path.write_text(_CONFIG.format(port=self.port, keys=names, url=url), encoding="utf-8")
        self._log = folder / f"gateway-{number}.log"
        self._process: subprocess.Popen[bytes] | None = None
        self.first_size = 0

    async def start(self) -> None:
        command = [sys.executable, "-m", "toolwire", "serve", "--config", str(self._path)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        self.first_size = 0
        while True:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                if (await request(self.port, "GET", "/healthz", ""))[0] == 200:
                    return
            if self._process.poll() is not None:
                raise RuntimeError(f"the gateway does not start: {self._log.read_text()[-500:]}")
            await asyncio.sleep(0.05)

    async def end(self, number: int) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            await asyncio.to_thread(self._process.wait)

    def growth(self) -> int:
        """Bytes since the first look at this process."""
        assert self._process is not None
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        size = pages * os.sysconf("SC_PAGE_SIZE")
        self.first_size = self.first_size or size
        return size - self.first_size


async def break_things(
    database: PostgresServer, gateways: list[ChaosGateway], end: float, choice: random.Random, begun: float
) -> list[str]:
    """One fault after the other until the time is over. Everything runs again when this returns."""
    faults = []
    while time.monotonic() < end:
        await asyncio.sleep(choice.uniform(1.0, 4.0))
        fault = choice.choice(("kill gateway", "stop gateway", "kill database", "restart database", "freeze database"))
        faults.append(fault)
        print(f"{time.monotonic() - begun:7.1f} s  {fault}", flush=True)
        if fault.endswith("gateway"):
            gateway = choice.choice(gateways)
            await gateway.end(signal.SIGKILL if fault == "kill gateway" else signal.SIGTERM)
            await asyncio.sleep(choice.uniform(0.0, 1.0))
            await gateway.start()
        elif fault == "freeze database":
            database.freeze(is_frozen=True)
            await asyncio.sleep(choice.uniform(0.5, 8.0))
            database.freeze(is_frozen=False)
        else:
            await asyncio.to_thread(database.kill if fault == "kill database" else database.stop)
            await asyncio.sleep(choice.uniform(0.0, 7.0))
            await asyncio.to_thread(database.start)
    return faults


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
    choice = random.Random(seed)
    keys = [f"key-of-client-{number}" for number in range(clients)]
    database = PostgresServer()
    database.start()
    findings = Findings()
    with tempfile.TemporaryDirectory(prefix="toolwire-chaos-") as folder:
        gateways = [ChaosGateway(Path(folder), number, database.url, [*keys, "other"]) for number in range(count)]
        try:
            await asyncio.gather(*(gateway.start() for gateway in gateways))
            ports, stop, begun = [gateway.port for gateway in gateways], asyncio.Event(), time.monotonic()
            traffic = [
                asyncio.create_task(converse(key, ports, findings, stop, random.Random(f"{seed} {key}")))
                for key in keys
            ]
            watching = asyncio.create_task(_watch(gateways, findings))
            faults = await break_things(database, gateways, begun + seconds, choice, begun)
            stop.set()
            await asyncio.gather(*traffic)
            watching.cancel()
            for gateway in gateways:
                while (await request(gateway.port, "GET", "/readyz", "other"))[0] != 200:
                    await asyncio.sleep(0.1)
            await check(findings.acknowledged, ports, "other", findings)
        finally:
            await asyncio.gather(*(gateway.end(signal.SIGKILL) for gateway in gateways))
            database.close()
    _print_summary(findings, faults)
    return 1 if findings.problems or not findings.acknowledged else 0


async def _watch(gateways: list[ChaosGateway], findings: Findings) -> None:
    """Memory of each process, from half a minute after its start."""
    while True:
        await asyncio.sleep(30)
        for gateway in gateways:
            with contextlib.suppress(OSError):
                if gateway.growth() > _MAX_GROWTH:
                    findings.problems.append(f"the gateway on port {gateway.port} grew by {gateway.growth() >> 20} MB")


def _print_summary(findings: Findings, faults: list[str]) -> None:
    summary = {
        "faults": {name: faults.count(name) for name in sorted(set(faults))},
        "requests": findings.requests,
        "acknowledged": len(findings.acknowledged),
        "histories": findings.histories,
        "refused": findings.refused,
        "unstored": findings.unstored,
        "cut": findings.cut,
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
