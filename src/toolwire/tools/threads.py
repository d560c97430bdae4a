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
        result, error = _outcome(context, function)
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(_set_outcome, future, result, error)

    _threads.run(work)
    result: Result = await future
    return result


def _set_outcome(future: asyncio.Future[Any], result: object, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


def _outcome(context: contextvars.Context, function: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    try:
        return context.run(function), None
    except StopIteration as error:
        # A future cannot hold a StopIteration.
        return None, RuntimeError(f"the function raised StopIteration: {error}")
    except BaseException as error:  # an exception in a thread has no other handler
        return None, error
