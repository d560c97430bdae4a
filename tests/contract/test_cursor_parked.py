"""Two hundred runs that wait for results: their memory, their heartbeats, and that closing frees everything."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.contract.cursor_parked import LIMITS
from toolwire.backends.cursor.simulator.journal import Run
from toolwire.backends.cursor.simulator.script import MakeCall, Say, play
from toolwire.backends.cursor.simulator.server import Simulator
from toolwire.backends.cursor.simulator.settings import Settings

pytestmark = pytest.mark.slow

COUNT = 200
MOST = 60 * 1024 * 1024
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("transport", ["run", "sse"])
def test_two_hundred_parked_runs_are_cheap_and_alive(transport: str, record_property: Any) -> None:
    async def main() -> None:
        model = play([Say("Looking. "), MakeCall("look", {"city": "Rome"})], [Say("Sunny.")])
        async with Simulator(model=model, settings=Settings(heartbeat=1.0)) as simulator:
            child = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "tests.contract.cursor_parked", simulator.url, transport, str(COUNT)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
            )
            assert child.stdout is not None
            assert child.stdin is not None
            async with asyncio.timeout(60):
                report = json.loads(await child.stdout.readline())
                began = simulator.journal.now
                await asyncio.sleep(3.5)
                ended = simulator.journal.now
                child.stdin.close()
                left = json.loads(await child.stdout.readline())
                await child.wait()
                while any(run.state == "open" for run in simulator.journal.runs):
                    await asyncio.sleep(0.02)
            record_property("grown", report["grown"])
            print(
                f"{transport}: {report['grown'] / COUNT / 1024:.0f} KiB a run, {report['tasks'] / COUNT:.1f} tasks a run"
            )
            assert report["parked"] == COUNT
            assert report["grown"] < MOST
            assert left == {"tasks": 0, "sockets": 0}
            runs = simulator.journal.runs
            late = [run.number for run in runs if not is_alive_in_time(run, began, ended)]
            assert late == []
            assert simulator.journal.offences == []
            assert all(run.state == "gone" or run.error.startswith("canceled") for run in runs)

    asyncio.run(main())


def is_alive_in_time(run: Run, began: float, ended: float) -> bool:
    """Every heartbeat came, each within twice its time: one machine is both sides here."""
    [call] = run.calls
    return _is_steady(run.heartbeats, LIMITS.beat, began, ended) and _is_steady(
        call.heartbeats, LIMITS.exec_beat, began, ended
    )


def _is_steady(times: list[float], period: float, began: float, ended: float) -> bool:
    seen = [began, *(time for time in times if began < time < ended), ended]
    return max(after - before for before, after in pairwise(seen)) < 2 * period
