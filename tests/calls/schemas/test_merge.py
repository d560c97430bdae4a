"""Several schemas made one."""

from __future__ import annotations

import pytest

from toolwire.calls.schemas.merge import either, local, merged

pytestmark = pytest.mark.slow

A = {"properties": {"a": {"type": "string"}, "kind": {"const": "a"}}, "required": ["kind", "a"]}
B = {"properties": {"b": {"type": "string"}, "kind": {"const": "b"}}, "required": ["kind"]}


def test_variants_unite_their_properties_and_require_what_all_require() -> None:
    found = merged({"description": "d", "required": ["x"]}, [A, B], "some")
    assert found["properties"] == {"a": {"type": "string"}, "kind": {"enum": ["a", "b"]}, "b": {"type": "string"}}
    assert found["required"] == ["x", "kind"]
    assert merged({}, [A, B], "all")["required"] == ["kind", "a"]
    assert "additionalProperties" not in found


def test_closed_variants_make_a_closed_object() -> None:
    closed = [{**A, "additionalProperties": False}, {**B, "additionalProperties": False}]
    assert merged({}, closed, "some")["additionalProperties"] is False
    assert "additionalProperties" not in merged({}, closed, "all")


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
