"""Programs that we start: each leads a group of its own, and whoever is cancelled while one starts leaves nothing of it behind.

asyncio alone would: cancelled at that moment it ends the program, but not what the program has started by then.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path


async def start(
    *command: str,
    stdin: int = asyncio.subprocess.PIPE,
    stderr: int = asyncio.subprocess.PIPE,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> asyncio.subprocess.Process:
    """Its output is a pipe. Raises OSError where it cannot be started."""
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *command,
            stdin=stdin,
            stdout=asyncio.subprocess.PIPE,
            stderr=stderr,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        starting.add_done_callback(_end)  # whatever becomes of us meanwhile
        await asyncio.wait([starting])
        if _is_started(starting):
            await starting.result().wait()
        raise


def signal_group(process: asyncio.subprocess.Process, number: int) -> None:
    """To everything in the group that it leads, also when it has left itself."""
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, number)
        elif process.returncode is None:
            process.kill()


def _end(starting: asyncio.Future[asyncio.subprocess.Process]) -> None:
    if _is_started(starting):
        signal_group(starting.result(), signal.SIGKILL)
        starting.result()._transport.close()  # type: ignore[attr-defined]  # nothing public closes its pipes


def _is_started(starting: asyncio.Future[asyncio.subprocess.Process]) -> bool:
    return not starting.cancelled() and starting.exception() is None
