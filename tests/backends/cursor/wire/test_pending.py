"""Calls that wait: ids that are legal and unique, and each answered once."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.backends.cursor.wire.server_messages import call, exec, results
from toolwire.backends.cursor.wire import agent, pending
from toolwire.backends.cursor.wire.execs import Exec, exec_of
from toolwire.backends.cursor.wire.pending import (
    MAX_ID_LENGTH,
    Announcements,
    DeferredOutput,
    ModelOutput,
    WaitingCalls,
    call_id_of,
)
from toolwire.types import ToolResult


def call_exec(number: int, call_id: str = "") -> Exec:
    return Exec(number, f"e{number}", "mcp", agent.McpArgs(tool_call_id=call_id))


def answer(result: ToolResult) -> list[bytes]:
    return [f"{result.call_id} {result.is_error}".encode()]


def waiting() -> WaitingCalls:
    made = iter(f"made{number}" for number in range(100))
    return WaitingCalls(lambda: next(made))


IDS = st.text("a|-2 \n", max_size=5) | st.sampled_from(["x" * 64, "x" * 65, "x" * 56 + "-2", "a-2", "a-2-2", "é"])


@given(st.lists(IDS, max_size=20))
def test_ids_are_legal_unique_and_kept_where_they_can_be(given_ids: list[str]) -> None:
    calls = waiting()
    ids = [calls.add(call_exec(number, call_id), answer) for number, call_id in enumerate(given_ids)]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", call_id) for call_id in ids)
    if given_ids and re.fullmatch(r"[A-Za-z0-9_-]+", given_ids[0]) and len(given_ids[0]) <= MAX_ID_LENGTH:
        assert ids[0] == given_ids[0]


def test_many_calls_of_one_id() -> None:
    calls = waiting()
    ids = [calls.add(call_exec(number, "x" * 64), answer) for number in range(300)]
    assert len(set(ids)) == 300
    assert max(map(len, ids)) == MAX_ID_LENGTH


def test_an_id_stays_taken_after_its_result() -> None:
    calls = waiting()
    assert calls.add(call_exec(1, "a"), answer) == "a"
    assert calls.take(results("a")) == [b"a False"]
    assert calls.take(results("a")) == []
    assert calls.add(call_exec(2, "a"), answer) == "a-2"


def test_the_first_line_is_the_models_id() -> None:
    assert call_id_of(call_exec(1, "call_x\nfc_y")) == "call_x"
    assert call_id_of(call_exec(1)) == ""
    assert call_id_of(Exec(1, "e", "", None)) == ""


def test_what_is_missing_is_answered_as_an_error_and_what_was_aborted_not_at_all() -> None:
    calls = waiting()
    for number in (1, 2, 3):
        calls.add(call_exec(number, f"c{number}"), answer)
    assert calls.abort(2) == []
    assert [one.id for one in calls.execs] == [1, 3]
    assert calls.take(results("c1", "c2")) == [b"c1 False", b"c3 True"]
    assert calls.execs == []


def test_known_ones_are_known_while_they_wait() -> None:
    calls = waiting()
    calls.add(call_exec(1), answer)
    calls.start_local([call_exec(2)])
    assert [calls.has(call_exec(number)) for number in (1, 2, 3)] == [True, True, False]
    calls.take({})
    calls.finish_local(call_exec(2))
    assert not calls.has(call_exec(1))
    assert not calls.has(call_exec(2))


def test_what_runs_here_can_be_stopped() -> None:
    calls = waiting()
    calls.start_local([call_exec(1), call_exec(2)])
    assert calls.abort(1) == [1]
    assert [one.id for one in calls.execs] == [2]


def unread_exec(number: int, data: bytes = b"") -> ModelOutput:
    return ModelOutput("exec", Exec(number, f"e{number}", "read", None), data)


def drained(deferred: DeferredOutput) -> list[ModelOutput]:
    found: list[ModelOutput] = []
    while deferred:
        if deferred.is_wanted(deferred.first):
            found.append(deferred.first)
        deferred.drop_first()
    return found


def test_order_is_kept() -> None:
    deferred, outputs = (
        DeferredOutput(),
        [ModelOutput("text_delta", "a", b""), unread_exec(1), ModelOutput("text_delta", "b", b""), unread_exec(2)],
    )
    assert all(deferred.add(one) for one in outputs)
    assert list(deferred.execs) == [(1, "e1"), (2, "e2")]
    assert drained(deferred) == outputs
    assert not deferred.execs


def test_what_was_aborted_is_no_longer_wanted() -> None:
    deferred, outputs = DeferredOutput(), [unread_exec(1), unread_exec(2), ModelOutput("text_delta", "a", b"")]
    for one in outputs:
        deferred.add(one)
    deferred.abort(1)
    deferred.abort(7)
    assert list(deferred.execs) == [(2, "e2")]
    assert drained(deferred) == outputs[1:]


def test_bytes_are_bounded_and_room_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending, "MAX_BYTES", 3000)
    deferred = DeferredOutput()
    assert deferred.add(ModelOutput("text_delta", "", b"x" * 1000))
    drained(deferred)
    assert deferred.add(ModelOutput("text_delta", "", b"x" * 2400))
    assert not deferred.add(ModelOutput("text_delta", "", b""))


def test_execs_are_bounded() -> None:
    deferred = DeferredOutput()
    assert [deferred.add(unread_exec(number)) for number in range(pending.MAX_EXECS + 1)][-2:] == [True, False]


def exec_in(data: bytes) -> Exec:
    return exec_of(agent.AgentServerMessage.FromString(data).exec_server_message)


def started(announced: Announcements, call_id: str) -> bool:
    return announced.update("tool_call_started", agent.ToolCallStartedUpdate(call_id=call_id))


def test_open_until_the_exec_comes() -> None:
    announced = Announcements()
    assert started(announced, "call1\nfc_1")
    assert started(announced, "call2")
    announced.resolve(exec_in(call(1)))
    assert announced
    announced.resolve(exec_in(call(2, "call2\nfc_2")))
    assert not announced


def test_open_until_its_end_is_shown() -> None:
    announced = Announcements()
    started(announced, "call1")
    assert announced.update("tool_call_completed", agent.ToolCallCompletedUpdate(call_id="call1"))
    assert not announced


def test_what_is_shown_behind_the_exec_opens_nothing() -> None:
    announced = Announcements()
    announced.resolve(exec_in(call(1)))
    announced.update("partial_tool_call", agent.PartialToolCallUpdate(call_id="call1"))
    assert not announced


def test_an_exec_without_an_id_is_the_first_that_was_announced() -> None:
    announced = Announcements()
    started(announced, "call1")
    announced.resolve(exec_in(exec(1, pi_read_args=agent.PiReadExecArgs())))
    assert not announced


def test_other_updates_announce_nothing() -> None:
    assert not Announcements().update("text_delta", agent.TextDeltaUpdate(text="x"))


def test_both_memories_are_bounded() -> None:
    announced = Announcements()
    for number in range(1000):
        started(announced, f"a{number}")
        announced.resolve(exec_in(call(number, f"b{number}")))
    assert len(announced._open) == len(announced._done) == 256
