"""Where schemas stand."""

from __future__ import annotations

import pytest

from toolwire.calls.schemas.keywords import children, pointer, target

pytestmark = pytest.mark.slow


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
