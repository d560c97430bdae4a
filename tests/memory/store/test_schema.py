"""The store's file: private, and told from files that are not ours."""

from __future__ import annotations

import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from tests.memory.store.contract import answer
from toolwire.errors import ConfigError
from toolwire.memory.store import statements
from toolwire.memory.store.errors import DAMAGED, UNWRITABLE
from toolwire.memory.store.eviction import Spared, evict
from toolwire.memory.store.schema import APPLICATION, VERSION, connect, pragma


def refused(path: Path) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        connect(path, 0.05)
    assert caught.value.where == str(path)
    assert caught.value.hint
    return caught.value


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_file_and_its_folder_are_private(tmp_path: Path) -> None:
    path = tmp_path / "made" / "state.db"
    with closing(connect(path, 1.0)) as connection:
        connection.execute("INSERT INTO output_ids VALUES (1, 1)")
        assert [mode(path.parent), mode(path), mode(Path(f"{path}-wal"))] == [0o700, 0o600, 0o600]


def test_an_empty_file_becomes_private(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    path.touch(0o644)
    connect(path, 1.0).close()
    assert mode(path) == 0o600


def test_opening_twice_changes_nothing(tmp_path: Path) -> None:
    with closing(connect(tmp_path / "a.db", 1.0)) as first, closing(connect(tmp_path / "a.db", 1.0)) as second:
        first.execute("INSERT INTO output_ids VALUES (7, 1)")
        assert second.execute("SELECT item_key FROM output_ids").fetchall() == [(7,)]
        assert pragma(second, "user_version") == VERSION
        assert pragma(second, "application_id") == APPLICATION
        assert second.execute("PRAGMA journal_mode").fetchone() == ("wal",)


@pytest.mark.parametrize("content", [b"not a database at all" * 100, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_file_of_something_else_is_named_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "state.db"
    path.write_bytes(content)
    error = refused(path)
    assert error.code == DAMAGED
    assert "Move it away" in error.hint
    assert path.read_bytes() == content


def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE entries (x)")
    before = path.read_bytes()
    assert "another program" in refused(path).message
    assert path.read_bytes() == before


VERSION_1 = """
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


def test_a_store_of_the_first_version_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with closing(sqlite3.connect(path)) as old:
        old.executescript(VERSION_1)
        old.execute(f"PRAGMA application_id = {APPLICATION}")
        old.execute("PRAGMA user_version = 1")
        for number in range(3):
            statements.put(old, answer(f"r{number}", previous=f"r{number - 1}" if number else ""), 1.0 + number)
        statements.put(old, answer("x"), 2.5)
        old.commit()
    with closing(connect(path, 1.0)) as connection:
        assert pragma(connection, "user_version") == VERSION
        chain = statements.chain(connection, "ann", "r2")
        assert [entry.id for entry in chain or []] == ["r0", "r1", "r2"]
        spared = Spared(connection)
        while statements.kind_of(connection, "ann", "x"):
            assert evict(connection, 100, spared).pages
        assert statements.chain(connection, "ann", "r2") == chain
    connect(path, 1.0).close()


def test_a_newer_store_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with closing(connect(path, 1.0)) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    error = refused(path)
    assert f"version {VERSION + 1}" in error.message
    assert "Upgrade toolwire" in error.hint


def test_a_damaged_store_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    connect(path, 1.0).close()
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xaa" * (len(content) - 4096))
    assert refused(path).code == DAMAGED


def test_a_file_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert refused(tmp_path / "file" / "state.db").code == UNWRITABLE
    assert refused(tmp_path).code == UNWRITABLE


def test_a_locked_file_is_waited_for_and_named(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    connect(path, 1.0).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert "locked" in refused(path).message
