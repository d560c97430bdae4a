"""LRU eviction of whole chains.

Entries form trees: the parent of an answer is the answer it continues, or its conversation, and the answer cannot be continued without it. So
an entry is as recent as the most recent entry below it. A use is written to one row only (`written`). When eviction meets a row that is
older than one below it, it corrects that row: one small write per entry each time the store has turned over, instead of one for every
entry of the chain with each request.
"""

from __future__ import annotations

from collections.abc import Iterable
from sqlite3 import Connection
from typing import NamedTuple, TypeAlias

from . import statements
from .base import RUNNING

Name: TypeAlias = tuple[str, str]  # owner and id of an entry, or of an item that one answered

_COLUMNS = "place, key, previous_key, written, status"
BY_USE = f"SELECT {_COLUMNS} FROM entries ORDER BY written, place"
BY_KEY = f"SELECT {_COLUMNS} FROM entries WHERE key = ?"
# Parents before children. UNION drops duplicates, so a cycle ends.
BELOW = f"""
WITH RECURSIVE below ({_COLUMNS}) AS (
    SELECT {_COLUMNS} FROM entries WHERE place = ?
    UNION
    SELECT {", ".join(f"entries.{name}" for name in _COLUMNS.split(", "))}
    FROM below CROSS JOIN entries ON entries.previous_key = below.key
)
SELECT {_COLUMNS} FROM below"""
_USED = "UPDATE entries SET written = ? WHERE written < ? AND key = ?"
_ITEM_USED = (
    "UPDATE entries SET written = ? WHERE written < ? AND place = (SELECT place FROM output_ids WHERE item_key = ?)"
)
_PAGES_OF_USE = 3  # the row and two places in the index by use


class Evicted(NamedTuple):
    """pages: how many were written, 0 if there is nothing to evict. is_whole: the chain is removed completely."""

    pages: int = 0
    is_whole: bool = True


class _Row(NamedTuple):
    place: int
    key: int
    parent: int | None
    used: float
    status: str


class Spared:
    """Entries that must not be evicted, with all their parents: those being written and, if wanted, running answers."""

    def __init__(self, connection: Connection, names: Iterable[Name] = (), *, spares_running: bool = True) -> None:
        self._connection = connection
        self._keys = set[int]()
        self._spares_running = spares_running
        for owner, id in names:
            if (row := _find(connection, statements.key_of(owner, id))) is not None:
                self._add(row)

    def __contains__(self, row: _Row) -> bool:
        return row.key in self._keys

    def learn(self, rows: Iterable[_Row]) -> bool:
        """Adds the running ones; whether there are any."""
        running = [row for row in rows if row.status in RUNNING] if self._spares_running else []
        for row in running:
            self._add(row)
        return bool(running)

    def _add(self, row: _Row) -> None:
        self._keys.update(one.key for one in _upwards(self._connection, row))


def evict(connection: Connection, pages: int, spared: Spared, before: float = float("inf")) -> Evicted:
    """Remove the least recently used chain, or branches of it, if its last use was before this time.

    Writes about so many pages; a longer chain loses its last answers first. A call may correct uses instead and evict nothing.
    """
    cursor = connection.execute(BY_USE)
    for row in map(_Row._make, cursor):
        if row.used >= before:
            break
        while row not in spared:
            *_, top = (one for one in _upwards(connection, row) if one.used <= row.used and one not in spared)
            rows = [_Row._make(found) for found in connection.execute(BELOW, (top.place,))]
            if not spared.learn(rows):
                cursor.close()
                return _correct_uses(connection, rows, pages) or _remove(connection, rows, pages)
    cursor.close()
    return Evicted()


def write_uses(connection: Connection, uses: Iterable[tuple[Name, float]]) -> None:
    """uses: entries or items, each with its time."""
    values = [(time, time, statements.key_of(owner, id)) for (owner, id), time in uses]
    connection.executemany(_USED, values)
    connection.executemany(_ITEM_USED, values)


def uses_in(pages: int) -> int:
    """How many uses fit in a transaction of so many pages."""
    return max(1, pages // _PAGES_OF_USE)


def _correct_uses(connection: Connection, rows: list[_Row], pages: int) -> Evicted | None:
    """Make entries as recent as the most recent one below them; None if they all are."""
    newest = {row.key: row.used for row in rows}
    for row in reversed(rows):
        if row.parent in newest:
            newest[row.parent] = max(newest[row.parent], newest[row.key])
    older = [(newest[row.key], row.used, row.key) for row in rows if newest[row.key] > row.used]
    if not older:
        return None
    some = older[: uses_in(pages)]
    connection.executemany("UPDATE entries SET written = ? WHERE written = ? AND key = ?", some)
    return Evicted(_PAGES_OF_USE * len(some))


def _remove(connection: Connection, rows: list[_Row], pages: int) -> Evicted:
    touched = 0
    for count, row in enumerate(reversed(rows), 1):
        touched += statements.remove(connection, row.place)
        if touched >= pages and count < len(rows):
            return Evicted(touched, is_whole=False)
    return Evicted(touched)


def _upwards(connection: Connection, row: _Row) -> Iterable[_Row]:
    """The entry and its stored ancestors."""
    seen = set[int]()
    found: _Row | None = row
    while found is not None and found.key not in seen:
        seen.add(found.key)
        yield found
        found = None if found.parent is None else _find(connection, found.parent)


def _find(connection: Connection, key: int) -> _Row | None:
    row = connection.execute(BY_KEY, (key,)).fetchone()
    return None if row is None else _Row._make(row)
