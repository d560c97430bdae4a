"""Programs that ignore everything but SIGKILL end soon after the process that started them, and nothing else does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.backends.codex.processes import all_gone, marked
from tests.backends.codex.starting import environment
from tests.server.harness import wait_until
from toolwire.watchdog import Watchdog

pytestmark = pytest.mark.skipif(os.name != "posix", reason="there are no process groups here")

ROOT = Path(__file__).parents[1]
# A leader and a child, both in one group; neither cares for signals or for the end of its input.
_STUBBORN = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
if os.fork():
    print("ready", flush=True)
while True:
    time.sleep(60)
"""
_STARTING = """
import asyncio, os, signal, sys
from toolwire.subprocesses import start
async def main():
    process = await start(sys.executable, "-c", sys.argv[1], environment=dict(os.environ))
    print(await process.stdout.readline(), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""


@pytest.fixture
def watchdog() -> Iterator[Watchdog]:
    made = Watchdog(rounds=1)
    yield made
    made.close()


@pytest.mark.slow
def test_a_stubborn_program_ends_with_a_gateway_that_is_killed() -> None:
    environ, mark = environment()
    command = [sys.executable, "-c", _STARTING, _STUBBORN]
    done = subprocess.run(
        command, env=environ | {"PYTHONPATH": str(ROOT / "src")}, capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, b"ready" in done.stdout) == (-signal.SIGKILL, True), done.stderr.decode()
    assert len(marked(mark)) == 2
    assert all_gone(mark, seconds=20)


def test_only_registered_groups_are_killed(watchdog: Watchdog) -> None:
    kept, ended = _stubborn(), _stubborn()
    try:
        watchdog.add(kept.pid)
        watchdog.add(ended.pid)
        watchdog.remove(kept.pid)
        watchdog.remove(999_999_999)  # which it never knew
        watchdog.close()
        assert ended.wait(20) == -signal.SIGKILL
        assert kept.poll() is None
    finally:
        for process in (kept, ended):
            _end(process)


def test_without_a_group_the_shell_ends_at_once(watchdog: Watchdog) -> None:
    process = _stubborn()
    watchdog.add(process.pid)
    shell = watchdog.pid
    watchdog.remove(process.pid)
    watchdog.close()
    assert not Path(f"/proc/{shell}").exists()
    assert process.poll() is None
    _end(process)


def test_a_killed_shell_is_restarted_with_every_group(watchdog: Watchdog) -> None:
    first, second, third = _stubborn(), _stubborn(), _stubborn()
    try:
        watchdog.add(first.pid)
        before = watchdog.pid
        os.kill(before, signal.SIGKILL)
        os.waitid(os.P_PID, before, os.WEXITED | os.WNOWAIT)
        watchdog.add(second.pid)
        watchdog.add(third.pid)
        assert watchdog.pid != before
        assert watchdog.groups == {first.pid, second.pid, third.pid}
        watchdog.close()
        assert [process.wait(20) for process in (first, second, third)] == [-signal.SIGKILL] * 3
    finally:
        for process in (first, second, third):
            _end(process)


def test_the_shell_ignores_what_a_terminal_sends_to_everything(watchdog: Watchdog) -> None:
    process = _stubborn()
    watchdog.add(process.pid)
    wait_until(lambda: _ignored(watchdog.pid) != "")
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        os.kill(watchdog.pid, number)
    watchdog.close()
    assert process.wait(20) == -signal.SIGKILL
    _end(process)


def test_without_a_shell_no_group_is_watched_and_a_warning_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    watchdog = Watchdog("/nowhere/at/all")
    watchdog.add(1)
    watchdog.add(2)
    watchdog.close()
    assert watchdog.pid == 0
    [record] = caplog.records
    assert "/nowhere/at/all" in record.getMessage()


def _stubborn() -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-c", _STUBBORN], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def _ignored(pid: int) -> str:
    """The mask of signals that a process ignores, once it has set one."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    mask = next(line.split()[1] for line in lines if line.startswith("SigIgn"))
    return mask if int(mask, 16) & 1 << (signal.SIGTERM - 1) else ""
