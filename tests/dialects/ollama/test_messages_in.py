"""Ollama: messages in, with calls and results that have no ids."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire.dialects.ollama.messages_in import history_reader, messages_in
from toolwire.dialects.shared.calls import CallPairs
from toolwire.errors import BadRequest
from toolwire.types import Media, Message, Reasoning, Text, ToolCall, ToolResult


def read(*messages: Any) -> tuple[Message, ...]:
    return messages_in(list(messages), history_reader(), CallPairs())


def calls(*names: str, **members: Any) -> dict[str, Any]:
    made = [{"function": {"name": name, "arguments": {"n": number}}, **members} for number, name in enumerate(names)]
    return {"role": "assistant", "content": "", "tool_calls": made}


def results_in(messages: tuple[Message, ...]) -> list[tuple[str, str]]:
    found = [part for message in messages for part in message.parts if isinstance(part, ToolResult)]
    return [(part.call_id, "".join(text.text for text in part.parts if isinstance(text, Text))) for part in found]


def test_roles_texts_thinking_and_images() -> None:
    system, user, assistant = read(
        {"role": "system", "content": "s"},
        {"role": "User", "content": "u", "images": ["aGk="]},
        {"role": "assistant", "content": "a", "thinking": "hm"},
    )
    assert system.parts == (Text(text="s"),)
    assert user.parts == (Text(text="u"), Media(kind="image", data="aGk="))
    assert assistant.parts == (Reasoning(text="hm"), Text(text="a"))


def test_bare_results_answer_calls_in_order() -> None:
    """As Home Assistant sends them."""
    messages = read(calls("f", "f"), {"role": "tool", "content": "1"}, {"role": "tool", "content": "2"})
    made = [part for part in messages[0].parts if isinstance(part, ToolCall)]
    assert [call.raw for call in made] == ['{"n":0}', '{"n":1}']
    assert results_in(messages) == [(made[0].id, "1"), (made[1].id, "2")]
    assert made[0].id != made[1].id


def test_results_with_names_answer_calls_of_their_name() -> None:
    """As the official Python library sends them."""
    by_name = [{"role": "tool", "content": "b", "tool_name": "g"}, {"role": "tool", "content": "a", "tool_name": "f"}]
    assert results_in(read(calls("f", "g"), *by_name)) == [("call_2", "b"), ("call_1", "a")]
    old = {"role": "tool", "content": "b", "name": "g"}
    assert results_in(read(calls("f", "g"), old)) == [("call_2", "b")]


def test_ids_take_precedence() -> None:
    by_id = {"role": "tool", "content": "x", "tool_name": "f", "tool_call_id": "call_b"}
    made = {"role": "assistant", "content": "", "tool_calls": [
        {"id": "call_a", "function": {"name": "f", "arguments": {}}}, {"id": "call_b", "function": {"name": "f", "arguments": {}}},
    ]}  # fmt: skip
    assert results_in(read(made, by_id)) == [("call_b", "x")]


def test_ids_are_the_same_in_every_request_of_a_conversation() -> None:
    first = (calls("f"), {"role": "tool", "content": "1"})
    assert read(*first) == read(*first, calls("f"), {"role": "tool", "content": "2"})[:2]


def test_an_image_of_a_result() -> None:
    (_, result) = read(calls("f"), {"role": "tool", "content": "see", "images": ["aGk="]})
    assert isinstance(result.parts[0], ToolResult)
    assert result.parts[0].parts == (Text(text="see"), Media(kind="image", data="aGk="))


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {"role": "developer", "content": "hi"},
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": '{"a":1}'}}]},
        "hi",
    ],
)
def test_messages_of_other_dialects_are_understood_and_reported(message: Any) -> None:
    reader = history_reader()
    (found,) = messages_in([message], reader, CallPairs())
    assert reader.losses
    assert isinstance(found.parts[0], Text | ToolCall)
    if isinstance(found.parts[0], ToolCall):
        assert found.parts[0].id == "call_1"
        assert found.parts[0].raw == '{"a":1}'


@pytest.mark.parametrize("message", [{"role": "user", "images": [1]}, 7])
def test_a_message_without_meaning_is_refused(message: Any) -> None:
    with pytest.raises(BadRequest):
        messages_in([message], history_reader(), CallPairs())
