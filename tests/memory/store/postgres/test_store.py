"""The store in PostgreSQL fulfils the contract."""

from __future__ import annotations

import pytest

from tests.memory.store.contract import DAY, MB, StoreContract
from tests.postgres_server import PostgresServer
from toolwire.memory.store import Store
from toolwire.memory.store.postgres.store import PostgresStore

pytestmark = pytest.mark.slow


class TestPostgresStore(StoreContract):
    url: str

    @pytest.fixture(autouse=True)
    def _space(self, server: PostgresServer) -> None:
        self.url = server.new_space()

    def open(self, max_bytes: int = 64 * MB, max_age: float = 30 * DAY) -> Store:
        return PostgresStore(self.url, max_bytes=max_bytes, max_age=max_age, clock=self.clock, connections=4)
