"""Uses of the provider's own tools, and their outcomes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.calls.telling import assistant, result, settled, shown, user
from toolwire.calls.ledger.hosted_tools import faults_in, may_be_answer
from toolwire.types import Opaque, Text


def part(kind: str, dialect: str = "messages", **members: Any) -> Opaque:
    return Opaque(dialect=dialect, value={"type": kind, **members})


USE = part("server_tool_use", id="s1")
FOUND = part("web_search_tool_result", tool_use_id="s1")


def test_a_whole_pair_stays_also_over_two_messages() -> None:
    assert faults_in((user("hi"), assistant(USE), user(result("a")), assistant(FOUND, "yes"))).halves == set()


def test_a_use_without_outcome_goes_unless_the_provider_has_paused() -> None:
    assert faults_in((user("hi"), assistant(USE), user("so"), assistant("yes"))).halves == {(1, 0)}
    assert faults_in((user("hi"), assistant("yes", USE))).halves == set()


def test_an_outcome_before_its_use_goes() -> None:
    assert faults_in((user("hi"), assistant(FOUND), user("so"), assistant(USE, FOUND))).halves == {(1, 0)}


def test_a_second_copy_goes() -> None:
    assert faults_in((user("hi"), assistant(USE, FOUND, USE, FOUND))).halves == {(1, 2), (1, 3)}


def test_uses_of_servers_tools_and_of_unknown_ones_are_pairs_too() -> None:
    assert faults_in((assistant(part("mcp_tool_use", id="m1")), user("hi"), assistant("yes"))).halves == {(0, 0)}
    called = part("x_call", "responses", call_id="c1")
    assert (
        faults_in((assistant(called), user(part("x_call_output", "responses", call_id="c1")), assistant("y"))).halves
        == set()
    )


@pytest.mark.parametrize(
    "alone",
    [
        part("web_search_call", "responses", id="ws_1"),
        part("mcp_call", "responses", id="mcp_1", output="42"),
        part("document"),
        part("server_tool_use", id=7),
        part("server_tool_use", "elsewhere", id="s1"),
        Opaque(dialect="messages", value={}),
    ],
)
def test_parts_that_are_no_halves_stay(alone: Opaque) -> None:
    assert faults_in((assistant(alone), user("hi"), assistant("yes"))).halves == set()


def test_words_of_the_user_part_a_use_from_its_outcome() -> None:
    assert faults_in((user("hi"), assistant(USE), user("so"), assistant(FOUND))).halves == {(1, 0), (3, 0)}


def test_an_approval_needs_its_request_and_a_request_may_wait() -> None:
    asked = part("mcp_approval_request", "responses", id="m1")
    granted = part("mcp_approval_response", "responses", approval_request_id="m1")
    assert not faults_in((user(asked), user("hi")))
    assert not faults_in((user(asked), user("hi"), user(granted)))
    assert faults_in((user("hi"), user(granted))).halves == {(1, 0)}


def test_what_only_the_other_side_may_say_is_a_stray() -> None:
    used = part("tool_use", id="a", name="f", input={})
    answered = part("tool_result", tool_use_id="a", content="42")
    assert faults_in((user("hi", used), assistant("yes", answered))).strays == {(0, 1), (1, 1)}
    messages, kinds = settled(user("hi", used), assistant("yes", USE, answered), origin="messages")
    assert kinds == ["hosted", "order", "order"] or kinds == ["order", "order", "hosted"]
    assert [message.role for message in messages] == ["user", "assistant", "user"]
    assert '"tool_use"' in shown(messages)[1]
    assert "42" in shown(messages)[-1]


def test_an_item_that_ends_something_is_no_answer() -> None:
    assert may_be_answer(part("mcp_approval_request", "responses"))
    assert not may_be_answer(part("mcp_approval_response", "responses"))
    assert not may_be_answer(part("x_output", "responses"))
    assert not may_be_answer(Text(text="x"))


@pytest.mark.parametrize("dialect", ["messages", "responses", "gemini"])
@pytest.mark.parametrize("kind", [{"a": 1}, [1], None, 5])
def test_a_part_whose_type_is_no_text_is_neither_half_nor_stray(dialect: str, kind: Any) -> None:
    odd = Opaque(dialect=dialect, value={"type": kind})
    assert not faults_in((user("hi"), assistant(odd), user(odd)))
