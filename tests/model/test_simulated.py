"""Simulated tools on a real llama.cpp server: a model of 135 million parameters makes valid calls, because the server allows nothing else.

The model is far too small to choose tools well, so the tests assert what the schema guarantees, and what is streamed, not how good the calls are.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jsonschema_rs
import pytest

from tests.model.conftest import ModelGateway, chat_body
from tests.server.harness import ask, connected, events_in, read_until, request_bytes, wait_until

pytestmark = pytest.mark.slow

WEATHER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 20},
        "days": {"type": "integer", "minimum": 1, "maximum": 7},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
    },
    "required": ["city", "days", "unit"],
    "additionalProperties": False,
}
CLOCK: dict[str, Any] = {
    "type": "object",
    "properties": {"zone": {"type": "string", "maxLength": 20}},
    "required": ["zone"],
}
QUESTION = "What is the weather in Paris?"
LEVELS = ("off", "check", "repair", "retry")


def tool(name: str, schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


TOOLS = [tool("get_weather", WEATHER, "The weather of a city."), tool("get_time", CLOCK, "The current time.")]
SCHEMAS = {"get_weather": WEATHER, "get_time": CLOCK}


def asked(model: ModelGateway, backend: str, text: str = QUESTION, **members: Any) -> dict[str, Any]:
    answer = model.chat(backend, text, **{"tools": TOOLS, "max_tokens": 200, "parallel_tool_calls": False} | members)
    assert answer.status == 200, answer.body
    body: dict[str, Any] = answer.json
    return body


def calls_in(body: dict[str, Any]) -> list[tuple[str, Any]]:
    calls = body["choices"][0]["message"].get("tool_calls") or []
    return [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls]


def assert_valid(calls: list[tuple[str, Any]]) -> None:
    for name, arguments in calls:
        assert jsonschema_rs.Draft202012Validator(SCHEMAS[name]).is_valid(arguments), (name, arguments)


@pytest.mark.parametrize("level", LEVELS)
def test_a_forced_call_is_made_and_valid_at_every_guard_level(model: ModelGateway, level: str) -> None:
    calls = calls_in(asked(model, level, tool_choice="required"))
    assert len(calls) == 1
    assert_valid(calls)


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_named_tool_is_the_one_that_is_called(model: ModelGateway, name: str) -> None:
    choice = {"type": "function", "function": {"name": name}}
    calls = calls_in(asked(model, "check", tool_choice=choice))
    assert [called for called, _ in calls] == [name]
    assert_valid(calls)


@pytest.mark.parametrize("text", ["Tell me a joke.", QUESTION, "Hello!", "What time is it in Oslo?"])
def test_a_free_answer_is_text_or_valid_calls_and_never_json(model: ModelGateway, text: str) -> None:
    body = asked(model, "retry", text)
    choice = body["choices"][0]
    assert_valid(calls_in(body))
    content = choice["message"].get("content") or ""
    assert content or calls_in(body)
    assert not content.startswith("{")
    assert "<tool_call>" not in content


def test_the_arguments_of_a_call_stream_at_check(model: ModelGateway) -> None:
    body = chat_body("check", QUESTION, tools=TOOLS, tool_choice="required", max_tokens=200, stream=True)
    body["parallel_tool_calls"] = False
    events = ask(model.port, "POST", "/v1/chat/completions", body, timeout=120.0).events
    deltas = [data["choices"][0]["delta"] for _, data in events if isinstance(data, dict) and data["choices"]]
    pieces = [delta["tool_calls"][0]["function"].get("arguments", "") for delta in deltas if delta.get("tool_calls")]
    assert len([piece for piece in pieces if piece]) > 5
    assert not any(delta.get("content") for delta in deltas)
    whole = calls_in(asked(model, "check", tool_choice="required"))
    assert json.loads("".join(pieces)) == whole[0][1]


def test_text_streams_out_of_the_constrained_object(model: ModelGateway) -> None:
    """Text that the client wants as JSON."""
    wanted = {"type": "object", "properties": {"joke": {"type": "string", "maxLength": 60}}, "required": ["joke"]}
    form = {"type": "json_schema", "json_schema": {"name": "joke", "schema": wanted}}
    body = chat_body("check", "Tell me a joke about cats.", tools=TOOLS, response_format=form, max_tokens=200)
    events = ask(model.port, "POST", "/v1/chat/completions", body | {"stream": True}, timeout=120.0).events
    deltas = [data["choices"][0]["delta"] for _, data in events if isinstance(data, dict) and data["choices"]]
    pieces = [delta["content"] for delta in deltas if delta.get("content")]
    whole = ask(model.port, "POST", "/v1/chat/completions", body, timeout=120.0).json["choices"][0]["message"]
    assert "".join(pieces) == (whole.get("content") or "")
    if pieces:
        assert jsonschema_rs.Draft202012Validator(wanted).is_valid(json.loads("".join(pieces)))
        assert len(pieces) > 5


def test_a_schema_that_the_server_refuses_is_replaced_by_the_prompt_and_reported(model: ModelGateway) -> None:
    odd = {"type": "object", "properties": {"city": {"enum": []}}}
    for expected in ("refused", "before"):
        answer = model.chat("retry", QUESTION, tools=[tool("odd", odd, "Odd.")], max_tokens=20)
        assert answer.status == 200, answer.body
        assert "grammar" in answer.headers["x-toolwire-loss"], expected


def test_a_prompt_alone_still_answers(model: ModelGateway) -> None:
    body = asked(model, "prompt", max_tokens=40)
    assert body["choices"][0]["message"]["content"] or calls_in(body)


@pytest.mark.parametrize("level", ["check", "repair", "retry"])
def test_native_tools_are_ignored_by_a_server_whose_template_has_none(model: ModelGateway, level: str) -> None:
    """llama.cpp refuses nothing and never calls, not even if a call is required: such a model needs simulated tools."""
    body = asked(model, f"native-{level}", tool_choice="required", max_tokens=40)
    assert calls_in(body) == []
    assert body["choices"][0]["message"]["content"]


def test_stop_sequences_end_the_text_and_not_the_object(model: ModelGateway) -> None:
    body = asked(model, "check", "Tell me a joke.", stop=["}", '"'])
    assert_valid(calls_in(body))
    assert body["choices"][0]["finish_reason"] in ("stop", "tool_calls", "length")
    assert not set(body["choices"][0]["message"].get("content") or "") & {"}", '"'}


def test_a_client_that_disconnects_frees_the_slot_of_a_constrained_answer(model: ModelGateway) -> None:
    wait_until(lambda: model.server.busy_slots() == 0)
    long = tool("write", {"type": "object", "properties": {"text": {"type": "string", "minLength": 900}}}, "Write.")
    body = chat_body("check", "Write a long story.", tools=[long], tool_choice="required", stream=True, max_tokens=3000)
    with connected(model.port, 60.0) as connection:
        connection.sendall(request_bytes("/v1/chat/completions", body))
        read_until(connection, b'"arguments"')
        assert model.server.busy_slots() == 1
    wait_until(lambda: model.server.busy_slots() == 0, 10.0)


def test_parallel_slots_keep_their_grammars_apart(model: ModelGateway) -> None:
    choices = [{"type": "function", "function": {"name": name}} for name in SCHEMAS] * 2

    def called(choice: dict[str, Any]) -> list[tuple[str, Any]]:
        return calls_in(asked(model, "retry", tool_choice=choice))

    with ThreadPoolExecutor(len(choices)) as pool:
        together = list(pool.map(called, choices))
    assert [[name for name, _ in calls] for calls in together] == [[choice["function"]["name"]] for choice in choices]
    for calls in together:
        assert_valid(calls)


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/responses"])
def test_clients_of_other_dialects_get_the_same_calls(model: ModelGateway, path: str) -> None:
    if path == "/v1/messages":
        body: dict[str, Any] = {
            "max_tokens": 200,
            "messages": [{"role": "user", "content": QUESTION}],
            "tools": [{"name": "get_weather", "input_schema": WEATHER}],
            "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
        }
    else:
        weather = {"type": "function", "name": "get_weather", "parameters": WEATHER}
        body = {"input": QUESTION, "max_output_tokens": 200, "tools": [weather], "tool_choice": "required"}
    answer = ask(model.port, "POST", path, {"model": "retry/m", "temperature": 0, "stream": True} | body, timeout=120.0)
    data = [value for _, value in events_in(answer.body) if isinstance(value, dict)]
    if path == "/v1/messages":
        raw = "".join(
            one["delta"]["partial_json"] for one in data if one.get("delta", {}).get("type") == "input_json_delta"
        )
    else:
        raw = next(one["arguments"] for one in data if one["type"] == "response.function_call_arguments.done")
    assert_valid([("get_weather", json.loads(raw))])
