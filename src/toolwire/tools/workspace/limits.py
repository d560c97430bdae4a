"""How much one use of a tool may read, give back and take of time."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from msgspec import Struct

_T = TypeVar("_T")

QUEUE_SECONDS = 60.0  # that a tool may wait for a free thread before the caller's own time limit ends it
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
    """Until when work in a thread may go on: its time is over, or it was given up. The time starts when this is made."""

    def __init__(self, seconds: float, given_up: threading.Event | None = None) -> None:
        self._until = time.monotonic() + seconds
        self._given_up = given_up or threading.Event()

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
        shorter = Budget(seconds, self._given_up)
        shorter._until = min(shorter._until, self._until)
        return shorter

    def check(self) -> None:
        """Raises Stopped where going on would do something nobody asked for any more."""
        if self._given_up.is_set():
            raise Stopped


class Pool:
    """Threads for one kind of work, made when the first is needed. They are not the loop's own, where long commands would keep
    everything else from resolving host names."""

    def __init__(self, name: str, threads: int = 32) -> None:
        self._name = name
        self._threads = threads
        self._lock = threading.Lock()
        self._executor: ThreadPoolExecutor | None = None

    def submit(self, work: Callable[[], _T]) -> Future[_T]:
        with self._lock:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(self._threads, thread_name_prefix=f"workspace-{self._name}")
            return self._executor.submit(work)


# A command may take minutes and a file takes milliseconds, so files never wait for commands.
FILES = Pool("files")
COMMANDS = Pool("commands", 64)


async def off_loop(work: Callable[[Budget], _T], seconds: float, pool: Pool = FILES) -> _T:
    """Do the work in a thread, with so many seconds from when a thread is free for it.

    When cancelled, the work is asked to stop and awaited, so that nothing happens afterwards.
    """
    given_up = threading.Event()
    running = pool.submit(lambda: work(Budget(seconds, given_up)))
    future = asyncio.wrap_future(running)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        given_up.set()
        future.add_done_callback(_forget)
        if not running.cancel():
            await asyncio.wait({future}, timeout=_LAST_STEPS)
        raise


def _forget(future: asyncio.Future[_T]) -> None:
    if not future.cancelled():
        future.exception()
