"""Schemas that constrain a whole answer accept exactly what they should, with the schemas of the tools inside."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from toolwire.calls.schemas.output import answer_schema, arguments_schema, call_schema, calls_schema
from toolwire.types import Tool

CITY = Tool(
    name="city", schema={"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"], "$id": "x"}
)
NOW = Tool(name="now")
TREE = Tool(
    name="tree",
    schema={
        "type": "object",
        "properties": {"root": {"$ref": "#/$defs/node"}, "again": {"$ref": "#"}},
        "required": ["root"],
        "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}},
    },
)


def accepts(schema: Any, value: Any) -> bool:
    return bool(jsonschema_rs.Draft202012Validator(schema).is_valid(value))


def test_the_arguments_of_one_tool_are_its_schema() -> None:
    assert accepts(call_schema([CITY]), {"name": "Oslo"})
    assert not accepts(call_schema([CITY]), {})
    assert call_schema([NOW]) == {"type": "object", "properties": {}}


def test_a_call_of_one_of_several_tools_has_a_name() -> None:
    schema = call_schema([CITY, TREE])
    assert accepts(schema, {"name": "city", "arguments": {"name": "Oslo"}})
    assert not accepts(schema, {"name": "tree", "arguments": {"name": "Oslo"}})
    assert not accepts(schema, {"name": "other", "arguments": {"name": "Oslo"}})


def test_references_point_into_the_schema_of_their_own_tool() -> None:
    schema = call_schema([CITY, TREE])
    assert accepts(schema, {"name": "tree", "arguments": {"root": {"next": {"next": {}}}}})
    assert not accepts(schema, {"name": "tree", "arguments": {"root": {"next": 1}}})
    assert not accepts(schema, {"name": "tree", "arguments": {"root": {}, "again": {}}})


def test_several_calls_are_members_of_one_object() -> None:
    schema = calls_schema({"call_1": [CITY], "call_2": [CITY, NOW]})
    assert accepts(schema, {"call_1": {"name": "Oslo"}, "call_2": {"name": "now", "arguments": {}}})
    assert not accepts(schema, {"call_1": {"name": "Oslo"}})


def test_an_answer_is_text_or_calls_or_text_with_calls() -> None:
    schema, called = (
        answer_schema([CITY], must_call=False, is_single=False),
        {"name": "city", "arguments": {"name": "O"}},
    )
    for right in ({"text": "hi"}, {"calls": [called, called]}, {"text": "hi", "calls": [called]}):
        assert accepts(schema, right)
    for wrong in ({}, {"calls": []}, {"text": 1}, {"text": "", "more": 1}, {"calls": [{"name": "city"}]}):
        assert not accepts(schema, wrong)


@pytest.mark.parametrize("is_single", [True, False])
def test_a_forced_call_leaves_no_text_and_a_single_one_no_second(*, is_single: bool) -> None:
    schema, called = answer_schema([CITY, NOW], must_call=True, is_single=is_single), {"name": "now", "arguments": {}}
    assert accepts(schema, {"calls": [called]})
    assert accepts(schema, {"calls": [called, called]}) is not is_single
    assert not accepts(schema, {"text": "hi"})


@pytest.mark.parametrize(
    ("pattern", "stays"), [("^[a-z]+$", True), ("[a-z]+", False), ("^(?=a)b$", False), (r"^\bword$", False)]
)
def test_only_patterns_that_every_grammar_knows_stay(pattern: str, *, stays: bool) -> None:
    tool = Tool(name="t", schema={"type": "object", "properties": {"pattern": {"type": "string", "pattern": pattern}}})
    assert ("pattern" in arguments_schema(tool)["properties"]["pattern"]) is stays
