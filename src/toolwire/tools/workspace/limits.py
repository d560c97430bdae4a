"""How much one use of a tool may read, give back and take of time."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from msgspec import Struct

_T = TypeVar("_T")

_THREADS = 32
_LAST_STEPS = 5.0  # seconds a thread that was told to stop gets before it is left to itself


class Limits(Struct, frozen=True, kw_only=True):
    """Sizes in bytes, texts in characters, times in seconds."""

    file_bytes: int = 16 << 20  # the largest file that read, write, edit and grep take
    image_bytes: int = 3_750_000  # 5 MB as base64, which every provider takes
    lines: int = 2000  # that read gives at once
    line_characters: int = 2000  # of one line; what is longer is cut
    output_characters: int = 60_000  # of one answer
    entries: int = 1000  # that list and glob give
    matches: int = 200  # that grep gives
    depth: int = 32  # folders in folders
    scanned: int = 1_000_000  # files and folders that one search looks at
    seconds: float = 20.0  # for everything but a command
    command_characters: int = 100_000
    command_seconds: float = 600.0  # the most a command may ask for
    command_output_bytes: int = 60_000  # kept, half from its beginning and half from its end
    command_flood_bytes: int = 256 << 20  # printed; then the command is stopped


class Stopped(Exception):
    """Nobody waits for the answer any more."""


class Budget:
    """Until when work in a thread may go on: its time is over, or it was given up."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self._given_up = threading.Event()

    def give_up(self) -> None:
        self._given_up.set()

    @property
    def is_over(self) -> bool:
        return self._given_up.is_set() or time.monotonic() >= self._until

    @property
    def is_given_up(self) -> bool:
        return self._given_up.is_set()

    def shortened(self, seconds: float) -> Budget:
        """One that is over after so many seconds, or together with this one."""
        shorter = Budget(seconds)
        shorter._until = min(shorter._until, self._until)
        shorter._given_up = self._given_up
        return shorter

    def check(self) -> None:
        """Raises Stopped where going on would do something nobody asked for any more."""
        if self._given_up.is_set():
            raise Stopped


async def off_loop(work: Callable[[Budget], _T], seconds: float) -> _T:
    """Do the work in a thread. When cancelled, it is told to stop and waited for, so that nothing happens afterwards."""
    budget = Budget(seconds)
    future = asyncio.get_running_loop().run_in_executor(_threads(), partial(work, budget))
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        budget.give_up()
        await asyncio.wait({future}, timeout=_LAST_STEPS)
        future.add_done_callback(_forget)
        raise


# Not the loop's own threads: a few long commands there would keep everybody from looking up names.
_pool: ThreadPoolExecutor | None = None
_pool_lock = threading.Lock()


def _threads() -> ThreadPoolExecutor:
    global _pool
    with _pool_lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="workspace")
        return _pool


def _forget(future: asyncio.Future[_T]) -> None:
    if not future.cancelled():
        future.exception()
