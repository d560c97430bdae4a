"""What breaks, one fault after the other. Everything runs again when a fault is over."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

from tests.plain_http import request
from tests.postgres_server import PostgresServer

FAULTS = (
    *("kill gateway", "stop gateway", "kill database", "restart database", "freeze database", "slow database"),
    *("full disk", "clock step"),
)
_MAX_STEP = 90.0  # seconds
_CLOCK = Path(__file__).resolve().parent / "stepped_clock"
_CONFIG = """
[server]
port = {port}
keys = ["{key}"]
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

    def __init__(self, folder: Path, number: int, url: str, key: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self._path = folder / f"gateway-{number}.toml"
        self._path.write_text(_CONFIG.format(port=self.port, key=key, url=url), encoding="utf-8")
        self._clock = folder / f"clock-{number}"
        self._clock.write_bytes(struct.pack("d", 0.0))
        self.log = folder / f"gateway-{number}.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._first_size = 0

    async def start(self) -> None:
        command = [sys.executable, "-m", "toolwire", "serve", "--config", str(self._path)]
        places = [str(_CLOCK), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "CHAOS_CLOCK": str(self._clock), "PYTHONPATH": ":".join(filter(None, places))}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        self._first_size = 0
        while True:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                if (await request(self.port, "GET", "/healthz", ""))[0] == 200:
                    return
            if self._process.poll() is not None:
                raise RuntimeError(f"the gateway does not start: {self.log.read_text()[-500:]}")
            await asyncio.sleep(0.05)

    async def end(self, number: int) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            await asyncio.to_thread(self._process.wait)

    def step_clock(self, seconds: float) -> None:
        """Its clock shows another time from now on; the monotonic clock does not change."""
        with self._clock.open("r+b") as file:
            file.write(struct.pack("d", seconds))

    def growth(self) -> int:
        """Bytes since the first look at this process."""
        assert self._process is not None
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        size = pages * os.sysconf("SC_PAGE_SIZE")
        self._first_size = self._first_size or size
        return size - self._first_size


async def break_things(
    database: PostgresServer, gateways: list[ChaosGateway], seconds: float, choice: random.Random
) -> list[str]:
    """One fault after the other until the time is over. Each kind occurs before any occurs again."""
    faults: list[str] = []
    waiting: list[str] = []
    begun = time.monotonic()
    while time.monotonic() < begun + seconds:
        await asyncio.sleep(choice.uniform(1.0, 4.0))
        if not waiting:
            waiting = choice.sample(FAULTS, len(FAULTS))
        faults.append(waiting.pop())
        print(f"{time.monotonic() - begun:7.1f} s  {faults[-1]}", flush=True)
        if faults[-1].endswith("database") or faults[-1] == "full disk":
            await _break_database(database, faults[-1], choice)
        else:
            await _break_gateway(choice.choice(gateways), faults[-1], choice)
    return faults


async def _break_gateway(gateway: ChaosGateway, fault: str, choice: random.Random) -> None:
    if fault == "clock step":
        gateway.step_clock(choice.uniform(-_MAX_STEP, _MAX_STEP))
        return
    await gateway.end(signal.SIGKILL if fault == "kill gateway" else signal.SIGTERM)
    await asyncio.sleep(choice.uniform(0.0, 1.0))
    await gateway.start()


async def _break_database(database: PostgresServer, fault: str, choice: random.Random) -> None:
    match fault:
        case "freeze database":
            database.freeze(is_frozen=True)
            await asyncio.sleep(choice.uniform(0.5, 8.0))
            database.freeze(is_frozen=False)
        case "slow database":
            for _ in range(choice.randrange(5, 20)):
                database.freeze(is_frozen=True)
                await asyncio.sleep(0.3)
                database.freeze(is_frozen=False)
                await asyncio.sleep(0.05)
        case "full disk":
            database.fill_disk(is_full=True)
            await asyncio.sleep(choice.uniform(1.0, 5.0))
            if not database.has_ended:
                database.fill_disk(is_full=False)
            await asyncio.sleep(1.0)
            if database.has_ended:
                await asyncio.to_thread(database.kill)
                await asyncio.to_thread(database.start)
        case _:
            await asyncio.to_thread(database.kill if fault == "kill database" else database.stop)
            await asyncio.sleep(choice.uniform(0.0, 7.0))
            await asyncio.to_thread(database.start)
