"""Responses requests in: what is asked for, what leans on earlier answers, and a refusal that names the field."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.dialects.refusing import GONE, refusal, with_change
from toolwire.dialects import responses
from toolwire.types import Output, Request, Text, Thinking

GOOD: dict[str, Any] = {
    "model": "m",
    "instructions": "s",
    "input": [
        {
            "role": "user",
            "content": [{"type": "input_text", "text": "hi"}, {"type": "input_image", "image_url": "https://a"}],
        },
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "r"},
        {"type": "custom_tool_call", "call_id": "d", "name": "g", "input": "x"},
    ],
    "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}],
}

BROKEN = [
    ("model", GONE, "model"),
    ("model", "", "model"),
    ("model", None, "model"),
    ("input", GONE, "input"),
    ("input", None, "input"),
    ("input", [], "input"),
    ("input", 5, "input"),
    ("input", {}, "input"),
    ("input.0", "hi", "input[0]"),
    ("input.0.role", GONE, "input[0].role"),
    ("input.0.role", "robot", "input[0].role"),
    ("input.0.type", 5, "input[0].type"),
    ("input.0.content", GONE, "input[0].content"),
    ("input.0.content", None, "input[0].content"),
    ("input.0.content.0", "hi", "input[0].content[0]"),
    ("input.0.content.0.type", GONE, "input[0].content[0].type"),
    ("input.0.content.0.text", 5, "input[0].content[0].text"),
    ("input.0.content.1.image_url", GONE, "input[0].content[1].image_url"),
    ("input.0.content.1.detail", 5, "input[0].content[1].detail"),
    ("input.1.call_id", GONE, "input[1].call_id"),
    ("input.1.call_id", "", "input[1].call_id"),
    ("input.1.name", GONE, "input[1].name"),
    ("input.1.arguments", GONE, "input[1].arguments"),
    ("input.1.arguments", {}, "input[1].arguments"),
    ("input.2.call_id", GONE, "input[2].call_id"),
    ("input.2.output", GONE, "input[2].output"),
    ("input.2.output", 5, "input[2].output"),
    ("input.2.output", [5], "input[2].output[0]"),
    ("input.3.input", GONE, "input[3].input"),
    ("instructions", 5, "instructions"),
    ("instructions", [5], "instructions[0]"),
    ("tools", {}, "tools"),
    ("tools.0", 5, "tools[0]"),
    ("tools.0.type", GONE, "tools[0].type"),
    ("tools.0.name", GONE, "tools[0].name"),
    ("tools.0.parameters", [], "tools[0].parameters"),
    ("tools.0.strict", 1, "tools[0].strict"),
    ("tools.0", {"type": "custom"}, "tools[0].name"),
    ("tools.0", {"type": "namespace"}, "tools[0].name"),
    ("tool_choice", "sometimes", "tool_choice"),
    ("tool_choice", 5, "tool_choice"),
    ("tool_choice", {"type": "allowed_tools"}, "tool_choice.tools"),
    ("tool_choice", {"type": "allowed_tools", "tools": [5]}, "tool_choice.tools[0]"),
    ("parallel_tool_calls", 0, "parallel_tool_calls"),
    ("max_output_tokens", 0, "max_output_tokens"),
    ("max_output_tokens", "9", "max_output_tokens"),
    ("temperature", [], "temperature"),
    ("top_logprobs", -1, "top_logprobs"),
    ("include", "x", "include"),
    ("include", [{"a": 1}], "include"),
    ("reasoning", "high", "reasoning"),
    ("reasoning", {"effort": 5}, "reasoning.effort"),
    ("text", "json", "text"),
    ("text", {"format": "json"}, "text.format"),
    ("text", {"format": {"type": "xml"}}, "text.format.type"),
    ("text", {"verbosity": 5}, "text.verbosity"),
    ("stream", "yes", "stream"),
    ("user", 5, "user"),
    ("metadata", [], "metadata"),
]


@pytest.mark.parametrize(("path", "value", "where"), BROKEN)
def test_a_broken_request_names_the_field(path: str, value: Any, where: str) -> None:
    assert refusal("responses", with_change(GOOD, path, value)).where == where


def read(**members: Any) -> Request:
    return responses.decode_request(json.dumps({**GOOD, **members}).encode(), {})


def test_what_a_good_request_means() -> None:
    request = read(max_output_tokens=9, include=["message.output_text.logprobs"], top_logprobs=2, x_top=1)
    assert request.messages[0].is_head
    assert [message.role for message in request.messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert (request.max_tokens, request.sampling.logprobs, request.sampling.top_logprobs) == (9, True, 2)
    assert request.extra["responses"]["x_top"] == 1
    assert read(input="hi").messages[-1].parts == (Text(text="hi"),)


def test_instructions_as_items_belong_to_the_head() -> None:
    request = read(instructions=[{"role": "developer", "content": "a"}, {"role": "system", "content": "b"}])
    assert [(message.role, message.is_head) for message in request.messages[:2]] == [
        ("developer", True),
        ("system", True),
    ]


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"previous_response_id": "resp_1", "input": []}, "previous_response_id"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"prompt": {"id": "p"}}, "prompt"),
        ({"background": True}, "background"),
        ({"input": [{"role": "user", "content": "a"}, {"type": "item_reference", "id": "x"}]}, "input[1]"),
    ],
)
def test_H165_what_leans_on_earlier_answers_is_state(members: dict[str, Any], field: str) -> None:
    state = read(**members).state
    assert state is not None
    assert state.field == field
    assert read(previous_response_id=None, background=False, store=False).state is None


def test_H057_tools_of_every_kind() -> None:
    tools = read(
        tools=[
            {"type": "custom", "name": "patch"},
            {"type": "namespace", "name": "mcp", "tools": [{"type": "function", "name": "f"}]},
            {"type": "web_search"},
        ]
    ).tools
    assert [(tool.name, tool.kind) for tool in tools] == [
        ("patch", "custom"),
        ("f", "function"),
        ("web_search", "hosted"),
    ]


@pytest.mark.parametrize(
    ("value", "mode", "names"),
    [
        ("required", "required", ()),
        ({"type": "function", "name": "f"}, "named", ("f",)),
        ({"type": "function", "function": {"name": "f"}}, "named", ("f",)),
        ({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]}, "allowed", ("f",)),
        ({"type": "web_search"}, "hosted", ("web_search",)),
    ],
)
def test_H087_every_shape_of_a_choice(value: Any, mode: str, names: tuple[str, ...]) -> None:
    choice = read(tool_choice=value).tool_choice
    assert choice is not None
    assert (choice.mode, choice.names) == (mode, names)


def test_outputs_and_efforts() -> None:
    form = {"format": {"type": "json_schema", "name": "n", "schema": {}, "strict": False}, "verbosity": "low"}
    assert read(text=form).output == Output(format="schema", name="n", schema={}, strict=False, verbosity="low")
    assert read(text={}).output == Output()
    assert read(text={"format": {"type": "json_object"}}).output.format == "json"
    assert read(reasoning={"effort": "high", "summary": "auto"}).thinking == Thinking(effort="high", summary="auto")
    assert read(reasoning=None).thinking is None


@pytest.mark.parametrize("kind", ["function", "custom"])
def test_a_choice_that_names_no_tool_is_refused(kind: str) -> None:
    assert refusal("responses", GOOD | {"tool_choice": {"type": kind}}).where == "tool_choice"
