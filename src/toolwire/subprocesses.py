"""Programs that we start: each leads a process group of its own, and the whole group ends with us.

A start that is cancelled leaves nothing behind: asyncio alone would end the program, but not what the program has started by then.
A group is watched from its start until it is sent SIGKILL, so it ends soon after this process even where that is killed.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from .watchdog import WATCHDOG


async def start(
    *command: str,
    stdin: int = asyncio.subprocess.PIPE,
    stderr: int = asyncio.subprocess.PIPE,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> asyncio.subprocess.Process:
    """Its output is a pipe. Raises OSError where it cannot be started. Send SIGKILL to its group in the end, also if it has exited."""
    starting = asyncio.ensure_future(_watched(command, stdin, stderr, folder, environment))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        starting.add_done_callback(_end)  # whatever becomes of us meanwhile
        await asyncio.wait([starting])
        if _is_started(starting):
            await starting.result().wait()
        raise


def signal_group(process: asyncio.subprocess.Process, number: int) -> None:
    """To everything in the group that it leads, also when the leader has exited."""
    if number == signal.SIGKILL:
        WATCHDOG.remove(process.pid)
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, number)
        elif process.returncode is None:
            process.kill()


async def has_left(process: asyncio.subprocess.Process, seconds: float) -> bool:
    """Within that time. wait() would wait for the pipes, too, which a grandchild may hold."""
    for _ in range(int(seconds * 100)):
        if process.returncode is not None:
            return True
        await asyncio.sleep(0.01)
    return process.returncode is not None


def close_pipes(process: asyncio.subprocess.Process) -> None:
    """asyncio keeps them open while a grandchild in a group of its own holds them; nothing public closes them."""
    process._transport.close()  # type: ignore[attr-defined]  # every loop's has it


async def _watched(
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


def _end(starting: asyncio.Future[asyncio.subprocess.Process]) -> None:
    if _is_started(starting):
        signal_group(starting.result(), signal.SIGKILL)
        close_pipes(starting.result())


def _is_started(starting: asyncio.Future[asyncio.subprocess.Process]) -> bool:
    return not starting.cancelled() and starting.exception() is None
