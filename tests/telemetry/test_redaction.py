"""Shapes contain no content, and redacted messages no secrets."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.telemetry.redaction import HIDDEN, Redaction, is_secret, shape_of


@pytest.mark.parametrize(
    "name",
    [
        *(
            "authorization",
            "Authorization",
            "x-api-key",
            "api_key",
            "apiKey",
            "OPENAI_API_KEY",
            "key",
            "token",
            "Cookie",
        ),
        *("access_token", "client_secret", "password", "proxy-authorization", "set-cookie", "x-goog-api-key"),
    ],
)
def test_members_with_the_name_of_a_secret_are_hidden(name: str) -> None:
    assert is_secret(name)
    assert Redaction().value({"a": [{name: "anything"}]}) == {"a": [{name: HIDDEN}]}


@pytest.mark.parametrize(
    "name", ["max_tokens", "author", "keyboard", "prompt_cache_key", "monkey_name", "tokens", "text"]
)
def test_other_members_are_unchanged(name: str) -> None:
    assert Redaction().value({name: "anything"}) == {name: "anything"}


@pytest.mark.parametrize(
    "secret",
    [
        "sk-proj-abcdefgh12345678",
        "ghp_abcdefgh12345678abcd",
        "AIzaSyA1234567890abcdefghijklmn",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc",
        "Bearer abcdef.123456",
        "AKIAABCDEFGHIJKLMNOP",
        "mine-and-only-mine",
    ],
)
def test_secrets_are_found_by_form_and_by_comparison(secret: str) -> None:
    redaction = Redaction(["mine-and-only-mine", "short"])
    shown = json.dumps(redaction.value({"content": f"look: {secret} there", secret: [secret]}))
    assert secret not in shown
    assert "look: [hidden] there" in shown


def test_longer_secrets_are_replaced_first_and_short_ones_ignored() -> None:
    redaction = Redaction(["12345678", "12345678-and-more", "cat"])
    assert redaction.text("12345678-and-more 12345678 cat") == f"{HIDDEN} {HIDDEN} cat"


def test_long_texts_are_cut_and_other_values_unchanged() -> None:
    value = Redaction().value({"data": "x" * 50_000, "n": 3, "is": True, "none": None})
    assert isinstance(value, dict)
    assert value["data"].endswith("48000 more characters")
    assert (value["n"], value["is"], value["none"]) == (3, True, None)


CONTENT = ("Jane", "rm -rf", "Paris", "what is", "hidden words")


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
def test_a_shape_counts_content(message: dict[str, object]) -> None:
    shape = shape_of(message)
    assert not [word for word in CONTENT if word in shape]


def test_a_shape_has_the_names_of_headers_only() -> None:
    shape = shape_of({"headers": {"authorization": "Bearer Jane", "x-name": "Jane"}})
    assert shape == "{headers: {authorization, x-name}}"


def test_shapes_of_large_messages_are_bounded() -> None:
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
def test_a_shape_is_one_line(message: object) -> None:
    shape = shape_of(json.loads(json.dumps(message)))
    assert len(shape.splitlines()) == 1
    assert len(shape) <= 1503
