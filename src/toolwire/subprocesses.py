"""Child programs: each leads a process group of its own, and the whole group ends with this process.

A start that is cancelled leaves no process behind: asyncio alone would end the program, but not its children. The watchdog watches a group from
its start until it is sent SIGKILL, so it ends soon after this process even if this process is killed.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from .watchdog import WATCHDOG

_START_SECONDS = 2.0  # to connect the pipes of a program whose start is cancelled


async def start(
    *command: str,
    stdin: int = asyncio.subprocess.PIPE,
    stderr: int = asyncio.subprocess.PIPE,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> asyncio.subprocess.Process:
    """Start a program with its output as a pipe. Raises OSError. Call `kill_group` in the end, also if it has exited."""
    starting = asyncio.ensure_future(_start_watched(command, stdin, stderr, folder, environment))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        starting.add_done_callback(_kill)
        await _finish(starting)
        raise


def kill_group(process: asyncio.subprocess.Process) -> None:
    """Kill the whole group of a process, also if the process has exited. Windows has no groups: only the process is killed."""
    WATCHDOG.remove(process.pid)
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform != "win32":
            os.killpg(process.pid, signal.SIGKILL)
        elif process.returncode is None:
            process.kill()


async def wait_for_exit(process: asyncio.subprocess.Process, seconds: float) -> bool:
    """Whether it exits within these seconds. process.wait() also waits for the pipes, which a grandchild may hold."""
    for _ in range(int(seconds * 100)):
        if process.returncode is not None:
            return True
        await asyncio.sleep(0.01)
    return process.returncode is not None


async def stop(process: asyncio.subprocess.Process, exit_seconds: float, signal_seconds: float = 1.0) -> None:
    """End of input, SIGTERM, SIGKILL, with time to exit after each; SIGKILL always goes to the rest of the group."""
    if process.stdin is not None:
        process.stdin.close()
    if not await wait_for_exit(process, exit_seconds):
        with suppress(ProcessLookupError, PermissionError):
            if sys.platform != "win32":
                os.killpg(process.pid, signal.SIGTERM)
        await wait_for_exit(process, signal_seconds)
    kill_group(process)
    await wait_for_exit(process, signal_seconds)


def close_pipes(process: asyncio.subprocess.Process) -> None:
    """Without this the pipes stay open while a grandchild in a group of its own holds them; there is no public method."""
    process._transport.close()  # type: ignore[attr-defined]  # all event loops have it


async def _start_watched(
    command: Sequence[str], stdin: int, stderr: int, folder: Path | None, environment: Mapping[str, str] | None
) -> asyncio.subprocess.Process:
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=stdin,
        stdout=asyncio.subprocess.PIPE,
        stderr=stderr,
        cwd=folder,
        env=environment,
        start_new_session=True,
    )
    WATCHDOG.add(process.pid)
    return process


async def _finish(starting: asyncio.Future[asyncio.subprocess.Process]) -> None:
    """Wait until the program has started and exited, also if this task is cancelled again.

    If the event loop closes during a start, asyncio cancels the task that connects the pipes and then waits for these pipes forever. Only a
    second cancellation ends that wait.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _START_SECONDS
    while (left := deadline - loop.time()) > 0:
        with suppress(asyncio.CancelledError):
            if not starting.done():
                await asyncio.wait([starting], timeout=left)
            elif _is_started(starting):
                await starting.result().wait()
                return
            else:
                return
    starting.cancel()


def _kill(starting: asyncio.Future[asyncio.subprocess.Process]) -> None:
    if _is_started(starting):
        kill_group(starting.result())
        close_pipes(starting.result())


def _is_started(starting: asyncio.Future[asyncio.subprocess.Process]) -> bool:
    return not starting.cancelled() and starting.exception() is None
