"""A short run of bench/chaos: processes are killed under load, and nothing that was acknowledged is lost."""

from __future__ import annotations

import asyncio

import pytest
from bench.chaos.__main__ import run

from tests.postgres_server import programs

pytestmark = pytest.mark.slow


def test_nothing_acknowledged_is_lost(capsys: pytest.CaptureFixture[str]) -> None:
    programs()  # skips the test without PostgreSQL
    assert asyncio.run(run(15, seed=5, clients=4, count=2)) == 0, capsys.readouterr().out
