"""The file of the store: created private, checked for foreign and newer databases, opened for one thread.

`written` is the time of the last use of an entry (see `eviction`). `previous_key` is the key of its parent: the answer that it continues, or its
conversation. Version 1 had no indexes on them and no conversation in `previous_key`. A key is a hash of owner and id (`statements.key_of`)
with a sixth of their size: indexes stay small, and so do the pages that a write touches. A reader that follows a key compares owner and id.
Small columns come before the blobs, so that reading them does not read the overflow pages of a large row.
"""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path

from ...errors import ConfigError
from . import errors as failures

VERSION = 2
APPLICATION = 0x746F6F6C  # "tool", in the file's header
PAGE = 4096
FRAME = PAGE + 24  # a page in the journal

_TABLES = """
CREATE TABLE entries (
    place INTEGER PRIMARY KEY, key INTEGER NOT NULL UNIQUE, previous_key INTEGER, written REAL NOT NULL,
    owner TEXT NOT NULL, id TEXT NOT NULL, kind TEXT NOT NULL, status TEXT NOT NULL, created REAL NOT NULL, alive REAL NOT NULL,
    previous TEXT NOT NULL, conversation TEXT NOT NULL, keeper TEXT NOT NULL,
    head BLOB NOT NULL, input BLOB NOT NULL, output BLOB NOT NULL, body BLOB NOT NULL
);
CREATE TABLE output_ids (item_key INTEGER PRIMARY KEY, place INTEGER NOT NULL);
CREATE TABLE items (
    sequence INTEGER PRIMARY KEY, owner TEXT NOT NULL, conversation TEXT NOT NULL, id TEXT NOT NULL, value BLOB NOT NULL,
    UNIQUE (owner, id, conversation)
);
CREATE INDEX items_of_conversation ON items (owner, conversation);
"""
_INDEXES = """
CREATE INDEX entries_by_use ON entries (written);
CREATE INDEX entries_below ON entries (previous_key) WHERE previous_key IS NOT NULL;
"""


def connect_memory() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    _set_up_tables(connection)
    return connection


def connect(path: Path, patience: float) -> sqlite3.Connection:
    """Opens the file, created if missing. patience: seconds to wait for a lock. Raises ConfigError if it cannot be used."""
    try:
        _make_private(path)
        connection = sqlite3.connect(path, timeout=patience, isolation_level=None, check_same_thread=False)
    except (OSError, sqlite3.Error) as error:
        raise failures.at_start(path, error) from None
    try:
        _set_up(connection, path, patience)
    except sqlite3.Error as error:
        connection.close()
        raise failures.at_start(path, error) from None
    except ConfigError:
        connection.close()
        raise
    return connection


def pragma(connection: sqlite3.Connection, name: str) -> int:
    """Reads a number, or sets it if name is an assignment."""
    [value] = connection.execute(f"PRAGMA {name}").fetchone()
    return int(value)


def _make_private(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # SQLite creates the journal with the mode of the file.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    if path.stat().st_size == 0:
        path.chmod(0o600)


def _set_up(connection: sqlite3.Connection, path: Path, patience: float) -> None:
    _refuse_foreign(connection, path)
    connection.execute(f"PRAGMA page_size = {PAGE}")  # has no effect on a file that has tables
    _use_wal(connection, path, patience)
    _set_up_tables(connection)


def _set_up_tables(connection: sqlite3.Connection) -> None:
    for setting in ("synchronous = NORMAL", "secure_delete = OFF", "temp_store = MEMORY", "cache_size = -8192"):
        connection.execute(f"PRAGMA {setting}")
    connection.execute("BEGIN IMMEDIATE")  # also checks that the file is writable
    version = pragma(connection, "user_version")
    steps = (_TABLES + _INDEXES, _INDEXES, "")[version]
    for statement in steps.split(";"):
        connection.execute(statement)
    if version == 0:
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
    if version < VERSION:
        connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")
    for table in ("entries", "output_ids", "items"):
        connection.execute(f"SELECT * FROM {table} LIMIT 1").fetchall()


def _refuse_foreign(connection: sqlite3.Connection, path: Path) -> None:
    version = pragma(connection, "user_version")
    is_empty = pragma(connection, "schema_version") == 0
    if not is_empty and pragma(connection, "application_id") != APPLICATION:
        raise failures.foreign(path)
    if version > VERSION:
        raise failures.newer(path, version, VERSION)


def _use_wal(connection: sqlite3.Connection, path: Path, patience: float) -> None:
    """SQLite does not wait for a lock here, so two processes that start at the same time would fail."""
    end = time.monotonic() + patience
    while True:
        try:
            [mode] = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError:
            if time.monotonic() >= end:
                raise
            time.sleep(0.01)
            continue
        if mode != "wal":
            raise failures.no_journal(path)
        return
