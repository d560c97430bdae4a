"""Edits that clear old results and old reasoning."""

from __future__ import annotations

from typing import Any

from toolwire.pipeline.compaction.clearing import clear
from toolwire.types import Message, Reasoning, Text, ToolCall, ToolResult


def conversation(count: int) -> tuple[Message, ...]:
    messages: list[Message] = [Message(role="user", parts=(Text(text="hi"),))]
    for number in range(count):
        call = ToolCall(id=f"c{number}", name=f"tool{number}", raw='{"a":1}', args={"a": 1})
        messages.append(Message(role="assistant", parts=(Reasoning(text="hm"), call)))
        result = ToolResult(call_id=f"c{number}", parts=(Text(text="long " * 100),))
        messages.append(Message(role="tool", parts=(result,)))
    return tuple(messages)


def results(messages: tuple[Message, ...]) -> list[bool]:
    """For each result, whether it is still there."""
    parts = [part for message in messages for part in message.parts if isinstance(part, ToolResult)]
    return [part.parts[0].text.startswith("long") for part in parts if isinstance(part.parts[0], Text)]


def uses(**members: Any) -> dict[str, Any]:
    return {"type": "clear_tool_uses_20250919", "trigger": {"type": "tool_uses", "value": 2}, **members}


def test_old_results_are_cleared_and_the_newest_stay() -> None:
    cleared = clear(conversation(5), [uses(keep={"type": "tool_uses", "value": 2})])
    assert results(cleared.messages) == [False, False, False, True, True]
    assert [loss.feature for loss in cleared.losses] == ["context_management"]


def test_nothing_is_cleared_before_the_trigger() -> None:
    messages = conversation(2)
    assert clear(messages, [uses()]).messages is messages
    assert clear(messages, [{"type": "clear_tool_uses_20250919"}]).messages is messages


def test_tools_can_be_excluded_and_inputs_cleared_too() -> None:
    edit = uses(keep={"type": "tool_uses", "value": 1}, exclude_tools=["tool0"], clear_tool_inputs=["tool1"])
    cleared = clear(conversation(4), [edit])
    assert results(cleared.messages) == [True, False, False, True]
    calls = [part.raw for message in cleared.messages for part in message.parts if isinstance(part, ToolCall)]
    assert calls == ['{"a":1}', "{}", '{"a":1}', '{"a":1}']


def test_less_than_the_client_wants_to_save_is_not_cleared() -> None:
    messages = conversation(5)
    edit = uses(clear_at_least={"type": "input_tokens", "value": 10_000})
    assert clear(messages, [edit]).messages is messages


def test_reasoning_of_old_turns_is_cleared() -> None:
    edit = {"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns", "value": 2}}
    cleared = clear(conversation(5), [edit]).messages
    assert sum(isinstance(part, Reasoning) for message in cleared for part in message.parts) == 2
    everything = conversation(3)
    assert clear(everything, [{**edit, "keep": "all"}]).messages is everything


def test_an_unknown_edit_is_reported() -> None:
    assert len(clear(conversation(1), [{"type": "clear_everything_2030"}]).losses) == 1
