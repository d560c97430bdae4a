"""Tasks on one connection: together where they can be, alone where one of them fails, never past the bounds."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.memory.store.contract import DAY, MB, answer, conversation, items
from toolwire.errors import GatewayError
from toolwire.memory.store import statements
from toolwire.memory.store.pruning import bounds_of
from toolwire.memory.store.schema import FRAME
from toolwire.memory.store.session import Outcome, StoreSession, Task

Connection = sqlite3.Connection


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


@pytest.fixture
def session(path: Path) -> Iterator[StoreSession]:
    with closing(StoreSession(path, bounds_of(MB), 30 * DAY, 0.05)) as session:
        yield session


def put(id: str, size: int = 10) -> Task:
    entry = answer(id, body=b"x" * size)
    return Task(lambda connection: statements.put(connection, entry, 1.0), statements.pages_of([size], 0))


def get(id: str) -> Task:
    return Task(lambda connection: statements.get(connection, "ann", id))


def failing(error: Exception) -> Task:
    def work(connection: Connection) -> None:
        statements.put(connection, answer("half done"), 1.0)
        raise error

    return Task(work, 6)


def is_there(session: StoreSession, id: str) -> bool:
    [outcome] = session.perform([get(id)])
    return outcome.result is not None


def test_writes_that_wait_together_are_one_transaction(session: StoreSession, path: Path) -> None:
    seen: list[int] = []

    def look(connection: Connection) -> None:
        seen.append(connection.total_changes)
        assert connection.in_transaction

    with closing(sqlite3.connect(path)) as other:
        before = other.execute("PRAGMA data_version").fetchone()
        outcomes = session.perform([put("a"), Task(look, 1), put("b")])
        assert outcomes == [Outcome()] * 3
        assert other.execute("SELECT count(*) FROM entries").fetchone() == (2,)
        assert other.execute("PRAGMA data_version").fetchone() != before
    assert len(seen) == 1


def test_outcomes_are_in_the_order_of_the_tasks(session: StoreSession) -> None:
    session.perform([put("a")])
    outcomes = session.perform([put("b"), get("a"), put("c"), get("nothing")])
    assert [bool(outcome.result) for outcome in outcomes] == [False, True, False, False]


def test_a_task_that_fails_does_not_harm_its_neighbours(session: StoreSession) -> None:
    outcomes = session.perform([put("a"), failing(ValueError("x")), put("b")])
    assert [outcome.error is None for outcome in outcomes] == [True, False, True]
    assert [is_there(session, id) for id in ("a", "half done", "b")] == [True, False, True]


def test_while_another_program_has_the_lock_all_wait_once(session: StoreSession, path: Path) -> None:
    session.perform([put("a")])
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        begun = time.monotonic()
        *written, read = session.perform([*(put(f"b{number}") for number in range(20)), get("a")])
        assert time.monotonic() - begun < 0.3  # not twenty times the patience
    assert read.result is not None
    assert {outcome.error and outcome.error.code for outcome in written} == {"store_unavailable"}
    assert session.perform([put("c")]) == [Outcome()]


def test_a_file_that_was_removed_is_no_place_to_write(session: StoreSession, path: Path) -> None:
    assert session.perform([put("a")]) == [Outcome()]
    assert not session.is_lost
    for file in path.parent.iterdir():
        file.unlink()
    assert session.is_lost
    assert session.at_once(put("b")) is None
    assert session.perform([put("b")])[0].error is not None


def test_a_read_that_fails_is_its_own_affair(session: StoreSession) -> None:
    def fail(connection: Connection) -> None:
        raise sqlite3.DatabaseError("damaged")

    bad, good = session.perform([Task(fail), get("a")])
    assert isinstance(bad.error, GatewayError)
    assert good == Outcome()


def test_at_once_performs_only_what_need_not_wait(session: StoreSession, path: Path) -> None:
    session.perform([put("a")])  # looks at the file, so that there is room to give
    assert session.at_once(put("b")) == Outcome()
    assert session.at_once(failing(ValueError("x"))) is None
    assert session.at_once(put("c", 10 * MB)) is None
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert session.at_once(put("c")) is None
        [outcome] = session.perform([put("c")])
        assert outcome.error is not None
        assert "locked" in outcome.error.message
        read = session.at_once(get("b"))
        assert read is not None
        assert read.result is not None
    assert [is_there(session, id) for id in ("b", "half done", "c")] == [True, False, False]
    assert session.at_once(put("c")) == Outcome()


def test_the_journal_is_emptied_before_it_is_too_long(session: StoreSession, path: Path) -> None:
    longest = 0
    for number in range(100):
        session.perform([put(f"a{number}", 30_000)])
        longest = max(longest, Path(f"{path}-wal").stat().st_size)
    assert 20 * FRAME < longest <= bounds_of(MB).journal


def test_a_reader_that_stays_keeps_the_journal_from_being_emptied(session: StoreSession, path: Path) -> None:
    session.perform([put("a")])
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN")
        other.execute("SELECT * FROM entries").fetchall()
        outcomes = [session.perform([put(f"b{number}", 30_000)])[0] for number in range(10)]
        assert Path(f"{path}-wal").stat().st_size <= bounds_of(MB).journal
        refusal = outcomes[-1].error
        assert refusal is not None
        assert refusal.status == 503
        other.execute("COMMIT")
    assert session.perform([put("c")]) == [Outcome()]


def test_tidying_copies_the_journal_and_drops_the_old(session: StoreSession) -> None:
    session.perform([put("a")])
    assert session.needs_tidying(0.0)
    session.tidy(0.0)
    assert not session.needs_tidying(1.0)
    session.perform([put(f"b{number}", 30_000) for number in range(6)])
    assert session.needs_tidying(1.0)
    session.tidy(1.0)
    assert not session.needs_tidying(1.0)
    assert session.needs_tidying(31 * DAY)
    session.tidy(31 * DAY)
    assert not is_there(session, "a")


def test_a_file_that_others_filled_is_pruned_when_it_is_felt(path: Path) -> None:
    """Each session guesses the room it has; with two of them both guesses are wrong."""
    bounds = bounds_of(MB)
    with closing(StoreSession(path, bounds, DAY, 1.0)) as one, closing(StoreSession(path, bounds, DAY, 1.0)) as two:
        for number in range(60):
            for name, session in (("one", one), ("two", two)):
                assert session.perform([put(f"{name}{number}", 20_000)]) == [Outcome()]
        assert is_there(one, "two59")
        assert is_there(two, "one59")
        assert path.stat().st_size <= bounds.data * 4096


def test_more_than_one_transaction_can_hold_becomes_several(session: StoreSession) -> None:
    outcomes = session.perform([put(f"a{number}", 60_000) for number in range(6)])
    assert outcomes == [Outcome()] * 6
    assert all(is_there(session, f"a{number}") for number in range(6))


def test_a_conversation_that_fills_the_store_can_be_deleted_within_the_bound(session: StoreSession, path: Path) -> None:
    def size() -> int:
        return path.stat().st_size + Path(f"{path}-wal").stat().st_size

    session.perform([Task(lambda connection: statements.put(connection, conversation("c"), 1.0), 6)])
    for number in range(150):
        some = items(*(f"{number}.{each}.{'x' * 100}" for each in range(8)))
        session.perform([Task(lambda connection, some=some: statements.append(connection, "ann", "c", some, 1.0), 30)])
        assert size() <= MB
    delete = Task(lambda connection: statements.delete(connection, "ann", "c"), bounds_of(MB).largest, is_deletion=True)
    assert session.perform([delete]) == [Outcome(True)]
    assert size() <= MB
