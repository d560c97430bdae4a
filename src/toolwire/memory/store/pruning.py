"""Keeps the file below its size limit: evicts the least recently used entries, a few at a time, so that their pages are reused.

A quarter of the limit (96 MB at most) is for the journal (WAL), the rest for the file. SQLite itself limits the file; a checkpoint empties the
journal before a transaction would exceed its part. Pruning makes room in advance, so that writes rarely meet either limit. Between two
checks of the file, an estimate of the free pages is counted down, so most writes need no check.
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
_PAUSE = 60.0  # seconds between two searches for expired entries
_MOST_USES = 1000  # that are held in memory before they are written


class FileBounds(Struct, frozen=True):
    """All in pages, except journal, which is in bytes.

    data: of the file. largest: of one transaction. spare: free for the next writes. step: written by one step of pruning.
    checkpoint: in the journal before it is copied into the file.
    """

    data: int
    journal: int
    largest: int
    spare: int
    step: int
    checkpoint: int


def bounds_of(max_bytes: int, *, has_journal: bool = True) -> FileBounds:
    """The parts of a limit for everything. The estimate of a transaction may be wrong by a third before the journal is too long."""
    total = max_bytes // PAGE
    journal = min(total // 4, _LONGEST_JOURNAL // PAGE)
    data = total - journal - _SHARED if has_journal else total
    return FileBounds(
        data=data,
        journal=journal * PAGE,
        largest=journal * 3 // 4 if has_journal else data // 2,
        spare=max(4, min(data // 16, 256)),
        step=max(8, min(journal // 4, 256)),
        checkpoint=max(8, min(journal // 2, 2000)),
    )


class WriteEntry(Protocol):
    """Run work in its own transaction, which writes about so many pages."""

    def __call__(self, work: Callable[[Connection], Result], pages: int) -> Result: ...


class Pruner:
    """For one connection. Every step is a short transaction, so that other processes can write in between."""

    def __init__(self, connection: Connection, bounds: FileBounds, max_age: float, write: WriteEntry) -> None:
        self._connection = connection
        self._bounds = bounds
        self._max_age = max_age
        self._write = write
        self._free = 0  # estimate of the pages that can be used before the next check
        self._next_look = 0.0  # for expired entries
        self._uses: dict[Name, float] = {}  # of reads, not written yet
        self._limit_file()

    def has_room(self, pages: int) -> bool:
        """Whether so many pages are free; then they count as used."""
        if pages > self._free:
            return False
        self._free -= pages
        return True

    def make_room(self, pages: int, uses: Iterable[Name] = ()) -> None:
        """For a write that needs so many pages and extends these entries. Raises GatewayError if nothing else can be evicted."""
        if not self.has_room(pages):
            self._free = self._freed(pages + self._bounds.spare, uses)
            if not self.has_room(pages):
                raise failures.no_room()

    def distrust(self, uses: Iterable[Name] = ()) -> None:
        """The estimate was wrong, or another process used the room: check again. If the disk is full, nothing is pruned."""
        self._free = self._freed(4 * self._bounds.spare, uses)

    def note_uses(self, uses: Iterable[Name], now: float) -> None:
        """Buffered until something is evicted or expires, so that a read needs no write."""
        for name in uses:
            self._uses[name] = now

    def is_due(self, now: float) -> bool:
        return now >= self._next_look or len(self._uses) >= _MOST_USES

    def drop_old(self, now: float) -> None:
        """At most one step per call; the next call continues."""
        if not self.is_due(now):
            return
        oldest = now - self._max_age
        spared = Spared(self._connection, spares_running=False)
        step = self._bounds.step
        if self._step(lambda connection: evict(connection, step, spared, oldest)).pages < step:
            self._next_look = now + _PAUSE
        self._write_uses()  # afterwards, so that a read does not revive an expired entry

    def shrink(self) -> None:
        """Prune and rewrite a file that was made with a larger limit. Slow, so only at start."""
        excess = pragma(self._connection, "page_count") - self._bounds.data
        if excess > 0:
            # Room is computed with the new limit, so this prunes all that does not fit.
            self._freed(self._bounds.spare)
            self._connection.execute("PRAGMA temp_store = FILE")
            self._connection.execute("VACUUM")
            self._connection.execute("PRAGMA temp_store = MEMORY")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            self._limit_file()

    def _limit_file(self) -> None:
        pragma(self._connection, f"max_page_count = {self._bounds.data}")

    def _freed(self, wanted: int, uses: Iterable[Name] = ()) -> int:
        """Prunes until so many pages are free, if possible; returns how many are. uses: entries that must not be evicted."""
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
        """Remove chains until enough pages are written; how many, and whether the last chain is removed."""

        def work(connection: Connection) -> Evicted:
            total = Evicted()
            while total.pages < self._bounds.step and (more := remove(connection)).pages:
                total = Evicted(total.pages + more.pages, more.is_whole)
            return total

        return self._write(work, self._bounds.step)
