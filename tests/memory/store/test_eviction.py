"""Which chain is removed first, at what cost, and what stays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from sqlite3 import Connection
from typing import Any

import pytest

from tests.memory.store.contract import answer, conversation, items
from toolwire.memory.store import eviction, statements
from toolwire.memory.store.eviction import Evicted, Spared, evict, write_uses
from toolwire.memory.store.schema import connect


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    with closing(connect(tmp_path / "state.db", 1.0)) as connection:
        yield connection


def put(connection: Connection, ids: str, now: float, **members: Any) -> None:
    """One entry for each letter, each of them continuing the one before."""
    previous = ""
    for number, id in enumerate(ids):
        statements.put(connection, answer(id, previous=previous, **members), now + number)
        previous = id


def left(connection: Connection) -> str:
    return "".join(sorted(id for (id,) in connection.execute("SELECT id FROM entries")))


def evict_one(connection: Connection, pages: int = 1000, **members: Any) -> str:
    """Until something is removed; what is left."""
    before = left(connection)
    spared = Spared(connection, members.pop("names", ()), spares_running=members.pop("spares_running", True))
    while evict(connection, pages, spared, **members).pages and left(connection) == before:
        pass
    return left(connection)


def test_a_chain_is_as_recent_as_its_last_answer_and_goes_whole(connection: Connection) -> None:
    put(connection, "abc", 1.0)
    put(connection, "x", 2.5)
    statements.put(connection, answer("d", previous="c"), 5.0)
    assert evict_one(connection) == "abcd"
    assert evict_one(connection) == ""
    assert evict(connection, 1000, Spared(connection)) == Evicted()


def test_an_idle_branch_goes_and_the_chain_stays(connection: Connection) -> None:
    put(connection, "abc", 1.0)
    statements.put(connection, answer("x", previous="a"), 5.0)
    statements.put(connection, answer("y", previous="x"), 6.0)
    assert evict_one(connection) == "axy"
    assert evict_one(connection) == ""


def test_a_use_of_any_answer_counts_for_those_above(connection: Connection) -> None:
    put(connection, "abc", 1.0)
    put(connection, "x", 4.0)
    write_uses(connection, [(("ann", "b"), 5.0)])
    assert evict_one(connection) == "abx"
    assert evict_one(connection) == "ab"


def test_a_use_of_an_item_is_a_use_of_its_answer(connection: Connection) -> None:
    put(connection, "a", 1.0, output=items("i"))
    put(connection, "b", 2.0)
    write_uses(connection, [(("ann", "i"), 5.0), (("ann", "nothing"), 6.0), (("bob", "b"), 6.0)])
    assert evict_one(connection) == "a"


def test_an_old_use_does_not_hide_a_newer_one(connection: Connection) -> None:
    put(connection, "a", 3.0)
    put(connection, "b", 2.5)
    write_uses(connection, [(("ann", "a"), 2.0)])
    assert evict_one(connection) == "a"


def test_a_conversation_goes_with_its_answers(connection: Connection) -> None:
    statements.put(connection, conversation("c"), 1.0)
    statements.append(connection, "ann", "c", items("i"), 1.0)
    statements.put(connection, answer("a", conversation="c"), 2.0)
    put(connection, "x", 3.0)
    statements.put(connection, answer("b", previous="a"), 4.0)
    assert statements.chain(connection, "ann", "b") is not None
    assert evict_one(connection) == "abc"
    assert evict_one(connection) == ""
    assert statements.find_items(connection, "ann", ["i"]) == {}


def test_what_is_being_written_stays_with_all_above_it(connection: Connection) -> None:
    put(connection, "abc", 1.0)
    put(connection, "x", 9.0)
    assert evict_one(connection, names=[("ann", "c"), ("ann", "new")]) == "abc"
    assert evict_one(connection, names=[("ann", "c")]) == "abc"
    assert evict_one(connection, names=[("ann", "b")]) == "ab"


def test_running_answers_are_not_evicted_but_expire(connection: Connection) -> None:
    put(connection, "ab", 1.0)
    statements.put(connection, answer("r", previous="b", status="in_progress"), 3.0)
    statements.put(connection, answer("x", previous="a"), 3.5)
    assert evict_one(connection) == "abr"
    assert evict_one(connection) == "abr"
    assert evict_one(connection, before=3.0, spares_running=False) == "abr"
    assert evict_one(connection, before=3.1, spares_running=False) == ""


def test_a_long_chain_goes_in_steps_from_its_end(connection: Connection) -> None:
    put(connection, "abcdefghij", 1.0)
    spared = Spared(connection)
    chains = []
    while (evicted := evict(connection, 20, spared)).pages:
        assert evicted.pages < 40
        chains.append((left(connection), evicted.is_whole))
    sizes = [len(chain) for chain, _ in chains]
    assert sizes == sorted(sizes, reverse=True)
    assert all("abcdefghij".startswith(chain) for chain, _ in chains)
    assert chains[-1] == ("", True)
    assert [is_whole for chain, is_whole in chains if 0 < len(chain) < 10] == [False] * (len(set(sizes)) - 2)


def test_a_circle_is_evicted(connection: Connection) -> None:
    statements.put(connection, answer("a", previous="b"), 1.0)
    statements.put(connection, answer("b", previous="a"), 2.0)
    statements.put(connection, answer("s", previous="s"), 3.0)
    assert evict_one(connection) == "s"
    assert evict_one(connection) == ""


@pytest.mark.slow
def test_a_long_chain_in_use_is_corrected_once(connection: Connection) -> None:
    """Each eviction from a full store must not read or write the whole of every chain in use."""
    names = [f"r{number}" for number in range(2000)]
    for number, id in enumerate(names):
        statements.put(connection, answer(id, previous=names[number - 1] if number else ""), 1.0 + number)
    for number in range(50):
        statements.put(connection, answer(f"x{number}"), 1500.0 + number)
    before = connection.total_changes
    evictions = 0
    while "x" in left(connection):
        assert evict(connection, 256, Spared(connection)).pages
        evictions += 1
    assert statements.chain(connection, "ann", names[-1]) is not None
    assert connection.total_changes - before < 2500
    assert evictions < 150


def test_questions_use_an_index(connection: Connection) -> None:
    for question in (eviction.BY_USE, eviction.BY_KEY, eviction.BELOW):
        values = (1,) * question.count("?")
        plan = " ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {question}", values))
        assert "TEMP B-TREE" not in plan
        assert "SCAN entries" not in plan or "entries_by_use" in plan
        assert "AUTOMATIC" not in plan
