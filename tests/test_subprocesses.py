"""A child program leads its own group, and a start that is cancelled leaves no process."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.server.harness import wait_until
from toolwire.subprocesses import close_pipes, kill_group, start, wait_for_exit

_FORKING = """
import os, sys, time
child = os.fork()
if child:
    with open(sys.argv[1] + ".new", "w") as told:
        told.write(f"{os.getpid()} {child}")
    os.rename(sys.argv[1] + ".new", sys.argv[1])
time.sleep(60)
"""


def test_a_signal_reaches_what_it_has_started(tmp_path: Path) -> None:
    told = tmp_path / "told"

    async def main() -> None:
        process = await start(sys.executable, "-c", _FORKING, str(told))
        await _until(told)
        kill_group(process)
        assert await process.wait() == -signal.SIGKILL
        kill_group(process)  # no process is left; that is no error

    asyncio.run(main())
    wait_until(lambda: not any(map(_is_running, told.read_text().split())))


def test_a_start_that_is_cancelled_leaves_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine the program may have started others before asyncio has its pipes ready."""
    told = tmp_path / "told"
    create = asyncio.create_subprocess_exec

    async def slowly(*command: str, **how: Any) -> asyncio.subprocess.Process:
        process = await create(*command, **how)
        await _until(told)
        await asyncio.sleep(0.05)
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", slowly)

    async def main() -> None:
        starting = asyncio.create_task(start(sys.executable, "-c", _FORKING, str(told)))
        await _until(told)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting

    asyncio.run(main())
    wait_until(lambda: not any(map(_is_running, told.read_text().split())))


@pytest.mark.parametrize("steps", range(1, 7))
def test_repeated_cancellation_waits_for_the_start(steps: int) -> None:
    """After these steps of the loop the program runs, and asyncio is still connecting its pipes."""

    async def main() -> None:
        starting = asyncio.create_task(start("sleep", "60"))
        for _ in range(steps):
            await asyncio.sleep(0)
        while not starting.done():
            starting.cancel()
            await asyncio.sleep(0)
        assert starting.cancelled()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


_CLOSING = """
import asyncio
from toolwire import subprocesses

async def main(steps):
    starting = asyncio.create_task(subprocesses.start("sleep", "60"))
    for _ in range(steps):
        await asyncio.sleep(0)
    return starting

subprocesses._START_SECONDS = 0.05
for steps in range(1, 7):
    assert asyncio.run(main(steps)).cancelled()
"""


@pytest.mark.slow
def test_an_event_loop_that_closes_during_a_start_does_not_hang() -> None:
    """In a process of its own, because asyncio leaves the pipes open that it has not connected."""
    subprocess.run([sys.executable, "-c", _CLOSING], check=True, timeout=60)


def test_a_program_that_cannot_be_started_raises() -> None:
    async def main() -> None:
        with pytest.raises(FileNotFoundError):
            await start("/nowhere/at/all")
        starting = asyncio.create_task(start("/nowhere/at/all"))
        await asyncio.sleep(0)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting

    asyncio.run(main())


async def _until(place: Path) -> None:
    while not place.exists():
        await asyncio.sleep(0.01)


def _is_running(number: str) -> bool:
    try:
        stat = Path(f"/proc/{number}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def test_the_exit_is_noticed_while_a_child_holds_the_pipes(tmp_path: Path) -> None:
    told = tmp_path / "told"

    async def main() -> None:
        process = await start(sys.executable, "-c", _FORKING, str(told))
        await _until(told)
        assert not await wait_for_exit(process, 0.03)
        process.kill()
        assert await wait_for_exit(process, 20)
        assert _is_running(told.read_text().split()[1])
        kill_group(process)
        close_pipes(process)
        await process.wait()

    asyncio.run(main())
