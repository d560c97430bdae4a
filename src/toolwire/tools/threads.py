"""Functions that block, in threads that nobody waits for: one that never ends stops neither others nor the program's end.

A thread that is done waits for the next function. There are as many as functions run at once, up to a bound. They are daemons: the
threads of an executor are waited for when the interpreter ends, and one that hangs would hang it.
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

MOST = 256  # functions at a time, those included that nobody waits for any more
_KEPT = 16  # threads that may wait for work


class _Threads:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[SimpleQueue[Job]] = []
        self.busy = 0

    def run(self, job: Job) -> None:
        with self._lock:
            if self.busy >= MOST:
                raise RuntimeError(f"{MOST} functions are running already; those of earlier calls have not ended.")
            self.busy += 1
            jobs = self._waiting.pop() if self._waiting else None
        if jobs is None:
            jobs = SimpleQueue()
            threading.Thread(target=self._work, args=(jobs,), name="toolwire-tool", daemon=True).start()
        jobs.put(job)

    def _work(self, jobs: SimpleQueue[Job]) -> None:
        is_kept = True
        while is_kept:
            jobs.get()()
            with self._lock:
                self.busy -= 1
                if is_kept := len(self._waiting) < _KEPT:
                    self._waiting.append(jobs)


_threads = _Threads()


async def in_thread(function: Callable[[], Result]) -> Result:
    """What it gives or raises; context variables are those of the caller. When this is cancelled, the thread goes on unheard."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def work() -> None:
        result, error = _outcome(context, function)
        with suppress(RuntimeError):  # the loop has ended, and with it whoever waited
            loop.call_soon_threadsafe(_settle, future, result, error)

    _threads.run(work)
    result: Result = await future
    return result


def _settle(future: asyncio.Future[Any], result: object, error: BaseException | None) -> None:
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
        # A future cannot hold one.
        return None, RuntimeError(f"the function raised StopIteration: {error}")
    except BaseException as error:  # a thread has nobody above it who could handle any
        return None, error
