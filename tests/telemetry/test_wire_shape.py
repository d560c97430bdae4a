"""The shape of a message: names, kinds, sizes and ids, and no content."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.telemetry.wire_shape import shape_of

SECRETS = ("Jane", "rm -rf", "Paris", "what is", "hidden words")


def test_a_request_of_the_chat_dialect() -> None:
    message = {
        "model": "gpt-5.5",
        "stream": True,
        "messages": [
            {"role": "system", "content": "hidden words"},
            {"role": "assistant", "content": None, "tool_calls": [_call("call_1", '{"city": "Paris"}')]},
            {"role": "tool", "tool_call_id": "call_1", "content": "hidden words"},
        ],
        "tools": [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}],
        "temperature": 0.5,
    }
    assert shape_of(message) == (
        "{model: gpt-5.5, stream: true, messages: [3: {role: system, content: text 12}, "
        "{role: assistant, content: null, tool_calls: [1: {id: call_1, type: function, function: {2 members}}]}, "
        "{role: tool, tool_call_id: call_1, content: text 12}], "
        "tools: [1: {type: function, function: {name: get_weather, parameters: {1 members}}}], temperature: number}"
    )


def _call(id: str, arguments: str) -> dict[str, object]:
    return {"id": id, "type": "function", "function": {"name": "get_weather", "arguments": arguments}}


@pytest.mark.parametrize(
    "message",
    [
        {"content": [{"type": "tool_use", "id": "t1", "name": "f", "input": {"name": "Jane", "Jane": 1}}]},
        {"parts": [{"functionCall": {"name": "f", "args": {"id": "Jane"}}}]},
        {"parts": [{"functionResponse": {"name": "f", "response": {"name": "Jane"}}}]},
        {"item": {"type": "function_call", "arguments": {"type": "Jane"}}},
        {"metadata": {"user_id": "Jane"}},
        {"name": "Jane Doe, who lives in Paris"},
        {"what is this": 1},
        {"input": "what is it", "output": {"id": "Jane"}},
        {"config": {"model_providers.x.http_headers.name": "Jane"}},
        {"tool_result": {"content": [{"type": "text", "text": "rm -rf Jane"}]}},
    ],
)
def test_content_is_counted_and_not_shown(message: dict[str, object]) -> None:
    shape = shape_of(message)
    assert not [word for word in SECRETS if word in shape]


def test_names_of_headers_are_shown_and_their_values_are_not() -> None:
    shape = shape_of({"headers": {"authorization": "Bearer Jane", "x-name": "Jane"}})
    assert shape == "{headers: {authorization, x-name}}"


def test_what_is_long_or_deep_is_bounded() -> None:
    assert len(shape_of({f"member_{number}": "x" for number in range(5000)})) < 1600
    assert len(shape_of([{"role": "user"}] * 5000)) < 300
    deep: object = "end"
    for _ in range(200):
        deep = {"a": [deep]}
    assert len(shape_of(deep)) < 200


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
)


@given(JSON)
def test_any_message_has_a_shape_on_one_line(message: object) -> None:
    shape = shape_of(json.loads(json.dumps(message)))
    assert len(shape.splitlines()) == 1
    assert len(shape) <= 1503
