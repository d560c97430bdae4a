"""The store that settings ask for, and what happens where it cannot be had."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.memory.store.contract import MB, answer
from toolwire.config.file import StoreConfig
from toolwire.errors import ConfigError
from toolwire.memory.store import MemoryStore, OpenedStore, SqliteStore, open_store
from toolwire.memory.store.factory import opened_store, report_outage


def opened(default_path: Path, **settings: Any) -> OpenedStore:
    return open_store(
        **{
            "kind": "sqlite",
            "path": "",
            "default_path": default_path,
            "max_age_days": 30,
            "max_mb": 8,
            **settings,
        }
    )


def test_the_default_file_is_made(tmp_path: Path) -> None:
    found = opened(tmp_path / "data" / "state.db")
    assert isinstance(found.store, SqliteStore)
    assert found.warning == ""
    assert (tmp_path / "data" / "state.db").is_file()


def test_a_path_goes_before_the_default(tmp_path: Path) -> None:
    opened(tmp_path / "default.db", path=str(tmp_path / "mine.db"))
    assert [path.name for path in tmp_path.iterdir()] == ["mine.db"]


def test_memory_touches_no_file(tmp_path: Path) -> None:
    assert isinstance(opened(tmp_path / "default.db", kind="memory").store, MemoryStore)
    assert list(tmp_path.iterdir()) == []


def test_where_the_default_cannot_be_written_memory_will_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    found = opened(tmp_path / "file" / "state.db")
    assert isinstance(found.store, MemoryStore)
    assert found.warning.startswith(f"{tmp_path / 'file' / 'state.db'}: ")
    assert found.warning.endswith("and lost when the gateway stops.")


def test_a_configured_path_has_no_fallback(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError) as caught:
        opened(tmp_path / "state.db", path=str(tmp_path / "file" / "state.db"))
    assert caught.value.where == str(tmp_path / "file" / "state.db")


def test_a_damaged_default_is_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "state.db").write_bytes(b"precious" * 1000)
    with pytest.raises(ConfigError):
        opened(tmp_path / "state.db")
    assert (tmp_path / "state.db").read_bytes() == b"precious" * 1000


class Absent(MemoryStore):
    async def open(self) -> str:
        return "PostgreSQL does not reply."


def test_an_outage_at_start_is_reported_in_the_log() -> None:
    lines: list[tuple[str, ...]] = []

    async def main() -> None:
        for store in (MemoryStore(max_bytes=MB, max_age=1.0), Absent(max_bytes=MB, max_age=1.0)):
            await report_outage(store, lambda *line: lines.append(line))

    asyncio.run(main())
    assert [(level, "PostgreSQL does not reply." in text) for level, text in lines] == [("warning", True)]


def test_a_server_does_not_start_with_a_store_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "state.db").write_bytes(b"no database" * 500)
    with pytest.raises(ConfigError):
        opened_store(StoreConfig(path=str(tmp_path / "state.db")), lambda *line: None)


def test_a_smaller_bound_makes_a_smaller_file(tmp_path: Path) -> None:
    path = tmp_path / "state.db"

    async def fill() -> None:
        store = opened(path, max_mb=8).store
        for number in range(400):
            await store.put(answer(f"a{number}", body=b"x" * 10_000))
        await store.close()

    async def look() -> tuple[bool, bool]:
        store = opened(path, max_mb=2).store
        found = [await store.get("ann", id) is not None for id in ("a0", "a399")]
        await store.close()
        return found[0], found[1]

    asyncio.run(fill())
    assert path.stat().st_size > 3 * MB
    assert asyncio.run(look()) == (False, True)
    assert path.stat().st_size < 2 * MB
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
