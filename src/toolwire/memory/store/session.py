"""Runs tasks on one connection: reads directly, writes grouped in transactions, all within the limits of the file."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from ...errors import GatewayError
from . import errors as failures
from .eviction import Name
from .pruning import FileBounds, Pruner
from .schema import FRAME, connect, connect_memory, pragma

Result = TypeVar("Result")
Work = Callable[[sqlite3.Connection], Any]

_SMALL_READ = 256 * 1024  # bytes that a caller may read itself: about a millisecond


class Outcome(Struct, frozen=True):
    result: Any = None
    error: GatewayError | None = None


class Task(Struct, frozen=True):
    """pages: how many it may write, 0 for a read. It may run twice, if the first run is rolled back.

    uses: owners and ids of the entries that it uses, or of their items. now: time of the call. is_deletion: the file does not grow.
    """

    work: Work
    pages: int = 0
    uses: tuple[Name, ...] = ()
    now: float = 0.0
    is_deletion: bool = False

    @property
    def room(self) -> int:
        """Free pages that the file must have."""
        return 0 if self.is_deletion else self.pages


class StoreSession:
    """For any thread, one at a time. at_once() never waits for another process or for a sync of the disk; perform() and tidy() do."""

    def __init__(self, path: Path | None, bounds: FileBounds, max_age: float, patience: float) -> None:
        self._bounds = bounds
        self._patience = patience
        self._unsaved = 0  # estimate of the pages in the journal since the last checkpoint
        self._connection = connect_memory() if path is None else connect(path, patience)
        # Otherwise SQLite would run a checkpoint within a commit, also in one of at_once().
        pragma(self._connection, "wal_autocheckpoint = 0")
        pragma(self._connection, f"journal_size_limit = {bounds.journal // 2}")
        self._pruner = Pruner(self._connection, bounds, max_age, self._write)
        self._wait(0)
        # Open all the time: fstat costs half of stat, and shows when the file is removed.
        self._journal = None if path is None else os.open(f"{path}-wal", os.O_RDONLY)

    def fit(self) -> None:
        """Called once at start: the file may be larger than the limit."""
        with self._patiently():
            self._pruner.shrink()

    def at_once(self, task: Task) -> Outcome | None:
        """None if it would have to wait, or failed: then the caller uses perform()."""
        try:
            if not task.pages:
                return self._read(task)
            if self._pruner.has_room(task.room) and self._begin(task.pages):
                return Outcome(self._finish(task.work))
        except Exception:
            return None  # perform() meets the same error and reports it
        return None

    def at_once_if_small(self, task: Task) -> Outcome | None:
        """The same, but None also for a large read."""
        connection, left = self._connection, _SMALL_READ

        def count(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> tuple[Any, ...]:
            nonlocal left
            left -= sum([len(value) for value in row if type(value) is bytes])
            if left < 0:
                raise OverflowError("this read is too large for the caller")
            return row

        longest = connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _SMALL_READ)
        connection.row_factory = count
        try:
            return self.at_once(task)
        finally:
            connection.row_factory = None
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, longest)

    def perform(self, tasks: Sequence[Task]) -> list[Outcome]:
        """One outcome for each, in order. What was written is durable when this returns."""
        with self._patiently():
            writes = [task for task in tasks if task.pages]
            written = iter([outcome for group in self._groups(writes) for outcome in self._written(group)])
            return [next(written) if task.pages else self._read_alone(task) for task in tasks]

    def needs_tidying(self, now: float) -> bool:
        return self._unsaved >= self._bounds.checkpoint or self._pruner.is_due(now)

    def tidy(self, now: float) -> None:
        """Checkpoint and remove expired entries. Errors are ignored here; the next task meets them."""
        with contextlib.suppress(sqlite3.Error, OSError, GatewayError), self._patiently():
            if self._unsaved >= self._bounds.checkpoint:
                self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
                self._unsaved = 0
            self._pruner.drop_old(now)

    @property
    def is_lost(self) -> bool:
        """Whether the file was removed: what is written now is lost."""
        return self._journal is not None and os.fstat(self._journal).st_nlink == 0

    def close(self) -> None:
        if self._journal is not None:
            os.close(self._journal)
        self._connection.close()

    @contextlib.contextmanager
    def _patiently(self) -> Iterator[None]:
        self._wait(self._patience)
        try:
            yield
        finally:
            self._wait(0)

    def _wait(self, seconds: float) -> None:
        pragma(self._connection, f"busy_timeout = {int(seconds * 1000)}")

    def _groups(self, tasks: list[Task]) -> Iterator[list[Task]]:
        """As many as one transaction may hold."""
        group: list[Task] = []
        pages = 0
        for task in tasks:
            if group and pages + task.pages > self._bounds.largest:
                yield group
                group, pages = [], 0
            group.append(task)
            pages += task.pages
        if group:
            yield group

    def _read(self, task: Task) -> Outcome:
        result = task.work(self._connection)
        self._pruner.note_uses(task.uses, task.now)
        return Outcome(result)

    def _read_alone(self, task: Task) -> Outcome:
        try:
            return self._read(task)
        except Exception as error:  # only the caller of this task gets it
            return Outcome(error=failures.while_running(error))

    def _written(self, group: list[Task]) -> list[Outcome]:
        try:
            return self._together(group)
        except Exception as error:
            if failures.is_full(error):
                return [self._alone(task, is_full=True) for task in group]
            if failures.is_locked(error):  # alone, each would wait as long in vain
                return [Outcome(error=failures.while_running(error)) for _ in group]
            if len(group) > 1:
                return [self._alone(task) for task in group]
            return [Outcome(error=failures.while_running(error))]

    def _alone(self, task: Task, *, is_full: bool = False) -> Outcome:
        try:
            if is_full:
                self._pruner.distrust(task.uses)
            [outcome] = self._together([task])
        except Exception as error:
            return Outcome(error=failures.while_running(error))
        return outcome

    def _together(self, group: list[Task]) -> list[Outcome]:
        pages = sum(task.pages for task in group)
        self._pruner.make_room(sum(task.room for task in group), [name for task in group for name in task.uses])
        return self._write(lambda connection: [Outcome(task.work(connection)) for task in group], pages)

    def _write(self, work: Callable[[sqlite3.Connection], Result], pages: int) -> Result:
        if not self._begin(pages):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            self._unsaved = 0
            if not self._begin(pages):
                raise failures.journal_held()
        return self._finish(work)

    def _begin(self, pages: int) -> bool:
        """Whether the journal has room; checked with the lock held, because other processes write to it, too."""
        self._connection.execute("BEGIN IMMEDIATE")
        if self._journal is None:
            return True
        journal = os.fstat(self._journal)
        if journal.st_size + pages * FRAME > self._bounds.journal or not journal.st_nlink:
            self._connection.execute("ROLLBACK")
            return False
        self._unsaved += pages
        return True

    def _finish(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        try:
            result = work(self._connection)
            self._connection.execute("COMMIT")
        except BaseException:
            # SQLite has already rolled back after some disk errors.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        return result
