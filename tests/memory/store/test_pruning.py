"""How a bound is parted, and who gives way when it is reached."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from sqlite3 import Connection
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.memory.store.contract import DAY, MB, answer, items
from toolwire.errors import GatewayError
from toolwire.memory.store import statements
from toolwire.memory.store.pruning import FileBounds, Pruner, bounds_of
from toolwire.memory.store.schema import PAGE, connect

Result = TypeVar("Result")


@given(st.integers(min_value=MB, max_value=1_000_000 * MB))
def test_the_parts_stay_within_the_whole(max_bytes: int) -> None:
    bounds = bounds_of(max_bytes)
    assert bounds.data * PAGE + bounds.journal <= max_bytes
    assert bounds.largest * PAGE < bounds.journal
    assert bounds.largest + bounds.spare < bounds.data
    assert bounds.step < bounds.largest
    assert bounds.checkpoint * PAGE < bounds.journal


def test_the_default_takes_the_largest_request() -> None:
    assert bounds_of(512 * MB).largest * PAGE > 64 * MB


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    with closing(connect(tmp_path / "state.db", 1.0)) as connection:
        yield connection


def pruner_of(connection: Connection, max_age: float = 30 * DAY) -> tuple[Pruner, FileBounds, list[int]]:
    """With the number of pages of each of its transactions."""
    transactions: list[int] = []

    def write(work: Callable[[Connection], Result], pages: int) -> Result:
        transactions.append(pages)
        with connection:
            return work(connection)

    bounds = bounds_of(MB)
    return Pruner(connection, bounds, max_age, write), bounds, transactions


def ids(connection: Connection) -> list[str]:
    return [id for (id,) in connection.execute("SELECT id FROM entries ORDER BY place")]


def test_most_writes_cost_no_look(connection: Connection) -> None:
    pruner, _, transactions = pruner_of(connection)
    assert not pruner.has_room(1)
    pruner.make_room(1)
    assert pruner.has_room(100)
    assert not pruner.has_room(100)
    assert transactions == []


def test_room_is_made_in_short_steps(connection: Connection) -> None:
    pruner, bounds, transactions = pruner_of(connection)
    for number in range(60):
        statements.put(connection, answer(f"a{number}", body=b"x" * 9000, output=items(f"i{number}")), 1.0)
    pruner.make_room(bounds.largest)
    assert ids(connection)[-1] == "a59"
    assert ids(connection)[0] != "a0"
    assert len(transactions) > 1
    assert set(transactions) == {bounds.step}


def test_without_anything_to_spare_there_is_no_room(connection: Connection) -> None:
    pruner, bounds, _ = pruner_of(connection)
    statements.put(connection, answer("a", body=b"x" * 600_000, status="queued"), 1.0)
    with pytest.raises(GatewayError) as caught:
        pruner.make_room(bounds.largest)
    assert caught.value.status == 503
    assert ids(connection) == ["a"]


def test_after_a_wrong_guess_more_room_is_left(connection: Connection) -> None:
    pruner, _, _ = pruner_of(connection)
    for number in range(70):
        statements.put(connection, answer(f"a{number}", body=b"x" * 9000), 1.0)
    pruner.distrust()
    assert pruner.has_room(20)
    assert 10 < len(ids(connection)) < 70


def test_a_full_disk_is_no_reason_to_prune(connection: Connection) -> None:
    pruner, _, transactions = pruner_of(connection)
    statements.put(connection, answer("a"), 1.0)
    pruner.make_room(1)
    pruner.distrust()
    assert ids(connection) == ["a"]
    assert transactions == []


def test_what_is_old_goes_step_by_step(connection: Connection) -> None:
    pruner, _, transactions = pruner_of(connection, max_age=10.0)
    for number in range(20):
        statements.put(connection, answer(f"a{number}"), float(number))
    pruner.drop_old(25.0)
    assert len(transactions) == 1
    assert pruner.is_due(25.0)
    while pruner.is_due(25.0):
        pruner.drop_old(25.0)
    assert ids(connection) == [f"a{number}" for number in range(15, 20)]
    pruner.drop_old(84.0)
    assert len(ids(connection)) == 5
    assert pruner.is_due(85.0)


def test_a_file_within_its_bound_is_not_rewritten(connection: Connection) -> None:
    pruner, _, transactions = pruner_of(connection)
    statements.put(connection, answer("a"), 1.0)
    pruner.shrink()
    assert transactions == []
