"""How the file stays under its bound: the least recently used entries go, a few at a time, and their pages are used again.

The bound is parted: a quarter (96 MB at most) is for the journal (WAL), the rest for the file. SQLite itself never lets the file
grow past its part; the journal is emptied into the file before a transaction would take it past its own. Pruning makes room
beforehand, so that neither is felt. Between two looks at the file only a guess of the pages used is counted down, so most writes
cost no look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from sqlite3 import Connection
from typing import Protocol, TypeVar

from msgspec import Struct

from . import errors as failures
from .eviction import Evicted, Name, Spared, evict, uses_in, write_uses
from .schema import PAGE, pragma

Result = TypeVar("Result")
_SHARED = 16  # pages for the journal's index and its header
_LONGEST_JOURNAL = 96 << 20  # enough for the largest request that the server takes by default
_PAUSE = 60.0  # seconds between two looks for what is too old
_MOST_USES = 1000  # that are held in memory before they are written


class FileBounds(Struct, frozen=True):
    """All in pages, but journal, which is in bytes.

    data: of the file. largest: of one transaction. spare: kept free for the next writes. step: touched in one go of pruning.
    checkpoint: in the journal before it is copied into the file.
    """

    data: int
    journal: int
    largest: int
    spare: int
    step: int
    checkpoint: int


def bounds_of(max_bytes: int) -> FileBounds:
    """How a bound for the whole is parted. An estimate of a transaction may err by a third before the journal is too long."""
    total = max_bytes // PAGE
    journal = min(total // 4, _LONGEST_JOURNAL // PAGE)
    data = total - journal - _SHARED
    return FileBounds(
        data=data,
        journal=journal * PAGE,
        largest=journal * 3 // 4,
        spare=max(4, min(data // 16, 256)),
        step=max(8, min(journal // 4, 256)),
        checkpoint=max(8, min(journal // 2, 2000)),
    )


class Write(Protocol):
    """Do work in a transaction of its own that touches about so many pages."""

    def __call__(self, work: Callable[[Connection], Result], pages: int) -> Result: ...


class Pruner:
    """For one connection; every step of it is a short transaction, so that other processes get their turn."""

    def __init__(self, connection: Connection, bounds: FileBounds, max_age: float, write: Write) -> None:
        self._connection = connection
        self._bounds = bounds
        self._max_age = max_age
        self._write = write
        self._free = 0  # pages that can be used before the next look, by guess
        self._next_look = 0.0  # for what is too old
        self._uses: dict[Name, float] = {}  # reads that are not written yet
        self._limit_file()

    def has_room(self, pages: int) -> bool:
        """Whether a write that needs so many can go ahead; then they count as used."""
        if pages > self._free:
            return False
        self._free -= pages
        return True

    def make_room(self, pages: int, uses: Iterable[Name] = ()) -> None:
        """Before a write that needs so many and extends these entries; a GatewayError if nothing else can be evicted."""
        if not self.has_room(pages):
            self._free = self._freed(pages + self._bounds.spare, uses)
            if not self.has_room(pages):
                raise failures.no_room()

    def distrust(self, uses: Iterable[Name] = ()) -> None:
        """The guess was wrong, or another process took the room: look again. If it is the disk that is full, nothing is pruned."""
        self._free = self._freed(4 * self._bounds.spare, uses)

    def note_uses(self, uses: Iterable[Name], now: float) -> None:
        """Held in memory until something is evicted or tidied up, so that a read costs no write."""
        for name in uses:
            self._uses[name] = now

    def is_due(self, now: float) -> bool:
        return now >= self._next_look or len(self._uses) >= _MOST_USES

    def drop_old(self, now: float) -> None:
        """At most one step a call; the next call goes on if there was more than that."""
        if not self.is_due(now):
            return
        oldest = now - self._max_age
        spared = Spared(self._connection, spares_running=False)
        step = self._bounds.step
        if self._step(lambda connection: evict(connection, step, spared, oldest)).pages < step:
            self._next_look = now + _PAUSE
        self._write_uses()  # afterwards, so that a read does not bring back what had expired

    def shrink(self) -> None:
        """A file from the time of a larger bound: prune it and write it anew. Only for the start: it takes its time."""
        excess = pragma(self._connection, "page_count") - self._bounds.data
        if excess > 0:
            # Room is counted against the new bound, so this prunes all that does not fit.
            self._freed(self._bounds.spare)
            self._connection.execute("PRAGMA temp_store = FILE")
            self._connection.execute("VACUUM")
            self._connection.execute("PRAGMA temp_store = MEMORY")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            self._limit_file()

    def _limit_file(self) -> None:
        pragma(self._connection, f"max_page_count = {self._bounds.data}")

    def _freed(self, wanted: int, uses: Iterable[Name] = ()) -> int:
        """How many pages are free now, at least as many as wanted if there is enough to prune. uses: entries that must stay."""
        if (free := self._room()) >= wanted:
            return free
        self._write_uses()
        spared = Spared(self._connection, uses)
        evicted = Evicted(1)
        while evicted.pages and (free < wanted or not evicted.is_whole):
            evicted = self._step(lambda connection: evict(connection, self._bounds.step, spared))
            free = self._room()
        return free

    def _write_uses(self) -> None:
        uses = iter(self._uses.items())
        while some := list(islice(uses, uses_in(self._bounds.step))):
            self._write(partial(write_uses, uses=some), self._bounds.step)
        self._uses.clear()

    def _room(self) -> int:
        unused = self._bounds.data - pragma(self._connection, "page_count")
        return unused + pragma(self._connection, "freelist_count")

    def _step(self, remove: Callable[[Connection], Evicted]) -> Evicted:
        """Remove chains until enough pages are touched; how many it were, and whether the last chain is gone."""

        def work(connection: Connection) -> Evicted:
            total = Evicted()
            while total.pages < self._bounds.step and (more := remove(connection)).pages:
                total = Evicted(total.pages + more.pages, more.is_whole)
            return total

        return self._write(work, self._bounds.step)
