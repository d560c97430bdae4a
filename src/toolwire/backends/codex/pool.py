"""A pool of app-servers: started on demand, restarted after a crash, replaced after many threads or at a memory limit.

A slot has one worker at a time, and the least busy slot gets the next turn. A worker that has reached a limit is retired: it gets no
new turns and is closed after its last one. After a failure a slot pauses with exponential backoff until a turn succeeds. Meanwhile the
other slots do the work; without any, a request fails at once or after a short wait.
"""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from ...errors import GatewayError, UpstreamError
from ..sessions import BackgroundTasks, SessionLost
from .worker import AppServerWorker

_FIRST_PAUSE = 0.5  # seconds
_MAX_PAUSE = 30.0
_MAX_WAIT = 2.0  # seconds that a request waits for a pause to end
_START_LOAD = 4  # turns that a running worker takes before another one is started
_PAUSE_LOAD = 1e6  # a slot that pauses is chosen last
_MAX_PROCESSES = 64  # whose memory is added up
_MEMORY_INTERVAL = 10  # threads between two checks of the memory


class WorkerLimits(Struct, frozen=True, kw_only=True):
    """When a worker is retired; 0 is never."""

    threads: int = 200
    memory: int = 1 << 30


class Lease:
    """A worker for one turn, to be released once."""

    def __init__(self, pool: WorkerPool, slot: _Slot, worker: AppServerWorker) -> None:
        self.worker = worker
        self._pool = pool
        self._slot = slot
        self._is_released = False

    def distrust(self) -> None:
        """The worker does not respond: it gets no new turns."""
        if self._slot.worker is self.worker:
            self._slot.worker = None

    def release(self, *, is_good: bool) -> None:
        """is_good: the app-server worked, also if the model failed."""
        if not self._is_released:
            self._is_released = True
            self._pool._take_back(self._slot, self.worker, is_good=is_good)


class WorkerPool:
    """start returns a worker that is ready, or raises GatewayError. Belongs to one event loop."""

    def __init__(
        self, start: Callable[[], Awaitable[AppServerWorker]], size: int, limits: WorkerLimits | None = None
    ) -> None:
        self._start = start
        self._limits = limits or WorkerLimits()
        self._slots = [_Slot() for _ in range(max(1, size))]
        self._busy: dict[AppServerWorker, int] = {}  # all running workers, including retired ones
        self._checked: dict[AppServerWorker, int] = {}  # threads opened at the last check of its memory
        self._closing = BackgroundTasks()
        self._is_closed = False

    @property
    def workers(self) -> list[AppServerWorker]:
        return list(self._busy)

    @property
    def running(self) -> int:
        """Turns that have a worker now."""
        return sum(self._busy.values())

    async def lease(self) -> Lease:
        """Raises GatewayError where no worker is available."""
        if self._is_closed:
            raise _closed()
        for slot in self._slots:
            self._remove_dead(slot)
        slot = self._slots[min(range(len(self._slots)), key=self._load)]
        slot, worker = (slot, slot.worker) if slot.worker is not None else await self._started_or_other(slot)
        if worker not in self._busy:
            raise _closed()
        self._busy[worker] += 1
        return Lease(self, slot, worker)

    def lease_of(self, worker: AppServerWorker) -> Lease | None:
        """For the worker of a stored thread; None if it gets no new turns."""
        slot = next((slot for slot in self._slots if slot.worker is worker and worker.is_alive), None)
        if slot is None or self._is_closed:
            return None
        self._busy[worker] += 1
        return Lease(self, slot, worker)

    async def close(self) -> None:
        """Closes every worker, also one that is starting. Safe to call twice."""
        self._is_closed = True
        starting = [slot.starting for slot in self._slots if slot.starting is not None]
        for task in starting:
            task.cancel()
        await asyncio.gather(*starting, return_exceptions=True)
        for worker in list(self._busy):
            self._close_soon(worker)
        await self._closing.wait()

    def retire(self) -> None:
        """Retires all running workers."""
        for slot in self._slots:
            worker, slot.worker = slot.worker, None
            if worker is not None and not self._busy[worker]:
                self._close_soon(worker)

    def _load(self, index: int) -> float:
        slot = self._slots[index]
        if slot.worker is not None:
            return self._busy[slot.worker] + index / 1000
        if slot.starting is not None:
            return _START_LOAD + slot.waiting + index / 1000
        pause = slot.pause()
        return _PAUSE_LOAD + pause if pause > 0 else _START_LOAD - 0.5 + index / 1000

    async def _started_or_other(self, slot: _Slot) -> tuple[_Slot, AppServerWorker]:
        """Falls back to a running worker where the slot's does not start."""
        try:
            return slot, await self._started(slot)
        except GatewayError:
            for other in sorted(self._slots, key=lambda one: self._busy.get(one.worker, 0) if one.worker else 0):
                if other.worker is not None and other.worker.is_alive:
                    return other, other.worker
            raise

    async def _started(self, slot: _Slot) -> AppServerWorker:
        """Concurrent requests share one start; cancelling a request does not stop it."""
        if slot.starting is None:
            slot.starting = asyncio.create_task(self._start_in(slot))
            slot.starting.add_done_callback(lambda task: task.cancelled() or task.exception())  # else asyncio logs it
        starting = slot.starting
        slot.waiting += 1
        try:
            await asyncio.wait([starting])
        finally:
            slot.waiting -= 1
        if starting.cancelled():
            raise _closed()
        return starting.result()

    async def _start_in(self, slot: _Slot) -> AppServerWorker:
        try:
            pause = slot.pause()
            if pause > _MAX_WAIT and slot.error is not None:
                last, headers = slot.error, {"retry-after": str(math.ceil(pause))}
                raise UpstreamError(
                    last.message, status=last.status, code=last.code, where=last.where, hint=last.hint, headers=headers
                )
            await asyncio.sleep(pause)
            try:
                worker = await self._start()
            except GatewayError as error:
                slot.fail(error)
                raise
        finally:
            slot.starting = None
        slot.worker = worker
        self._busy[worker] = 0
        return worker

    def _take_back(self, slot: _Slot, worker: AppServerWorker, *, is_good: bool) -> None:
        if worker not in self._busy:  # the pool was closed in the meantime
            return
        self._busy[worker] -= 1
        self._remove_dead(slot)
        if is_good and slot.worker is worker:
            slot.recover()
        if slot.worker is worker and self._is_used_up(worker):
            slot.worker = None
        if slot.worker is not worker and not self._busy.get(worker):
            self._close_soon(worker)

    def _remove_dead(self, slot: _Slot) -> None:
        """Removes a dead worker from its slot."""
        worker = slot.worker
        if worker is None or worker.is_alive:
            return
        slot.worker = None
        slot.fail(died(worker.fault))
        if not self._busy[worker]:
            self._close_soon(worker)

    def _is_used_up(self, worker: AppServerWorker) -> bool:
        if 0 < self._limits.threads <= worker.opened:
            return True
        if not self._limits.memory or worker.opened - self._checked.get(worker, 0) < _MEMORY_INTERVAL:
            return False
        self._checked[worker] = worker.opened
        return memory_of(worker.channel.pid) > self._limits.memory

    def _close_soon(self, worker: AppServerWorker) -> None:
        if self._busy.pop(worker, None) is None:
            return
        self._checked.pop(worker, None)
        for slot in self._slots:
            if slot.worker is worker:
                slot.worker = None
        self._closing.start(worker.close())


def died(fault: SessionLost | None) -> UpstreamError:
    """The error of open turns, and of the next request, after a worker has died."""
    message = f"Codex stopped before it had answered: {fault or 'the reason is not known.'}"
    return UpstreamError(message, code="codex_stopped", retryable=True)


def memory_of(pid: int) -> int:
    """Resident bytes of a process and its children; 0 where /proc does not have them."""
    waiting, total = [pid] if pid else [], 0
    for _ in range(_MAX_PROCESSES):
        if not waiting:
            break
        folder = Path("/proc") / str(waiting.pop())
        with suppress(OSError, ValueError, IndexError):
            total += int((folder / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
            waiting += map(int, (folder / "task" / folder.name / "children").read_text().split())
    return total


def _closed() -> UpstreamError:
    return UpstreamError("this back end is closed.", status=503, code="closed")


class _Slot:
    """A place for one worker, with its recent failures."""

    def __init__(self) -> None:
        self.worker: AppServerWorker | None = None
        self.starting: asyncio.Task[AppServerWorker] | None = None
        self.waiting = 0
        self.error: GatewayError | None = None
        self._failures = 0
        self._not_before = 0.0

    def pause(self) -> float:
        return max(0.0, self._not_before - time.monotonic())

    def fail(self, error: GatewayError) -> None:
        self.error = error
        self._not_before = time.monotonic() + min(_FIRST_PAUSE * 2**self._failures, _MAX_PAUSE)
        self._failures = min(self._failures + 1, 10)

    def recover(self) -> None:
        self.error = None
        self._failures = 0
