"""Blocking functions in daemon threads, so that a function that never returns blocks neither other functions nor the exit of the program.

Threads are reused and their number is bounded. The threads of an executor would not do: the interpreter joins them when it exits.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

Result = TypeVar("Result")
Job = Callable[[], None]

MOST = 256  # functions at a time, including those whose calls were cancelled
_MAX_IDLE = 16  # threads


class _Threads:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[SimpleQueue[Job]] = []
        self.busy = 0

    def run(self, job: Job) -> None:
        with self._lock:
            if self.busy >= MOST:
                raise RuntimeError(f"{MOST} functions are running already; those of earlier calls have not ended.")
            self.busy += 1
            jobs = self._idle.pop() if self._idle else None
        if jobs is None:
            jobs = SimpleQueue()
            threading.Thread(target=self._work, args=(jobs,), name="toolwire-tool", daemon=True).start()
        jobs.put(job)

    def _work(self, jobs: SimpleQueue[Job]) -> None:
        is_reused = True
        while is_reused:
            jobs.get()()
            with self._lock:
                self.busy -= 1
                if is_reused := len(self._idle) < _MAX_IDLE:
                    self._idle.append(jobs)


_threads = _Threads()


async def in_thread(function: Callable[[], Result]) -> Result:
    """Run the function with the caller's context variables. On cancellation the thread runs on and its result is dropped."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def work() -> None:
        outcome: Any
        try:
            outcome, settle = context.run(function), future.set_result
        except StopIteration as error:  # a future cannot hold it
            outcome, settle = RuntimeError(f"the function raised StopIteration: {error}"), future.set_exception
        except BaseException as error:  # an exception in a thread has no other handler
            outcome, settle = error, future.set_exception
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(lambda: None if future.done() else settle(outcome))

    _threads.run(work)
    result: Result = await future
    return result
