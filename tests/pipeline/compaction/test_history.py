"""Which part of a conversation follows its summary unchanged."""

from __future__ import annotations

from toolwire.pipeline.compaction.history import last_turn, open_calls, split_instructions, tokens_of
from toolwire.types import Message, Role, Text, ToolCall, ToolResult


def text(role: Role, length: int = 10) -> Message:
    return Message(role=role, parts=(Text(text="x" * length),))


def call(number: int) -> Message:
    return Message(role="assistant", parts=(ToolCall(id=f"c{number}", name="look", raw="{}"),))


def result(number: int, length: int = 10) -> Message:
    return Message(role="tool", parts=(ToolResult(call_id=f"c{number}", parts=(Text(text="x" * length),)),))


def test_the_last_turn_begins_with_the_last_text_of_the_user() -> None:
    messages = (text("user", 5000), text("assistant"), text("user"), call(1), result(1))
    assert last_turn(messages) == messages[2:]


def test_a_long_turn_leaves_its_last_calls_with_their_results() -> None:
    messages = (text("user"), call(1), result(1, 50_000), call(2), result(2))
    assert last_turn(messages) == messages[3:]


def test_it_never_begins_with_a_result() -> None:
    messages = (text("user"), call(1), result(1, 50_000))
    assert last_turn(messages) == ()


def test_open_calls_are_never_lost() -> None:
    many = Message(role="assistant", parts=(Text(text="x" * 50_000), ToolCall(id="c9", name="look", raw="{}")))
    messages = (text("user"), call(1), result(1), many)
    assert [one.id for one in open_calls(messages)] == ["c9"]
    assert last_turn(messages) == (Message(role="assistant", parts=(ToolCall(id="c9", name="look", raw="{}"),)),)


def test_instructions_before_the_conversation_are_no_part_of_it() -> None:
    messages = (text("system"), text("developer"), text("user"), text("system"), text("assistant"))
    assert split_instructions(messages) == (messages[:2], messages[2:])


def test_tokens_are_estimated_by_length() -> None:
    assert tokens_of((text("user", 400),)) == 100
