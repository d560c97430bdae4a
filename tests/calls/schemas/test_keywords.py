"""Where schemas stand."""

from __future__ import annotations

import pytest

from toolwire.calls.schemas.keywords import (
    children,
    declared,
    either,
    local,
    merge_schemas,
    pointer,
    schemas_at,
    target,
    types_of,
)


def test_a_property_with_the_name_of_a_keyword_is_a_name() -> None:
    schema = {"properties": {"items": {"type": "string"}, "anyOf": {"enum": [{"not": {}}]}}, "default": {"items": {}}}
    assert [path for path, _ in children(schema)] == [("properties", "items"), ("properties", "anyOf")]


def test_every_place_of_a_schema_is_found() -> None:
    schema = {
        "anyOf": [{"a": 1}, True, 5],
        "items": [{"b": 1}],
        "not": {"c": 1},
        "prefixItems": "no list",
        "properties": ["no map"],
        "$defs": {"d": {}},
        "additionalProperties": False,
    }
    assert [path for path, _ in children(schema)] == [
        ("anyOf", 0),
        ("anyOf", 1),
        ("items", 0),
        ("not",),
        ("$defs", "d"),
        ("additionalProperties",),
    ]


def test_references_are_followed_inside_only() -> None:
    root = {"$defs": {"a/b": [{"x": 1}], "c~d": 2}}
    assert target(root, "#") is root
    assert target(root, "#/$defs/a~1b/0/x") == 1
    assert target(root, "#/%24defs/c~0d") == 2
    for wrong in (
        "#/$defs/none",
        "#/$defs/a~1b/1",
        "#name",
        "http://127.0.0.1/x",
        "file:///etc/passwd",
        "#/$defs/a~1b/²",
    ):
        with pytest.raises(KeyError):
            target(root, wrong)


def test_paths_read_well() -> None:
    assert pointer(("properties", "a", "anyOf", 0)) == "properties.a.anyOf.0"
    assert pointer(()) == ""


SCHEMA = {
    "properties": {
        "list": {"type": "array", "prefixItems": [{"type": "null"}], "items": {"$ref": "#/$defs/r0"}},
        "any": {"anyOf": [{"type": "object", "properties": {"x": {}}}, {"$ref": "#/$defs/r0"}]},
    },
    "additionalProperties": {"type": "boolean"},
    "$defs": {"r0": {"type": "object", "properties": {"y": {"$ref": "#"}}}},
}


def test_paths_go_through_lists_references_and_unions() -> None:
    assert [types_of(found) for found in schemas_at(SCHEMA, ("list", 0))] == [{"null"}]
    assert declared(SCHEMA, ("list", 5)) == {"y"}
    assert declared(SCHEMA, ("any",)) == {"x", "y"}
    assert declared(SCHEMA, ("list", 1, "y")) == {"list", "any"}
    assert [types_of(found) for found in schemas_at(SCHEMA, ("other",))] == [{"boolean"}]
    assert schemas_at(SCHEMA, ("list", 1, "z")) == []


def test_circles_end() -> None:
    schema = {"$ref": "#/$defs/r0", "$defs": {"r0": {"anyOf": [{"$ref": "#"}, {"$ref": "#/$defs/r0"}]}}}
    assert len(schemas_at(schema, ())) < 6


A = {"properties": {"a": {"type": "string"}, "kind": {"const": "a"}}, "required": ["kind", "a"]}
B = {"properties": {"b": {"type": "string"}, "kind": {"const": "b"}}, "required": ["kind"]}


def test_variants_unite_their_properties_and_require_what_all_require() -> None:
    found = merge_schemas({"description": "d", "required": ["x"]}, [A, B], "some")
    assert found["properties"] == {"a": {"type": "string"}, "kind": {"enum": ["a", "b"]}, "b": {"type": "string"}}
    assert found["required"] == ["x", "kind"]
    assert merge_schemas({}, [A, B], "all")["required"] == ["kind", "a"]
    assert "additionalProperties" not in found


def test_closed_variants_make_a_closed_object() -> None:
    closed = [{**A, "additionalProperties": False}, {**B, "additionalProperties": False}]
    assert merge_schemas({}, closed, "some")["additionalProperties"] is False
    assert "additionalProperties" not in merge_schemas({}, closed, "all")


def test_either() -> None:
    assert either({"type": "string"}, {"type": "string"}) == {"type": "string"}
    union = either({"type": "string"}, {"type": "null"})
    assert union == {"anyOf": [{"type": "string"}, {"type": "null"}]}
    assert either(union, {"type": "null"}) == union
    assert either({"enum": [1]}, {"const": 2}) == {"enum": [1, 2]}


def test_local_keeps_the_words_beside_a_reference_and_ends_in_circles() -> None:
    root = {"$defs": {"a": {"$ref": "#/$defs/b", "title": "a"}, "b": {"type": "string"}, "c": {"$ref": "#/$defs/c"}}}
    assert local({"$ref": "#/$defs/a", "description": "d"}, root) == {
        "type": "string",
        "title": "a",
        "description": "d",
    }
    assert local({"$ref": "#/$defs/c"}, root) == {"$ref": "#/$defs/c"}
    assert local({"$ref": "http://127.0.0.1:9/x"}, root) == {"$ref": "http://127.0.0.1:9/x"}
