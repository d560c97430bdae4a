"""Responses requests in: what is asked for, what leans on earlier answers, and a refusal that names the field."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.dialects.refused_bodies import GONE, assert_noted, refusal, with_change
from toolwire.dialects import responses
from toolwire.dialects.responses.request_in import choice_in, tools_in, without_chat_shapes
from toolwire.errors import BadRequest
from toolwire.types import OutputFormat, Request, Text, Thinking, Tool

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
    ("input", 5, "input"),
    ("input", {}, "input"),
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
# Read all the same, in another way.
FOREIGN = [
    ("input", GONE, "input"),
    ("input", None, "input"),
    ("input", [], "input"),
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
]


@pytest.mark.parametrize(("path", "value", "where"), BROKEN)
def test_a_broken_request_names_the_field(path: str, value: Any, where: str) -> None:
    assert refusal("responses", with_change(GOOD, path, value)).where == where


@pytest.mark.parametrize(("path", "value", "where"), FOREIGN)
def test_a_message_in_another_form_is_read_and_noted(path: str, value: Any, where: str) -> None:
    assert_noted("responses", with_change(GOOD, path, value), where)


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
    assert read(text=form).output == OutputFormat(format="schema", name="n", schema={}, strict=False, verbosity="low")
    assert read(text={}).output == OutputFormat()
    assert read(text={"format": {"type": "json_object"}}).output.format == "json"
    assert read(reasoning={"effort": "high", "summary": "auto"}).thinking == Thinking(effort="high", summary="auto")
    assert read(reasoning=None).thinking is None


@pytest.mark.parametrize("kind", ["function", "custom"])
def test_a_choice_that_names_no_tool_is_refused(kind: str) -> None:
    assert refusal("responses", GOOD | {"tool_choice": {"type": kind}}).where == "tool_choice"


FUNCTION = {"type": "function", "name": "close", "parameters": {"type": "object"}}
SEARCH = {"type": "tool_search", "execution": "client", "description": "Find.", "parameters": {"type": "object"}}
GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": "start: /x/"}


def space(*tools: Any, name: str = "agents") -> dict[str, Any]:
    return {"type": "namespace", "name": name, "description": "", "tools": list(tools)}


def found(*tools: Any, items: Any = "hi") -> list[Tool]:
    return list(tools_in({"tools": list(tools), "input": items}))


def names(tools: list[Tool]) -> list[tuple[str, str, str, str]]:
    return [(tool.kind, tool.namespace, tool.name, tool.label) for tool in tools]


def test_tools_written_as_chat_completions_does_are_understood() -> None:
    inner = {"name": "close", "description": "Close it.", "parameters": {"type": "object"}, "strict": True}
    format = {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: /x/"}}
    body = {
        "tools": [
            FUNCTION,
            {"type": "function", "function": inner},
            {"type": "custom", "custom": {"name": "a", "format": format}},
        ],
        "tool_choice": {"type": "function", "function": {"name": "close"}},
    }
    flat = without_chat_shapes(body)
    assert flat["tools"] == [
        FUNCTION,
        {"type": "function", **inner},
        {"type": "custom", "name": "a", "format": GRAMMAR},
    ]
    assert flat["tool_choice"] == {"type": "function", "name": "close"}
    assert without_chat_shapes(flat) is flat
    for strange in (
        {"tools": 5},
        {"tools": [5, {"type": "function", "function": 5}]},
        {"tool_choice": {"type": "function"}},
    ):
        assert without_chat_shapes(strange) is strange


def test_namespaces_are_flattened() -> None:
    custom = {"type": "custom", "name": "exec", "description": "Runs.", "format": GRAMMAR}
    tools = found(FUNCTION, space(FUNCTION), space(custom, name="functions"))
    assert names(tools) == [
        ("function", "", "close", "close"),
        ("function", "agents", "close", "agents__close"),
        ("custom", "functions", "exec", "exec"),
    ]
    assert tools[2].grammar == "(lark) start: /x/"


def test_U1_tools_inside_the_input_count() -> None:
    item = {"type": "additional_tools", "role": "developer", "tools": [space(FUNCTION)]}
    assert names(found(items=[item])) == [("function", "agents", "close", "agents__close")]


def test_U2_what_a_search_found_is_callable() -> None:
    item = {"type": "tool_search_output", "call_id": "c", "tools": [space({**FUNCTION, "defer_loading": True})]}
    tools = found(SEARCH, items=[item])
    assert [(tool.name, tool.kind, tool.is_deferred) for tool in tools] == [
        ("tool_search", "typed", False),
        ("close", "function", False),
    ]
    assert tools[0].description == "Find."


def test_a_deferred_tool_waits_only_where_the_client_searches() -> None:
    deferred = {**FUNCTION, "defer_loading": True}
    assert [tool.is_deferred for tool in found(SEARCH, deferred)] == [False, True]
    assert [tool.is_deferred for tool in found({"type": "tool_search"}, deferred)] == [False, False]


def test_H059_a_later_declaration_replaces_the_earlier() -> None:
    newer = {**FUNCTION, "description": "new"}
    tools = found(FUNCTION, items=[{"type": "additional_tools", "tools": [newer]}])
    assert [tool.description for tool in tools] == ["new"]


def test_built_in_tools_are_typed_or_hosted() -> None:
    tools = found({"type": "web_search"}, {"type": "local_shell"}, {"type": "computer_use_preview"}, {"type": "mcp"})
    assert [(tool.name, tool.kind, tool.label) for tool in tools] == [
        ("web_search", "hosted", ""),
        ("local_shell", "typed", ""),
        ("computer_use_preview", "typed", "computer"),
        ("mcp", "hosted", ""),
    ]


def test_a_tool_by_type_stands_beside_a_function_of_its_name() -> None:
    tools = found({**FUNCTION, "name": "tool_search"}, SEARCH, {"type": "shell"}, {"type": "custom", "name": "shell"})
    assert [(tool.kind, tool.name) for tool in tools] == [
        ("function", "tool_search"),
        ("typed", "tool_search"),
        ("typed", "shell"),
        ("custom", "shell"),
    ]


def test_only_a_search_has_a_schema_of_the_clients() -> None:
    search, shell = found(SEARCH, {"type": "shell", "parameters": {"required": 5}})
    assert (search.schema, search.strict) == (SEARCH["parameters"], False)
    assert shell.schema is not None
    assert (shell.schema["required"], shell.strict) == (["commands"], True)


@pytest.mark.parametrize(
    ("tools", "where"),
    [
        ([5], "tools[0]"),
        ([{"type": "function"}], "tools[0].name"),
        ([{"type": "namespace", "name": "a"}], "tools[0].tools"),
        ([{"type": "namespace", "name": "a", "tools": [5]}], "tools[0].tools[0]"),
        ([space({"type": "custom"})], "tools[0].tools[0].name"),
        ([{"name": "a"}], "tools[0].type"),
    ],
)
def test_what_is_wrong_is_named_by_its_place(tools: list[Any], where: str) -> None:
    with pytest.raises(BadRequest) as caught:
        found(*tools)
    assert caught.value.where == where


@pytest.mark.parametrize("form", [None, 5, {"type": "text"}, {"definition": 5}, {"definition": " "}])
def test_a_format_without_a_grammar_is_none(form: Any) -> None:
    assert found({"type": "custom", "name": "a", "format": form})[0].grammar == ""


@pytest.mark.parametrize(
    ("value", "mode", "chosen"),
    [
        ("auto", "auto", ()),
        ({"type": "custom", "name": "edit"}, "named", ("edit",)),
        ({"type": "function", "name": "close", "namespace": "agents"}, "named", ("agents__close",)),
        ({"type": "apply_patch"}, "hosted", ("apply_patch",)),
        (
            {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "a"}, {"type": "mcp"}]},
            "allowed",
            ("a", "mcp"),
        ),
    ],
)
def test_choices(value: Any, mode: str, chosen: tuple[str, ...]) -> None:
    choice = choice_in(value)
    assert choice is not None
    assert (choice.mode, choice.names) == (mode, chosen)
