"""Tools wherever a Responses request declares them."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire.dialects.responses.tools_in import choice_in, tools_in, without_chat_shapes
from toolwire.errors import BadRequest
from toolwire.types import Tool

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
