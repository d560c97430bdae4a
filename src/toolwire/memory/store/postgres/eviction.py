"""LRU eviction of whole chains in PostgreSQL, by the rules of `memory/store/eviction.py`.

Gateways that evict at the same time choose the same chains, so that together they do not remove more than one would.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from ..base import RUNNING
from .pool import ConnectionPool

ITEM_BYTES = 200  # that an item takes beside its value
_ROWS = 64  # that one query looks at
_STEPS = 10_000  # chains that one call handles at most

_COLUMNS = "key, parent_key, used, status, size"
_OLDEST = (
    f"SELECT {_COLUMNS} FROM toolwire_entries WHERE used < $1 AND key <> ALL ($2) ORDER BY used, key LIMIT {_ROWS}"
)
# UNION drops duplicates, so a cycle ends. Without an order of rows: the caller follows the keys.
_ABOVE = f"""
WITH RECURSIVE above AS (
    SELECT {_COLUMNS} FROM toolwire_entries WHERE key = ANY ($1)
    UNION
    SELECT {", ".join(f"e.{name}" for name in _COLUMNS.split(", "))} FROM above JOIN toolwire_entries e ON e.key = above.parent_key
)
SELECT {_COLUMNS} FROM above"""
_BELOW = f"""
WITH RECURSIVE below AS (
    SELECT {_COLUMNS} FROM toolwire_entries WHERE key = $1
    UNION
    SELECT {", ".join(f"e.{name}" for name in _COLUMNS.split(", "))} FROM below JOIN toolwire_entries e ON e.parent_key = below.key
)
SELECT key, parent_key, used, status, size + coalesce(
    (SELECT sum(octet_length(value) + {ITEM_BYTES}) FROM toolwire_items WHERE conversation_key = key), 0) FROM below"""
_CORRECT = """
WITH newer AS (SELECT * FROM unnest($1::bigint[], $2::float8[]) AS n (key, used)),
locked AS (SELECT key FROM toolwire_entries WHERE key = ANY ($1) ORDER BY key FOR UPDATE SKIP LOCKED)
UPDATE toolwire_entries e SET used = newer.used FROM newer, locked
WHERE e.key = newer.key AND e.key = locked.key AND e.used < newer.used"""
REMOVE = """
WITH gone AS (DELETE FROM toolwire_entries WHERE key = ANY ($1) RETURNING key, item_keys),
ids AS (DELETE FROM toolwire_output_ids o USING gone WHERE o.item_key = ANY (gone.item_keys) AND o.entry_key = gone.key)
SELECT count(*) FROM gone"""


class _Row(NamedTuple):
    key: int
    parent: int | None
    used: float
    status: str
    size: int


class Evictor:
    """spared: keys of entries that must stay, with their parents. spares_running: so must running answers."""

    def __init__(self, pool: ConnectionPool, spared: Iterable[int] = (), *, spares_running: bool = True) -> None:
        self._pool = pool
        self._names = list(spared)
        self._spared: set[int] = set()
        self._spares_running = spares_running

    async def evict(self, wanted: float, before: float = float("inf")) -> int:
        """Removes the least recently used chains, last used before this time, until they have so many bytes. Returns how many they had."""
        await self._spare(self._names)
        removed, first = 0, None
        for _ in range(_STEPS):
            rows = [_row(row) for row in await self._pool.read(_OLDEST, before, list(self._spared))]
            if not rows or rows[0] == first:  # the same again: another gateway holds it
                break
            first = rows[0]
            handled: set[int] = set()
            for row in rows:
                if removed >= wanted:
                    return removed
                if row.key not in handled and row.key not in self._spared:
                    removed += await self._handle(row, handled)
        return removed

    async def _handle(self, row: _Row, handled: set[int]) -> int:
        """Removes the chain of this row, or corrects its uses, or spares it. handled: collects the keys whose rows have changed."""
        above = {one.key: one for one in await self._rows(_ABOVE, [row.key])}
        if row.key not in above:
            handled.add(row.key)
            return 0
        top = one = above[row.key]
        while one.parent in above and above[one.parent].key not in handled | self._spared | {row.key}:
            one = above[one.parent]
            if one.used > row.used:
                break
            handled.add(one.key)  # also ends a cycle
            top = one
        rows = await self._rows(_BELOW, top.key)
        handled.update(found.key for found in rows)
        running = [found.key for found in rows if found.status in RUNNING] if self._spares_running else []
        if running:
            await self._spare(running)
            return 0
        if newer := _newer_uses(rows):
            ordered = sorted(newer.items())
            await self._pool.write(_CORRECT, [key for key, _ in ordered], [used for _, used in ordered])
            return 0
        await self._pool.write(REMOVE, sorted(found.key for found in rows))
        return sum(found.size for found in rows)

    async def _spare(self, keys: list[int]) -> None:
        if keys:
            self._spared.update(row.key for row in await self._rows(_ABOVE, keys))

    async def _rows(self, statement: str, value: Any) -> list[_Row]:
        return [_row(row) for row in await self._pool.read(statement, value)]


def _newer_uses(rows: list[_Row]) -> dict[int, float]:
    """The rows that are older than the most recent one below them, with its time."""
    by_key = {row.key: row for row in rows}
    newest = {row.key: row.used for row in rows}
    for row in sorted(rows, key=lambda one: -one.used):
        key = row.parent
        while key in by_key and newest[key] < row.used:
            newest[key] = row.used
            key = by_key[key].parent
    return {key: used for key, used in newest.items() if used > by_key[key].used}


def _row(row: Any) -> _Row:
    return _Row(row[0], row[1], row[2], row[3], int(row[4]))
