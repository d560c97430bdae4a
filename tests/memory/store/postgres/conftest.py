"""One PostgreSQL server for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.postgres_server import PostgresServer


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    started = PostgresServer()
    started.start()
    yield started
    started.close()
