"""The store's file: private, and told from files that are not ours."""

from __future__ import annotations

import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from toolwire.errors import ConfigError
from toolwire.store.failures import DAMAGED, UNWRITABLE
from toolwire.store.schema import APPLICATION, VERSION, connect, pragma


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
