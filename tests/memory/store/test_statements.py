"""What the contract cannot see: keys, places, and what is left behind in the tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from sqlite3 import Connection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.memory.store.contract import answer, conversation, items
from toolwire.errors import GatewayError
from toolwire.memory.store import statements
from toolwire.memory.store.schema import connect


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    with closing(connect(tmp_path / "state.db", 1.0)) as connection:
        yield connection


def rows(connection: Connection, table: str) -> int:
    count: int = connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    return count


TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(TEXT, TEXT, TEXT, TEXT)
def test_different_owners_or_ids_have_different_keys(owner: str, id: str, other_owner: str, other_id: str) -> None:
    is_same = (owner, id) == (other_owner, other_id)
    assert (statements.key_of(owner, id) == statements.key_of(other_owner, other_id)) == is_same


@given(st.integers(0, 10), st.integers(0, 10))
def test_where_an_owner_ends_matters(one: int, other: int) -> None:
    text = "1 a2 b3 c4 "
    assert (statements.key_of(text[:one], text[one:]) == statements.key_of(text[:other], text[other:])) == (
        one == other
    )


def test_a_write_notes_when_it_was(connection: Connection) -> None:
    for id in "abc":
        statements.put(connection, conversation(id), 1.0)
    statements.put(connection, conversation("a"), 2.0)
    statements.append(connection, "ann", "b", items("i"), 3.0)
    found = connection.execute("SELECT id, written FROM entries ORDER BY written").fetchall()
    assert found == [("c", 1.0), ("a", 2.0), ("b", 3.0)]


def test_nothing_is_left_of_what_is_removed(connection: Connection) -> None:
    statements.put(connection, answer("a", output=items("i", "j")), 1.0)
    statements.put(connection, answer("a", output=items("i", "k")), 1.0)
    statements.put(connection, conversation("c"), 1.0)
    statements.append(connection, "ann", "c", items("i", "l"), 1.0)
    assert rows(connection, "output_ids") == 2
    assert statements.count_items(connection, "ann", "c") == 2
    assert statements.delete(connection, "ann", "a")
    assert rows(connection, "output_ids") == 0
    assert statements.delete(connection, "ann", "c")
    assert [rows(connection, table) for table in ("entries", "output_ids", "items")] == [0, 0, 0]


def test_an_item_of_two_answers_survives_the_older_one(connection: Connection) -> None:
    statements.put(connection, answer("old", output=items("i")), 1.0)
    statements.put(connection, answer("new", output=items("i")), 1.0)
    statements.delete(connection, "ann", "old")
    assert statements.find_items(connection, "ann", ["i"]) != {}


def test_two_ids_with_one_key_are_not_mistaken(connection: Connection) -> None:
    """Nobody can make such ids, so the key in the table is changed instead."""
    statements.put(connection, answer("a", output=items("i")), 1.0)
    statements.put(connection, answer("after", previous="b"), 1.0)
    for table, column, old, new in (("entries", "key", "a", "b"), ("output_ids", "item_key", "i", "j")):
        keys = (statements.key_of("ann", new), statements.key_of("ann", old))
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE {column} = ?", keys)
    assert statements.get(connection, "ann", "b") is None
    assert statements.chain(connection, "ann", "after") is None
    assert statements.find_items(connection, "ann", ["j"]) == {}
    assert not statements.delete(connection, "ann", "b")
    assert statements.touch(connection, "ann", "b", 1.0) is None
    with pytest.raises(GatewayError):
        statements.put(connection, answer("b"), 1.0)


def test_questions_use_an_index(connection: Connection) -> None:
    for question in (statements._GET, statements._CHAIN, statements._PLACE):
        values = ("x",) * question.count("?")
        plan = " ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {question}", values))
        assert "TEMP B-TREE" not in plan
        assert "SCAN entries" not in plan
        assert "AUTOMATIC" not in plan
