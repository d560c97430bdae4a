"""Shorter definitions that accept the same values."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.mcp_tools import recorded_tools
from tests.thorough import examples
from toolwire.calls.schemas.diet import shorten, shorten_schema
from toolwire.calls.search.selection import token_total
from toolwire.types import Source, Tool

LONG = "A sentence about it. " * 40
NAMES = st.sampled_from(["a", "b", "title", "examples", "description", "$comment"])
VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 5) | st.sampled_from(["", "a", "abc"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
ANNOTATIONS = st.fixed_dictionaries(
    {},
    optional={
        "title": st.just("T"),
        "description": st.sampled_from(["short", LONG]),
        "examples": st.just([1]),
        "$comment": st.just("c"),
    },
)


def _combined(inner: Any) -> Any:
    rules = st.one_of(
        st.fixed_dictionaries({"type": st.just("object"), "properties": st.dictionaries(NAMES, inner, max_size=3)}),
        st.fixed_dictionaries({"required": st.lists(NAMES, max_size=2, unique=True)}),
        st.fixed_dictionaries({"additionalProperties": inner}),
        st.fixed_dictionaries({"items": inner}),
        st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"allOf": st.lists(inner, min_size=1, max_size=2)}),
        st.fixed_dictionaries({"not": inner}),
    )
    return st.builds(lambda rule, notes: {**rule, **notes}, rules, ANNOTATIONS)


SCHEMAS: Any = st.recursive(
    st.one_of(
        st.booleans(),
        st.builds(
            lambda kind, notes: {"type": kind, **notes}, st.sampled_from(["string", "integer", "null"]), ANNOTATIONS
        ),
        st.builds(lambda value: {"const": value}, VALUES),
        st.builds(lambda value: {"enum": [value, {"title": "x", "examples": 1}]}, VALUES),
    ),
    _combined,
    max_leaves=8,
)


def accepts(schema: Any, value: Any) -> bool:
    return bool(jsonschema.Draft202012Validator(schema).is_valid(value))


@examples(200)
@given(inner=SCHEMAS, value=VALUES)
def test_what_validates_never_changes(inner: Any, value: Any) -> None:
    big = {"type": "object", "properties": {"a": inner}, "description": LONG[:100], "required": ["a"]}
    schema = {"anyOf": [big, {"properties": {"b": big}, "required": ["b"]}, inner if isinstance(inner, dict) else {}]}
    shorter = shorten_schema(schema)
    for one in (value, {"a": value}, {"b": {"a": value}}, {"b": {"b": value}}):
        assert accepts(schema, one) == accepts(shorter, one)


def test_annotations_are_dropped_and_values_are_not() -> None:
    schema = {
        "title": "T",
        "properties": {"title": {"type": "string", "title": "T", "examples": ["x"], "default": {"title": "kept"}}},
        "enum": [{"title": "kept"}],
    }
    assert shorten_schema(schema) == {
        "properties": {"title": {"type": "string", "default": {"title": "kept"}}},
        "enum": [{"title": "kept"}],
    }


def test_descriptions_end_with_a_sentence_or_a_word() -> None:
    about = shorten(Tool(name="t", description=LONG)).description
    assert about is not None
    assert about.endswith("it.")
    assert len(about) <= 300
    assert shorten(Tool(name="t", description="word " * 100)).description == ("word " * 59).strip() + " ..."


def test_equal_subschemas_are_shared() -> None:
    inner = {"type": "object", "properties": {name: {"type": "string", "description": "d" * 30} for name in "xyz"}}
    shorter = shorten_schema({"properties": {"a": inner, "b": inner}, "$defs": {"own": {}}})
    assert shorter["properties"] == {"a": {"$ref": "#/$defs/shared_1"}, "b": {"$ref": "#/$defs/shared_1"}}
    assert shorter["$defs"] == {"own": {}, "shared_1": inner}


@pytest.mark.parametrize("own", [{"$id": "x"}, {"$ref": "#/properties/a"}, {"$anchor": "x"}])
def test_references_that_could_break_prevent_sharing(own: Any) -> None:
    inner = {"type": "object", "properties": {name: {"type": "string", "pattern": "d" * 30} for name in "xyz"}}
    schema = {"properties": {"a": inner, "b": inner, "c": own}}
    assert shorten_schema(schema) == schema


def test_other_tools_and_short_ones_stay_the_same_object() -> None:
    for tool in (Tool(name="t", kind="custom", description=LONG), Tool(name="t", description="d", schema={})):
        assert shorten(tool) is tool
    assert shorten(Tool(name="t", description=LONG, source=Source("chat", {}))).source is None


def test_a_deep_schema_is_left_alone() -> None:
    deep: dict[str, Any] = {"title": "T"}
    for _ in range(100):
        deep = {"items": deep}
    assert shorten_schema(deep) is deep


def test_the_recorded_tools_get_shorter() -> None:
    """Their texts are cut in the recording already; the whole definitions lose more."""
    tools = recorded_tools()
    shorter = tuple(map(shorten, tools))
    assert token_total(shorter) < token_total(tools)
    for tool in shorter:
        jsonschema.Draft202012Validator.check_schema(json.loads(json.dumps(tool.schema)))
