"""Calls that wait: ids that are legal and unique, and each answered once."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from tests.backends.cursor.wire.saying import results
from toolwire.backends.cursor.wire import agent
from toolwire.backends.cursor.wire.answer.open_calls import LONGEST_ID, Waiting, call_id_of
from toolwire.backends.cursor.wire.execs import Exec
from toolwire.types import ToolResult


def exec(number: int, call_id: str = "") -> Exec:
    return Exec(number, f"e{number}", "mcp", agent.McpArgs(tool_call_id=call_id))


def answer(result: ToolResult) -> list[bytes]:
    return [f"{result.call_id} {result.is_error}".encode()]


def waiting() -> Waiting:
    made = iter(f"made{number}" for number in range(100))
    return Waiting(lambda: next(made))


IDS = st.text("a|-2 \n", max_size=5) | st.sampled_from(["x" * 64, "x" * 65, "x" * 56 + "-2", "a-2", "a-2-2", "é"])


@given(st.lists(IDS, max_size=20))
def test_ids_are_legal_unique_and_kept_where_they_can_be(given_ids: list[str]) -> None:
    calls = waiting()
    ids = [calls.add(exec(number, call_id), answer) for number, call_id in enumerate(given_ids)]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", call_id) for call_id in ids)
    if given_ids and re.fullmatch(r"[A-Za-z0-9_-]+", given_ids[0]) and len(given_ids[0]) <= LONGEST_ID:
        assert ids[0] == given_ids[0]


def test_many_calls_of_one_id() -> None:
    calls = waiting()
    ids = [calls.add(exec(number, "x" * 64), answer) for number in range(300)]
    assert len(set(ids)) == 300
    assert max(map(len, ids)) == LONGEST_ID


def test_an_id_stays_taken_after_its_result() -> None:
    calls = waiting()
    assert calls.add(exec(1, "a"), answer) == "a"
    assert calls.take(results("a")) == [b"a False"]
    assert calls.take(results("a")) == []
    assert calls.add(exec(2, "a"), answer) == "a-2"


def test_the_first_line_is_the_models_id() -> None:
    assert call_id_of(exec(1, "call_x\nfc_y")) == "call_x"
    assert call_id_of(exec(1)) == ""
    assert call_id_of(Exec(1, "e", "", None)) == ""


def test_what_is_missing_is_answered_as_an_error_and_what_was_aborted_not_at_all() -> None:
    calls = waiting()
    for number in (1, 2, 3):
        calls.add(exec(number, f"c{number}"), answer)
    assert calls.abort(2) == []
    assert [one.id for one in calls.execs] == [1, 3]
    assert calls.take(results("c1", "c2")) == [b"c1 False", b"c3 True"]
    assert calls.execs == []


def test_known_ones_are_known_while_they_wait() -> None:
    calls = waiting()
    calls.add(exec(1), answer)
    calls.run([exec(2)])
    assert [calls.has(exec(number)) for number in (1, 2, 3)] == [True, True, False]
    calls.take({})
    calls.ran(exec(2))
    assert not calls.has(exec(1))
    assert not calls.has(exec(2))


def test_what_runs_here_can_be_stopped() -> None:
    calls = waiting()
    calls.run([exec(1), exec(2)])
    assert calls.abort(1) == [1]
    assert [one.id for one in calls.execs] == [2]
