"""Who does the tasks: the caller itself where that costs it next to nothing, else a thread.

A small write goes to the journal without waiting for the disk, like a line to a log; a read is mostly answered from memory. To
hand such work to a thread costs more than the work. So when nobody else is at it, the caller does it at once. All that may take
its time (another process has the lock, pruning, copying the journal, large entries, a slow disk) is for the thread, which takes
everything that waits at once, writes it in one transaction and answers it with one call into the loop.
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
_SLOW = 0.1  # seconds; a disk that takes longer is left to the thread for a while
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0  # how long, doubled each time it happens again
_IDLE = 60.0  # seconds of silence after which the thread looks for something to tidy

_log = logging.getLogger("toolwire.memory.store")

_STOP = Task(lambda connection: None)
_NUDGE = Task(lambda connection: None)

_Job: TypeAlias = tuple[Task, "asyncio.Future[Any]"]
_Answer: TypeAlias = tuple["asyncio.Future[Any]", Outcome]


class StoreThread:
    """Starts with the first task, so a process may fork before it. A session that cannot be opened is tried again each time."""

    def __init__(self, open_session: Callable[[], StoreSession], clock: Callable[[], float]) -> None:
        self._open_session = open_session
        self._clock = clock
        self._waiting: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._session: StoreSession | None = None
        self._using = threading.Lock()  # held by whoever uses the session
        self._is_nudged = False
        self._slow_until = 0.0
        self._pause = _FIRST_PAUSE
        self._has_failed = False
        self._is_closed = False

    async def do(self, task: Task) -> Any:
        """What the task returns; it is done also if the caller is cancelled meanwhile."""
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
        """Everything asked before is done first."""
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
            # The thread would wait for long if callers went on taking the session from under its nose.
            self._is_nudged = True
            self._hand_over(_NUDGE)
        return outcome

    def _hand_over(self, task: Task) -> asyncio.Future[Any]:
        future = asyncio.get_running_loop().create_future()
        self._waiting.put((task, future))
        if self._thread is None:
            # A daemon, so that a store nobody closed does not hold up the end of the process.
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
                # A read waits for no lock, so who asked it must not wait for writes that do.
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
        except Exception:  # the thread must live on; writes and reads do not depend on tidying
            if not self._has_failed:
                self._has_failed = True
                _log.exception("the store could not be tidied up")

    def _finish(self, jobs: Sequence[_Job]) -> None:
        if jobs:
            _answer([future for _, future in jobs], self._perform([task for task, _ in jobs]))

    def _take(self) -> list[_Job]:
        """All that waits; nothing after a while of silence."""
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
        except Exception as error:  # the thread must live on; whoever waits gets it
            return [Outcome(error=failures.while_running(error)) for _ in tasks]


def _answer(futures: Sequence[asyncio.Future[Any]], outcomes: Sequence[Outcome]) -> None:
    answers: defaultdict[asyncio.AbstractEventLoop, list[_Answer]] = defaultdict(list)
    for future, outcome in zip(futures, outcomes, strict=True):
        answers[future.get_loop()].append((future, outcome))
    for loop, those in answers.items():
        # A loop that was closed meanwhile has nobody left who waits.
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
