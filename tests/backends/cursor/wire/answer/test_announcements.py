"""Announced calls: open until their exec or their end comes, whatever is shown of them in between."""

from __future__ import annotations

from tests.backends.cursor.wire.saying import call, exec
from toolwire.backends.cursor.wire import agent, exec_of
from toolwire.backends.cursor.wire.answer.announcements import Announcements
from toolwire.backends.cursor.wire.execs import Exec


def came(data: bytes) -> Exec:
    return exec_of(agent.AgentServerMessage.FromString(data).exec_server_message)


def started(announced: Announcements, call_id: str) -> bool:
    return announced.heard("tool_call_started", agent.ToolCallStartedUpdate(call_id=call_id))


def test_open_until_the_exec_comes() -> None:
    announced = Announcements()
    assert started(announced, "call1\nfc_1")
    assert started(announced, "call2")
    announced.came(came(call(1)))
    assert announced
    announced.came(came(call(2, "call2\nfc_2")))
    assert not announced


def test_open_until_its_end_is_shown() -> None:
    announced = Announcements()
    started(announced, "call1")
    assert announced.heard("tool_call_completed", agent.ToolCallCompletedUpdate(call_id="call1"))
    assert not announced


def test_what_is_shown_behind_the_exec_opens_nothing() -> None:
    announced = Announcements()
    announced.came(came(call(1)))
    announced.heard("partial_tool_call", agent.PartialToolCallUpdate(call_id="call1"))
    assert not announced


def test_an_exec_without_an_id_is_the_first_that_was_announced() -> None:
    announced = Announcements()
    started(announced, "call1")
    announced.came(came(exec(1, pi_read_args=agent.PiReadExecArgs())))
    assert not announced


def test_other_updates_announce_nothing() -> None:
    assert not Announcements().heard("text_delta", agent.TextDeltaUpdate(text="x"))


def test_both_memories_are_bounded() -> None:
    announced = Announcements()
    for number in range(1000):
        started(announced, f"a{number}")
        announced.came(came(call(number, f"b{number}")))
    assert len(announced._open) == len(announced._done) == 256
