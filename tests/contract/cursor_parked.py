"""A program that parks many runs on a server, prints the memory that they use, and disconnects when its input ends.

python -m tests.contract.cursor_parked URL TRANSPORT COUNT
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
from pathlib import Path

from tests.backends.cursor.stage import request
from toolwire.backends.cursor.backend import CursorBackend
from toolwire.backends.cursor.run import RunLimits
from toolwire.backends.cursor.simulator.settings import TOKEN
from toolwire.backends.http.transport import Transport
from toolwire.config.file import BackendConfig
from toolwire.config.secret import Secret

LIMITS = RunLimits(first=30.0, idle=30.0, silent=30.0, beat=1.0, exec_beat=0.6)


def resident() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def main(url: str, transport: str, count: int) -> None:
    lines = Transport(environ={})
    config = BackendConfig(
        name="c",
        kind="cursor",
        base_url=url,
        token=Secret(TOKEN),
        client_version="cli-2026.01.09",
        transport=transport,  # type: ignore[arg-type] # one of its values
    )
    backend = CursorBackend(config, lines, limits=LIMITS)

    async def park(number: int) -> None:
        reply = await backend.open(request(f"hi {number} " + "of many words " * 100), is_verbatim=False)
        async for _ in reply.events:
            pass
        await reply.close()

    await park(-1)  # one-time costs are not counted
    before = resident()
    for start in range(0, count, 20):
        await asyncio.gather(*(park(start + number) for number in range(20)))
    text_in = {"parked": len(backend.parking) - 1, "grown": resident() - before, "tasks": len(asyncio.all_tasks())}
    print(json.dumps(text_in), flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    await backend.close()
    await lines.close()
    left = len(asyncio.all_tasks()) - 1
    files = [name for name in os.listdir("/proc/self/fd") if _is_socket(name)]
    print(json.dumps({"tasks": left, "sockets": len(files)}), flush=True)


def _is_socket(name: str) -> bool:
    """Except the one that wakes the event loop."""
    try:
        target = os.readlink(f"/proc/self/fd/{name}")
    except OSError:
        return False
    return target.startswith("socket:") and target in _connected()


def _connected() -> set[str]:
    lines = [*Path("/proc/self/net/tcp").read_text().splitlines()[1:]]
    return {f"socket:[{line.split()[9]}]" for line in lines}


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
