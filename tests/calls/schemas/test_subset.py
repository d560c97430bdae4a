"""The subset that Gemini's functions take."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire.calls.schemas import clean_schema
from toolwire.calls.schemas.keywords import children
from toolwire.profiles import GEMINI_SCHEMAS

ALLOWED = {
    "type",
    "format",
    "title",
    "description",
    "nullable",
    "enum",
    "items",
    "minItems",
    "maxItems",
    "properties",
    "required",
    "minProperties",
    "maxProperties",
    "minLength",
    "maxLength",
    "pattern",
    "minimum",
    "maximum",
    "anyOf",
}
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "default": {"type": "string", "default": "x", "const": "k"},
        "count": {"type": ["integer", "null"], "exclusiveMinimum": 0, "format": "int64"},
        "when": {"type": "string", "format": "date-time"},
        "where": {"type": "string", "format": "uri"},
        "level": {"type": "integer", "enum": [1, 2], "description": "How much."},
        "either": {"oneOf": [{"type": "string"}, {"type": "number"}, {"type": "null"}]},
        "grid": {
            "type": "array",
            "items": {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "string"}]},
        },
        "free": {"type": "object", "description": "Headers.", "additionalProperties": {"type": "string"}},
        "node": {"$ref": "#/$defs/node"},
        "both": {"allOf": [{"type": "string"}, {"minLength": 2}]},
        "many": {"type": "array"},
        "what": {},
    },
    "required": ["default", "gone"],
    "$defs": {
        "node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}, "patternProperties": {"x": {}}}
    },
}


ANY = "Any JSON value, written as text."


def every(schema: dict[str, Any]) -> list[dict[str, Any]]:
    return [schema, *(inner for _, item in children(schema) for inner in every(item))]


def test_H060_only_known_keywords_are_written_and_names_are_left_alone() -> None:
    found = clean_schema(SCHEMA, GEMINI_SCHEMAS).schema
    assert found is not None
    for schema in every(found):
        assert set(schema) <= ALLOWED
        assert isinstance(schema.get("type", ""), str)
        assert "type" in schema or "anyOf" in schema
    assert list(found["properties"]) == list(SCHEMA["properties"])
    assert found["properties"]["default"] == {"type": "string", "enum": ["k"]}
    assert found["required"] == ["default"]


def test_H061_types_become_one_with_nullable_and_references_are_written_out() -> None:
    found = clean_schema(SCHEMA, GEMINI_SCHEMAS)
    assert found.schema is not None
    properties = found.schema["properties"]
    assert properties["count"] == {"nullable": True, "type": "integer", "minimum": 1, "format": "int64"}
    assert properties["either"] == {"nullable": True, "anyOf": [{"type": "string"}, {"type": "number"}]}
    assert properties["both"] == {"type": "string", "minLength": 2}
    assert properties["level"] == {"type": "string", "enum": ["1", "2"], "description": "How much."}
    assert "format" not in properties["where"]
    assert properties["when"]["format"] == "date-time"
    assert ("properties.count.exclusiveMinimum", "it became minimum") in found.changes


def test_H062_no_union_directly_inside_a_list() -> None:
    found = clean_schema(SCHEMA, GEMINI_SCHEMAS).schema
    assert found is not None
    assert found["properties"]["grid"]["items"] == {"type": "array", "items": {"type": "integer"}}


@pytest.mark.parametrize("schema", [None, {}, {"type": "object"}, {"type": "object", "properties": {}}])
def test_H067_a_tool_without_arguments_has_no_schema(schema: dict[str, Any] | None) -> None:
    assert clean_schema(schema, GEMINI_SCHEMAS).schema is None


def test_H067_an_object_without_names_inside_becomes_text() -> None:
    found = clean_schema(SCHEMA, GEMINI_SCHEMAS).schema
    assert found is not None
    schema = '{"type":"object","additionalProperties":{"type":"string"}}'
    words = f"Headers. A JSON object, written as text, by this JSON Schema: {schema}."
    assert found["properties"]["free"] == {"type": "string", "description": words}
    assert found["properties"]["many"]["items"] == {"type": "string", "description": "Any JSON value, written as text."}


def test_H069_H070_a_circle_ends_in_an_open_node_and_is_named() -> None:
    found = clean_schema(SCHEMA, GEMINI_SCHEMAS)
    assert found.schema is not None
    node = found.schema["properties"]["node"]
    assert node["properties"]["next"]["type"] == "string"
    assert any(
        change.where == "properties.node.properties.next" and "circle" in change.what for change in found.changes
    )


def test_what_is_written_as_text_is_known_by_its_place() -> None:
    texts = clean_schema(SCHEMA, GEMINI_SCHEMAS).texts
    assert texts.objects == {("free",)}
    assert texts.anything == {("node", "next"), ("many", None), ("what",), ("level",)}
    assert not texts.is_whole


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"const": True}, {"type": "string", "enum": ["true"]}),
        ({"type": "boolean", "enum": [True]}, {"type": "string", "enum": ["true"]}),
        ({"enum": [1, 2.5, None]}, {"nullable": True, "type": "string", "enum": ["1", "2.5"]}),
        ({"enum": ["a", None]}, {"nullable": True, "type": "string", "enum": ["a"]}),
        ({"enum": ["", "a"], "type": "string"}, {"type": "string", "enum": ['""', '"a"']}),
        ({"anyOf": [{"type": "null"}]}, {"nullable": True, "type": "string", "description": ANY}),
        ({"type": "null"}, {"nullable": True, "type": "string", "description": ANY}),
        ({"enum": [1, "a"]}, {"type": "string", "enum": ["1", '"a"']}),
        ({"type": "number", "exclusiveMinimum": 0}, {"type": "number", "minimum": 0, "description": "Greater than 0."}),
        ({"type": "integer", "exclusiveMaximum": 9}, {"type": "integer", "maximum": 8}),
        ({"type": "integer", "multipleOf": 5}, {"type": "integer", "description": "A multiple of 5."}),
        ({"pattern": "^a"}, {"type": "string", "pattern": "^a"}),
    ],
)
def test_values_are_spelled_as_json(schema: dict[str, Any], expected: dict[str, Any]) -> None:
    found = clean_schema({"type": "object", "properties": {"a": schema}}, GEMINI_SCHEMAS).schema
    assert found is not None
    assert found["properties"]["a"] == expected


def test_a_list_with_a_schema_for_each_place_becomes_text() -> None:
    pair = {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]}
    found = clean_schema({"type": "object", "properties": {"pair": pair}}, GEMINI_SCHEMAS)
    assert found.schema is not None
    assert found.schema["properties"]["pair"]["type"] == "string"
    assert "A JSON array, written as text, by this JSON Schema: " in found.schema["properties"]["pair"]["description"]
    assert found.texts.objects == {("pair",)}
    same = {"type": "array", "prefixItems": [{"type": "string"}, {"type": "string"}]}
    found = clean_schema({"type": "object", "properties": {"pair": same}}, GEMINI_SCHEMAS)
    assert found.schema is not None
    assert found.schema["properties"]["pair"] == {"type": "array", "items": {"type": "string"}}


@pytest.mark.parametrize(
    "rest", [{"additionalProperties": True}, {"patternProperties": {"^x": {}}}, {"required": ["a"]}]
)
def test_arguments_without_names_are_one_text(rest: dict[str, Any]) -> None:
    found = clean_schema({"type": "object", **rest}, GEMINI_SCHEMAS)
    assert found.schema is not None
    assert list(found.schema["properties"]) == found.schema["required"] == ["arguments"]
    assert found.texts.is_whole
