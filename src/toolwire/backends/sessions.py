"""Open turns between two requests: a back end that waits for results is kept until its client comes back with them.

A turn is parked at a Place: the calls that it waits for, what they were said on (`continuing.py`), and whose they are. Only a request
for exactly that place takes it, and only one does. All others leave on their own: after their time, as the oldest of too many, or
when everything is closed. Whoever leaves unasked is let go once, by a callback that frees what the turn holds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Generic, TypeVar

from msgspec import Struct

T = TypeVar("T")

SECONDS = 300.0
MOST = 256


class Place(Struct, frozen=True):
    """Where a turn waits: two are the same only if all of it is."""

    calls: frozenset[str]
    ground: str = ""
    owner: str = ""


class Counts(Struct):
    """What became of the turns so far; those neither taken nor let go are still here."""

    parked: int = 0
    taken: int = 0
    expired: int = 0
    crowded_out: int = 0
    overtaken: int = 0
    closed: int = 0
    failed: int = 0  # the callback raised; whatever it had to free may still be there


class _Parked(Struct, Generic[T], eq=False):
    turn: T
    place: Place
    timer: asyncio.TimerHandle | None = None


class Parking(Generic[T]):
    """let_go is awaited for each turn that nobody came for; it should not raise. Belongs to one event loop."""

    def __init__(self, let_go: Callable[[T], Awaitable[None]], *, seconds: float = SECONDS, most: int = MOST) -> None:
        self.counts = Counts()
        self._let_go = let_go
        self._seconds = seconds
        self._most = most
        self._all: dict[_Parked[T], None] = {}  # oldest first
        self._places: dict[Place, list[_Parked[T]]] = {}
        self._leaving: set[asyncio.Task[None]] = set()
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._all)

    @property
    def leaving(self) -> int:
        """Turns whose letting go has begun and not ended."""
        return len(self._leaving)

    def park(self, turn: T, place: Place) -> None:
        """After close it is let go at once."""
        self.counts.parked += 1
        if self._is_closed:
            self.counts.closed += 1
            self._leave(turn)
            return
        parked = _Parked(turn, place)
        parked.timer = asyncio.get_running_loop().call_later(self._seconds, self._expire, parked)
        self._all[parked] = None
        self._places.setdefault(place, []).append(parked)
        while len(self._all) > self._most:
            self.counts.crowded_out += 1
            self._leave(self._remove(next(iter(self._all))))

    def take(self, place: Place) -> T | None:
        """The turn that waits here, which then is the caller's; of several that are alike, the latest."""
        waiting = self._places.get(place)
        if not waiting:
            return None
        self.counts.taken += 1
        return self._remove(waiting[-1])

    def forget(self, turn: T) -> bool:
        """Takes this very turn out, without letting it go; False where it is not here. For turns that have died by themselves."""
        found = next((parked for parked in self._all if parked.turn is turn), None)
        if found is not None:
            self._remove(found)
        return found is not None

    def overtake(self, calls: Iterable[str], owner: str) -> None:
        """These calls have been answered elsewhere: whoever waits for nothing but some of them waits in vain, and is let go."""
        answered = set(calls)
        for parked in [
            parked for parked in self._all if parked.place.owner == owner and parked.place.calls <= answered
        ]:
            self.counts.overtaken += 1
            self._leave(self._remove(parked))

    async def close(self) -> None:
        """Everybody is let go, and gone when this returns. Safe to call twice."""
        self._is_closed = True
        while self._all:
            self.counts.closed += 1
            self._leave(self._remove(next(iter(self._all))))
        while self._leaving:
            await asyncio.wait(self._leaving)

    def _expire(self, parked: _Parked[T]) -> None:
        self.counts.expired += 1
        self._leave(self._remove(parked))

    def _remove(self, parked: _Parked[T]) -> T:
        if parked.timer is not None:
            parked.timer.cancel()
        del self._all[parked]
        waiting = self._places[parked.place]
        waiting.remove(parked)
        if not waiting:
            del self._places[parked.place]
        return parked.turn

    def _leave(self, turn: T) -> None:
        task = asyncio.get_running_loop().create_task(self._freed(turn))
        self._leaving.add(task)
        task.add_done_callback(self._left)

    async def _freed(self, turn: T) -> None:
        await self._let_go(turn)

    def _left(self, task: asyncio.Task[None]) -> None:
        """An exception is counted: nobody waits here to whom it could be raised."""
        self._leaving.discard(task)
        if task.cancelled() or task.exception() is not None:
            self.counts.failed += 1
