"""Schemas that constrain a whole answer accept exactly what they should, with the schemas of the tools inside."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from toolwire.calls.schemas.output import MOST_CALLS, answer_schema, arguments_schema, call_schema, calls_schema
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


def test_the_number_of_calls_is_bounded() -> None:
    schema, called = answer_schema([NOW], must_call=True, is_single=False), {"name": "now", "arguments": {}}
    assert accepts(schema, {"calls": [called] * MOST_CALLS})
    assert not accepts(schema, {"calls": [called] * (MOST_CALLS + 1)})


def test_output_that_the_client_asked_for_takes_the_place_of_text() -> None:
    tree = {
        "$ref": "#/$defs/node",
        "$defs": {"node": {"type": "object", "properties": {"n": {"$ref": "#/$defs/node"}}}},
    }
    schema = answer_schema([TREE], must_call=False, is_single=True, output=tree)
    assert accepts(schema, {"json": {"n": {"n": {}}}})
    assert accepts(schema, {"calls": [{"name": "tree", "arguments": {"root": {}}}]})
    for wrong in ({"json": {"n": 1}}, {"text": "hi"}, {"json": {}, "calls": []}):
        assert not accepts(schema, wrong)


@pytest.mark.parametrize(("bound", "stays"), [(100, True), (100_000, False)])
def test_large_bounds_that_a_grammar_would_unroll_are_dropped(bound: int, *, stays: bool) -> None:
    member = {"type": "string", "maxLength": bound, "minLength": 1}
    tool = Tool(name="t", schema={"type": "object", "properties": {"maxLength": member}})
    assert arguments_schema(tool)["properties"]["maxLength"] == (
        member if stays else {"type": "string", "minLength": 1}
    )


@pytest.mark.parametrize(
    ("pattern", "written"),
    [("^[a-z]+$", "^[a-z]+$"), (r"^\d$", "^[0-9]$"), ("^(?=a)b$", None), (r"^\bword$", None)],
)
def test_patterns_are_written_for_grammars_or_dropped(pattern: str, written: str | None) -> None:
    tool = Tool(name="t", schema={"type": "object", "properties": {"pattern": {"type": "string", "pattern": pattern}}})
    assert arguments_schema(tool)["properties"]["pattern"].get("pattern") == written


def test_what_one_grammar_converter_cannot_read_is_written_in_another_form() -> None:
    members = {
        "a": True,
        "items": {"type": "array", "items": True},
        "more": {"type": "object", "additionalProperties": True},
    }
    either: Any = [{"required": ["a"]}, {"required": ["items"]}]
    tool = Tool(name="t", schema={"type": "object", "properties": members, "oneOf": either})
    assert arguments_schema(tool) == {
        "type": "object",
        "properties": {**members, "a": {}, "items": {"type": "array", "items": {}}},
    }
    alone = Tool(name="t", schema={"oneOf": [{"type": "object", "properties": {"oneOf": {"oneOf": either}}}]})
    assert arguments_schema(alone) == alone.schema
