"""Live runs: a model that works outside of this process, to be read, resumed with tool results, and stopped.

Shared by the back ends that hold such runs. `Delivery` streams one answer and hands its run back exactly once, whatever the
client does. `Parking` stores runs that wait for tool results between two requests: a run is parked at a `ResumePoint`
(`continuation.py`), and only a request for exactly that point takes it, once. All other runs are stopped: after a timeout, as
the oldest of too many, or when the parking is closed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct

from ..events import Event, Failed, PartStarted
from ..types import Request
from .base import EventReply
from .continuation import Continuation, ResumePoint, answered_calls, resume_point

PARKED_SECONDS = 300.0
MAX_PARKED = 256
_MESSAGE_BYTES = 256  # memory of a stored message beside its text


class SessionLost(Exception):
    """The program or connection that runs the model is gone. Clients may read the message."""


class Overflow(SessionLost):
    """Messages arrive faster than they are read."""


class AnswerTimeouts(Struct, frozen=True, kw_only=True):
    """Seconds until the first part of an answer, and between two events of it."""

    first: float
    idle: float


class LiveRun(Protocol):
    @property
    def is_over(self) -> bool:
        """The last event of the answer has been read."""

    async def more(self) -> list[Event]:
        """The next events of the answer; may be empty at its end."""


R = TypeVar("R", bound=LiveRun)
T = TypeVar("T")


class RunReply(EventReply, kw_only=True):
    """stop ends the run, also where reading has not begun; harmless after the end."""

    stop: Callable[[], None]

    async def close(self) -> None:
        await super().close()
        self.stop()


class Delivery(Generic[R]):
    """One answer on its way to the client. The run goes to `finish` at the end of the answer, or else to `abandon`."""

    def __init__(self, run: R, finish: Callable[[R], None], abandon: Callable[[R], None]) -> None:
        self.run = run
        self._finish = finish
        self._abandon = abandon
        self._is_done = False

    async def events(self, first: list[Event]) -> AsyncIterator[list[Event]]:
        try:
            events = await self.adjust(first)
            while True:
                if self.run.is_over:
                    self._is_done = True
                    self._finish(self.run)  # before the client reads the end: its next request may come at once
                if events:
                    yield events
                if self._is_done:
                    return
                events = await self.adjust(await self.run.more())
        finally:
            self.stop()

    async def adjust(self, events: list[Event]) -> list[Event]:
        """For subclasses that change events on their way, or replace the run."""
        return events

    def stop(self) -> None:
        if not self._is_done:
            self._is_done = True
            self._abandon(self.run)


async def read_first(run: LiveRun, read: Callable[[], Awaitable[list[Event]]]) -> list[Event]:
    """All events up to the first part. Raises the error of an answer that fails before it has one."""
    events: list[Event] = []
    has_part = False
    while not has_part and not run.is_over:
        more = await read()
        has_part = any(isinstance(event, PartStarted) for event in more)
        events += more
    last = events[-1] if events else None
    if isinstance(last, Failed) and not has_part:
        raise last.error.fresh()
    return events


class Inbox(Generic[T]):
    """A bounded queue of the messages about one request, with one reader. The next message to be read always has room."""

    def __init__(self, id: str, max_bytes: int) -> None:
        self.id = id
        self.request_id = ""  # of the client's current request, for the trace
        self._max_bytes = max_bytes
        self._messages: deque[tuple[T, int]] = deque()
        self._size = 0
        self._fault: SessionLost | None = None
        self._arrived = asyncio.Event()

    def put(self, message: T, size: int) -> bool:
        """False at an overflow, after which everything is dropped."""
        if self._fault is not None:
            return True  # the request is over
        size += _MESSAGE_BYTES
        if self._messages and self._size - self._messages[0][1] + size > self._max_bytes:
            self.end(Overflow("the answer came faster than it was read, and the buffer is full."))
            self._messages.clear()
            return False
        self._messages.append((message, size))
        self._size += size
        self._arrived.set()
        return True

    def end(self, fault: SessionLost) -> None:
        """No message follows. Stored messages can still be read."""
        self._fault = self._fault or fault
        self._arrived.set()

    async def next(self) -> T:
        """Raises SessionLost after the last message."""
        while not self._messages:
            if self._fault is not None:
                raise type(self._fault)(*self._fault.args)  # a new one: its traceback refers to this inbox
            self._arrived.clear()
            await self._arrived.wait()
        return self._pop()

    def ready(self) -> list[T]:
        """All stored messages, without waiting."""
        return [self._pop() for _ in range(len(self._messages))]

    def _pop(self) -> T:
        message, size = self._messages.popleft()
        self._size -= size
        return message


class BackgroundTasks:
    """Cleanup that no request waits for, and that close() of a back end does."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def wait(self) -> None:
        """Until all have ended, including those that start meanwhile."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class ParkingCounts(Struct):
    """What became of the runs so far. Runs that appear only in `parked` are still parked."""

    parked: int = 0
    taken: int = 0
    expired: int = 0
    evicted: int = 0
    superseded: int = 0
    closed: int = 0
    failed: int = 0  # stop raised; its resources may not be free


class _Parked(Struct, Generic[T], eq=False):
    run: T
    point: ResumePoint
    timer: asyncio.TimerHandle | None = None


class Parking(Generic[T]):
    """stop frees what a run holds; it is awaited once for each run that no request took, and should not raise.

    Belongs to one event loop.
    """

    def __init__(
        self, stop: Callable[[T], Awaitable[None]], *, seconds: float = PARKED_SECONDS, most: int = MAX_PARKED
    ) -> None:
        self.counts = ParkingCounts()
        self.on_park: Callable[[ResumePoint, float], None] | None = None
        self._stop = stop
        self._seconds = seconds
        self._most = most
        self._all: dict[_Parked[T], None] = {}  # oldest first
        self._points: dict[ResumePoint, list[_Parked[T]]] = {}
        self._stopping = BackgroundTasks()
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._all)

    @property
    def stopping(self) -> int:
        """Runs that are being stopped now."""
        return len(self._stopping)

    def park(self, run: T, point: ResumePoint) -> None:
        """After close() the run is stopped at once."""
        self.counts.parked += 1
        if self._is_closed:
            self.counts.closed += 1
            self._stop_soon(run)
            return
        parked = _Parked(run, point)
        parked.timer = asyncio.get_running_loop().call_later(self._seconds, self._expire, parked)
        self._all[parked] = None
        self._points.setdefault(point, []).append(parked)
        if self.on_park is not None:
            self.on_park(point, self._seconds)
        while len(self._all) > self._most:
            self.counts.evicted += 1
            self._stop_soon(self._remove(next(iter(self._all))))

    def holds(self, point: ResumePoint) -> bool:
        return point in self._points

    def take(self, point: ResumePoint) -> T | None:
        """The run parked here, which the caller then owns; of several, the latest."""
        waiting = self._points.get(point)
        if not waiting:
            return None
        self.counts.taken += 1
        return self._remove(waiting[-1])

    def resume(self, request: Request) -> tuple[T, Continuation] | None:
        """The run that waits for the results in this request. Without one, runs whose calls it answers are superseded."""
        if not self._all:
            return None
        found = resume_point(request)
        run = self.take(found[0]) if found is not None else None
        if found is None or run is None:
            self.supersede(answered_calls(request), request.owner)
            return None
        return run, found[1]

    def discard(self, run: T) -> bool:
        """Removes a run that has ended by itself, without stopping it. False where it is not parked."""
        found = next((parked for parked in self._all if parked.run is run), None)
        if found is not None:
            self._remove(found)
        return found is not None

    def supersede(self, calls: Iterable[str], owner: str) -> None:
        """These calls were answered in another run: stops runs that wait for nothing else."""
        answered = set(calls)
        for parked in list(self._all):
            if parked.point.owner == owner and parked.point.calls <= answered:
                self.counts.superseded += 1
                self._stop_soon(self._remove(parked))

    async def close(self) -> None:
        """Stops every run and waits for it. Safe to call twice."""
        self._is_closed = True
        while self._all:
            self.counts.closed += 1
            self._stop_soon(self._remove(next(iter(self._all))))
        await self._stopping.wait()

    def _expire(self, parked: _Parked[T]) -> None:
        self.counts.expired += 1
        self._stop_soon(self._remove(parked))

    def _remove(self, parked: _Parked[T]) -> T:
        if parked.timer is not None:
            parked.timer.cancel()
        del self._all[parked]
        waiting = self._points[parked.point]
        waiting.remove(parked)
        if not waiting:
            del self._points[parked.point]
        return parked.run

    def _stop_soon(self, run: T) -> None:
        async def stop() -> None:
            await self._stop(run)

        self._stopping.start(stop()).add_done_callback(self._note_failure)

    def _note_failure(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() or task.exception() is not None:
            self.counts.failed += 1
