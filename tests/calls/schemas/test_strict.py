"""Schemas that a model is held to, and the way back."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire.calls.schemas import Schemas, clean_schema, without_added_nulls
from toolwire.profiles import STRICT_SCHEMAS

SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "minLength": 1, "format": "uri"},
        "mode": {"type": "string", "enum": ["r", "w"], "default": "r"},
        "size": {"type": ["integer", "null"]},
        "edits": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"a": {"type": "string"}, "b": {"$ref": "#/$defs/b"}},
                "required": ["a"],
            },
        },
        "kind": {"oneOf": [{"const": 1}, {"type": "string"}]},
    },
    "required": ["path"],
    "$defs": {"b": {"type": "object", "properties": {"c": {"type": "integer"}}}},
}


def objects(schema: Any) -> list[dict[str, Any]]:
    inner = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    found = [item for value in inner for item in objects(value)]
    return [*found, schema] if isinstance(schema, dict) and "properties" in schema else found


def test_H065_everything_is_required_and_optional_means_null() -> None:
    found = clean_schema(SCHEMA, STRICT_SCHEMAS)
    assert found.is_strict
    assert found.schema is not None
    for item in objects(found.schema):
        assert item["additionalProperties"] is False
        assert item["required"] == list(item["properties"])
    properties = found.schema["properties"]
    assert properties["path"] == {"type": "string"}
    assert properties["mode"] == {"type": ["string", "null"], "enum": ["r", "w", None]}
    assert properties["size"] == {"type": ["integer", "null"]}
    assert properties["edits"]["type"] == ["array", "null"]
    assert properties["edits"]["items"]["properties"]["b"] == {"anyOf": [{"$ref": "#/$defs/b"}, {"type": "null"}]}
    assert properties["kind"] == {"anyOf": [{"anyOf": [{"const": 1}, {"type": "string"}]}, {"type": "null"}]}
    assert ("properties.mode", "it may be null instead of left out") in found.changes
    assert ("properties.path.format", "it was left out") in found.changes


@pytest.mark.parametrize(
    "free",
    [
        {"type": "object"},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": True},
        {"type": "array", "items": True},
    ],
)
def test_H065_free_names_have_no_strict_form_and_the_schema_stays(free: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"a": free}}
    found = clean_schema(schema, STRICT_SCHEMAS)
    assert not found.is_strict
    assert found.changes[-1].where.startswith("properties.a")
    assert "cannot be strict" in found.changes[-1].what
    assert found.schema is not None
    assert "required" not in found.schema


def test_H065_added_nulls_are_taken_away_and_no_others() -> None:
    checker = Schemas().of(SCHEMA).checker
    assert checker is not None
    given = {"path": "p", "mode": None, "size": None, "edits": [{"a": "x", "b": None}, {"a": "y", "b": {"c": None}}]}
    assert without_added_nulls(given, checker.schema) == {
        "path": "p",
        "size": None,
        "edits": [{"a": "x"}, {"a": "y", "b": {}}],
    }
    assert given["mode"] is None
    whole = {"path": "p", "edits": [{"a": "x"}]}
    assert without_added_nulls(whole, checker.schema) is whole
    assert without_added_nulls({"path": None, "new": None}, checker.schema) == {"path": None, "new": None}
