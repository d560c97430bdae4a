"""The store at start: an outage is a warning, a store that cannot be used an error."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from toolwire.config.file import StoreConfig
from toolwire.errors import ConfigError
from toolwire.memory.store import MemoryStore
from toolwire.server.store_startup import opened_store, report_outage


class Absent(MemoryStore):
    async def open(self) -> str:
        return "PostgreSQL does not reply."


def test_an_outage_is_reported_in_the_log() -> None:
    lines: list[tuple[str, ...]] = []

    async def main() -> None:
        for store in (MemoryStore(max_bytes=1 << 20, max_age=1.0), Absent(max_bytes=1 << 20, max_age=1.0)):
            await report_outage(store, lambda *line: lines.append(line))

    asyncio.run(main())
    assert [(level, "PostgreSQL does not reply." in text) for level, text in lines] == [("warning", True)]


def test_a_store_that_cannot_be_used_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "state.db").write_bytes(b"no database" * 500)
    with pytest.raises(ConfigError):
        opened_store(StoreConfig(path=str(tmp_path / "state.db")), lambda *line: None)
