"""Runs tasks in the caller if that is cheap, else in a thread.

A small write goes to the journal without waiting for the disk, like a line of a log, and most reads come from memory: a thread would cost more
than the work. So the caller runs such a task itself if the session is free. Whatever may take time (a lock of another process, pruning, a
checkpoint, large entries, a slow disk) runs in the thread, which takes all waiting tasks together, writes them in one transaction and
reports them with one call into the event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from . import errors as failures
from .session import Outcome, StoreSession, Task

_SMALL = 32  # pages that a caller may write itself
_SLOW = 0.1  # seconds; if the disk takes longer, only the thread uses it for a while
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0  # for how long, doubled each time
_IDLE = 60.0  # seconds without tasks after which the thread tidies up

_log = logging.getLogger("toolwire.memory.store")

_STOP = Task(lambda connection: None)
_NUDGE = Task(lambda connection: None)

_Job: TypeAlias = tuple[Task, "asyncio.Future[Any]"]
_Answer: TypeAlias = tuple["asyncio.Future[Any]", Outcome]


class StoreThread:
    """Starts with the first task, so a process may fork before that. Opening the session is retried with each task."""

    def __init__(self, open_session: Callable[[], StoreSession], clock: Callable[[], float]) -> None:
        self._open_session = open_session
        self._clock = clock
        self._waiting: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._session: StoreSession | None = None
        self._using = threading.Lock()  # held while the session is used
        self._is_nudged = False
        self._slow_until = 0.0
        self._pause = _FIRST_PAUSE
        self._has_failed = False
        self._is_closed = False

    async def do(self, task: Task) -> Any:
        """Returns the result of the task, which runs also if the caller is cancelled."""
        if self._is_closed:
            raise failures.closed()
        if task.pages <= _SMALL and self._using.acquire(blocking=False):
            try:
                outcome = self._done_at_once(task)
            finally:
                self._using.release()
            if outcome is not None:
                return outcome.result
        return await self._hand_over(task)

    async def close(self) -> None:
        """Runs all earlier tasks first."""
        if self._thread is not None and not self._is_closed:
            stopped = self._hand_over(_STOP)
            self._is_closed = True
            await stopped
            self._thread.join()
        self._is_closed = True

    def _done_at_once(self, task: Task) -> Outcome | None:
        begun = time.monotonic()
        if self._session is None or self._is_nudged or begun < self._slow_until:
            return None
        outcome = self._session.at_once(task) if task.pages else self._session.at_once_if_small(task)
        if time.monotonic() - begun > _SLOW:
            self._slow_until = begun + self._pause
            self._pause = min(self._pause * 2, _LONGEST_PAUSE)
        else:
            self._pause = _FIRST_PAUSE
        if self._session.needs_tidying(self._clock()):
            # Otherwise callers could take the session again and again before the thread gets it.
            self._is_nudged = True
            self._hand_over(_NUDGE)
        return outcome

    def _hand_over(self, task: Task) -> asyncio.Future[Any]:
        future = asyncio.get_running_loop().create_future()
        self._waiting.put((task, future))
        if self._thread is None:
            # A daemon, so that a store that was not closed does not delay the exit of the process.
            self._thread = threading.Thread(target=self._run, name="toolwire-store", daemon=True)
            self._thread.start()
        return future

    def _run(self) -> None:
        is_stopping = False
        while not is_stopping:
            jobs = self._take()
            is_stopping = bool(jobs) and jobs[-1][0] is _STOP
            ending = [jobs.pop()] if is_stopping else []
            with self._using:
                # Reads need no lock, so they must not wait for writes that do.
                self._finish([job for job in jobs if not job[0].pages])
                self._finish([job for job in jobs if job[0].pages])
                if self._session is not None and is_stopping:
                    self._session.close()
                elif self._session is not None:
                    self._tidy(self._session)
                _answer([future for _, future in ending], [Outcome() for _ in ending])
                self._is_nudged = False

    def _tidy(self, session: StoreSession) -> None:
        try:
            session.tidy(self._clock())
        except Exception:  # the thread must survive; reads and writes do not depend on this
            if not self._has_failed:
                self._has_failed = True
                _log.exception("the store could not be tidied up")

    def _finish(self, jobs: Sequence[_Job]) -> None:
        if jobs:
            _answer([future for _, future in jobs], self._perform([task for task, _ in jobs]))

    def _take(self) -> list[_Job]:
        """All waiting jobs; none after a while without any."""
        try:
            first = self._waiting.get(timeout=_IDLE)
        except queue.Empty:
            return []
        return [first, *(self._waiting.get_nowait() for _ in range(self._waiting.qsize()))]

    def _perform(self, tasks: Sequence[Task]) -> list[Outcome]:
        try:
            if self._session is not None and self._session.is_lost:
                self._session.close()
                self._session = None
            self._session = self._session or self._open_session()
            return self._session.perform(tasks)
        except Exception as error:  # the thread must survive; the callers get the error
            return [Outcome(error=failures.while_running(error)) for _ in tasks]


def _answer(futures: Sequence[asyncio.Future[Any]], outcomes: Sequence[Outcome]) -> None:
    answers: defaultdict[asyncio.AbstractEventLoop, list[_Answer]] = defaultdict(list)
    for future, outcome in zip(futures, outcomes, strict=True):
        answers[future.get_loop()].append((future, outcome))
    for loop, those in answers.items():
        # A loop that was closed meanwhile has no waiting callers.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(_resolve, those)


def _resolve(answers: list[_Answer]) -> None:
    for future, outcome in answers:
        if future.done():
            continue
        if outcome.error is None:
            future.set_result(outcome.result)
        else:
            future.set_exception(outcome.error)
