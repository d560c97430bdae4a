"""Limits of one tool call: sizes, output and time; and the threads that the calls run in."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import TypeVar

from msgspec import Struct

_T = TypeVar("_T")

QUEUE_SECONDS = 60.0  # a call may wait this long for a free thread before the caller's own time limit ends it
_STOP_SECONDS = 5.0  # to wait for a thread whose call was cancelled


class Limits(Struct, frozen=True, kw_only=True):
    """Sizes in bytes, texts in characters, times in seconds."""

    file_bytes: int = 16 << 20  # the largest file that read, write, edit and grep accept
    image_bytes: int = 3_750_000  # 5 MB as base64, which every provider accepts
    lines: int = 2000  # in one result of read
    line_characters: int = 2000  # longer lines are cut
    output_characters: int = 60_000  # of one result
    entries: int = 1000  # in one result of list and glob
    matches: int = 200  # in one result of grep
    depth: int = 32  # of nested folders
    scanned: int = 1_000_000  # files and folders that one search visits
    seconds: float = 20.0  # for everything but a command
    command_characters: int = 100_000
    command_seconds: float = 600.0  # the longest time-out that a command may have
    command_output_bytes: int = 60_000  # stored: half from the beginning, half from the end
    command_flood_bytes: int = 256 << 20  # of output, after which the command is stopped


class Stopped(Exception):
    """The call was cancelled."""


class Budget:
    """The time of one call, and whether the call was cancelled. The time starts at construction."""

    def __init__(self, seconds: float, cancelled: threading.Event | None = None) -> None:
        self._until = time.monotonic() + seconds
        self._cancelled = cancelled or threading.Event()

    def cancel(self) -> None:
        self._cancelled.set()

    @property
    def is_over(self) -> bool:
        return self._cancelled.is_set() or time.monotonic() >= self._until

    @property
    def is_cancelled(self) -> bool:
        return self._cancelled.is_set()

    def shortened(self, seconds: float) -> Budget:
        """A budget that ends after these seconds or with this one, whichever is first."""
        shorter = Budget(seconds, self._cancelled)
        shorter._until = min(shorter._until, self._until)
        return shorter

    def check(self) -> None:
        """Raises Stopped if the call was cancelled."""
        if self._cancelled.is_set():
            raise Stopped


# Not the event loop's own executor, where commands would block the resolution of host names. A command may take minutes and a file takes
# milliseconds, so files never wait for commands.
FILES = ThreadPoolExecutor(32, thread_name_prefix="workspace-files")
COMMANDS = ThreadPoolExecutor(64, thread_name_prefix="workspace-commands")


async def off_loop(work: Callable[[Budget], _T], seconds: float, pool: Executor = FILES) -> _T:
    """Run the work in a thread; its time starts when a thread is free.

    On cancellation the work is asked to stop and awaited, so that it has no later effects.
    """
    cancelled = threading.Event()
    running = pool.submit(lambda: work(Budget(seconds, cancelled)))
    future = asyncio.wrap_future(running)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        cancelled.set()
        future.add_done_callback(_consume_exception)
        if not running.cancel():
            await asyncio.wait({future}, timeout=_STOP_SECONDS)
        raise


def _consume_exception(future: asyncio.Future[_T]) -> None:
    if not future.cancelled():
        future.exception()
