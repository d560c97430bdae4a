"""Gemini: tools in."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire.dialects.gemini.tools_in import choice_in, schema_of, tools_in
from toolwire.errors import BadRequest

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}


def one(declared: Any) -> Any:
    (tool,) = tools_in({"tools": [{"functionDeclarations": [declared]}]})
    return tool


def test_functions_by_json_schema() -> None:
    tool = one({"name": "weather", "description": "d", "parametersJsonSchema": SCHEMA, "behavior": "BLOCKING"})
    assert (tool.name, tool.description, tool.schema, tool.kind) == ("weather", "d", SCHEMA, "function")
    assert tool.extra == {"gemini": {"behavior": "BLOCKING"}}


def test_a_schema_of_the_older_form_is_read_as_json_schema() -> None:
    own = {
        "type": "OBJECT",
        "properties": {
            "property_ordering": {"type": "STRING", "nullable": True, "enum": ["a"]},
            "list": {"type": "ARRAY", "items": {"type": "INTEGER"}, "min_items": "2", "maxItems": 3},
            "any": {"any_of": [{"type": "NUMBER"}, {"type": "BOOLEAN"}], "nullable": True, "example": 1},
        },
        "required": ["list"],
        "propertyOrdering": ["list"],
    }
    assert one({"name": "f", "parameters": own}).schema == {
        "type": "object",
        "properties": {
            "property_ordering": {"type": ["string", "null"], "enum": ["a", None]},
            "list": {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 3},
            "any": {"anyOf": [{"anyOf": [{"type": "number"}, {"type": "boolean"}], "examples": [1]}, {"type": "null"}]},
        },
        "required": ["list"],
    }


def test_a_schema_nobody_can_read_is_refused() -> None:
    deep: Any = {"type": "OBJECT"}
    for _ in range(5000):
        deep = {"type": "ARRAY", "items": deep}
    with pytest.raises(BadRequest, match="nests too deep"):
        schema_of(deep, "x")


def test_without_parameters_a_function_takes_nothing() -> None:
    assert one({"name": "now"}).schema == {"type": "object", "properties": {}}


def test_tools_of_the_provider_and_functions_in_one_entry_and_either_spelling() -> None:
    found = tools_in(
        {"tools": [{"function_declarations": [{"name": "f"}], "google_search": {}}, {"codeExecution": {}}]}
    )
    assert [(tool.name, tool.kind) for tool in found] == [
        ("f", "function"), ("googleSearch", "hosted"), ("codeExecution", "hosted"),
    ]  # fmt: skip
    assert found[1].source is not None
    assert found[1].source.value == {"googleSearch": {}}
    assert tools_in({"tools": {"functionDeclarations": [{"name": "f"}]}})[0].name == "f"
    assert tools_in({}) == ()


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"mode": "AUTO"}, ("auto", (), False)),
        ({}, ("auto", (), False)),
        ({"mode": "none"}, ("none", (), False)),
        ({"mode": "ANY"}, ("required", (), False)),
        ({"mode": "ANY", "allowedFunctionNames": ["f"]}, ("named", ("f",), False)),
        ({"mode": "ANY", "allowed_function_names": ["f", "g"]}, ("allowed", ("f", "g"), True)),
        ({"mode": "VALIDATED"}, ("auto", (), False)),
        ({"mode": "VALIDATED", "allowedFunctionNames": ["f"]}, ("allowed", ("f",), False)),
    ],
)
def test_the_choice_among_them(config: Any, expected: Any) -> None:
    choice = choice_in({"functionCallingConfig": config})
    assert choice is not None
    assert (choice.mode, choice.names, choice.is_required) == expected


def test_no_choice() -> None:
    assert choice_in(None) is None
    assert choice_in({"retrievalConfig": {}}) is None


@pytest.mark.parametrize(
    ("top", "where"),
    [
        ({"tools": 1}, "tools"),
        ({"tools": [1]}, "tools[0]"),
        ({"tools": [{"functionDeclarations": [{}]}]}, "tools[0].functionDeclarations[0].name"),
        ({"tools": [{"functionDeclarations": [{"name": "f", "parameters": []}]}]}, "tools[0].functionDeclarations[0]"),
    ],
)
def test_mistakes_are_named_by_their_place(top: Any, where: str) -> None:
    with pytest.raises(BadRequest) as caught:
        tools_in(top)
    assert caught.value.where.startswith(where)


@pytest.mark.parametrize("config", [{"mode": "MAYBE"}, {"mode": "ANY", "allowedFunctionNames": [1]}, {"mode": 1}])
def test_a_choice_that_is_none_is_refused(config: Any) -> None:
    with pytest.raises(BadRequest):
        choice_in({"functionCallingConfig": config})
