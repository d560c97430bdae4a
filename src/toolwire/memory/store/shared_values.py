"""The gateway's own counters and records in SQLite; the caller holds the transaction.

Expired ones do not exist for readers. Each change removes a few of them, so the tables do not grow. The tables are created with the first
change and belong to no version of the file, so toolwire 0.1 can still use it.
"""

from __future__ import annotations

from collections.abc import Sequence
from sqlite3 import Connection

from ...errors import GatewayError
from .base import CounterChange, SharedRecord

_TABLES = (
    "CREATE TABLE IF NOT EXISTS counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL, expires REAL NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS records (space TEXT NOT NULL, name TEXT NOT NULL, value BLOB NOT NULL, expires REAL NOT NULL, "
    "PRIMARY KEY (space, name)) WITHOUT ROWID",
)
_ALIVE = "(expires = 0 OR expires > ?)"
_REMOVED = 8  # expired rows of each table that one change removes at most


class Prevented(GatewayError):
    """Rolls the transaction back. code: the name that prevented the change."""


def apply(
    connection: Connection,
    changes: Sequence[CounterChange],
    put: Sequence[SharedRecord],
    drop: Sequence[tuple[str, str]],
    now: float,
) -> None:
    """Raises Prevented if a counter would exceed its limit, or a record to drop does not exist."""
    for table in _TABLES:
        connection.execute(table)
    for space, name in drop:
        statement = f"DELETE FROM records WHERE space = ? AND name = ? AND {_ALIVE}"
        if not connection.execute(statement, (space, name, now)).rowcount:
            raise Prevented("the record does not exist.", code=name)
    connection.executemany(
        "INSERT OR REPLACE INTO records (space, name, value, expires) VALUES (?, ?, ?, ?)",
        [(record.space, record.name, record.value, record.expires) for record in put],
    )
    for change in changes:
        row = connection.execute(
            f"SELECT value, expires FROM counters WHERE name = ? AND {_ALIVE}", (change.counter, now)
        ).fetchone()
        value, expires = row or (0, change.expires)
        if change.limit is not None and change.amount > 0 and value + change.amount > change.limit:
            raise Prevented("the limit is reached.", code=change.counter)
        connection.execute(
            "INSERT OR REPLACE INTO counters VALUES (?, ?, ?)", (change.counter, value + change.amount, expires)
        )
    _remove_expired(connection, now)


def counters(connection: Connection, names: Sequence[str], now: float) -> dict[str, int]:
    if not _has_tables(connection):
        return {}
    statement = f"SELECT value FROM counters WHERE name = ? AND {_ALIVE}"
    rows = [(name, connection.execute(statement, (name, now)).fetchone()) for name in names]
    return {name: row[0] for name, row in rows if row is not None}


def records(connection: Connection, space: str, name: str | None, now: float) -> list[SharedRecord]:
    if not _has_tables(connection):
        return []
    condition, values = ("", ()) if name is None else ("name = ? AND ", (name,))
    statement = f"SELECT name, value, expires FROM records WHERE space = ? AND {condition}{_ALIVE} ORDER BY name"
    return [SharedRecord(space, *row) for row in connection.execute(statement, (space, *values, now))]


def _has_tables(connection: Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'records'").fetchone() is not None


def _remove_expired(connection: Connection, now: float) -> None:
    connection.execute(
        "DELETE FROM counters WHERE name IN (SELECT name FROM counters WHERE expires > 0 AND expires <= ? LIMIT ?)",
        (now, _REMOVED),
    )
    connection.execute(
        "DELETE FROM records WHERE (space, name) IN "
        "(SELECT space, name FROM records WHERE expires > 0 AND expires <= ? LIMIT ?)",
        (now, _REMOVED),
    )
