"""What a schema says about a place before the value there is complete."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from toolwire.calls.schemas import Schemas
from toolwire.calls.schemas.shape import ValueShape

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "free": {"type": "string"},
        "optional": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "any": {},
        "unit": {"enum": ["c", "f", 1]},
        "kind": {"const": "x"},
        "day": {"type": "string", "format": "date"},
        "short": {"type": "string", "maxLength": 5},
        "long": {"type": "string", "minLength": 2},
        "count": {"type": "integer"},
        "body": {"type": ["string", "object"]},
        "tree": {"$ref": "#/$defs/tree"},
        "pair": {"type": "array", "prefixItems": [{"type": "integer"}], "items": {"type": "string"}},
        "none": {"type": "object", "additionalProperties": False},
        "map": {"type": "object", "additionalProperties": {"type": "boolean"}},
    },
    "$defs": {
        "tree": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "inner": {"$ref": "#/$defs/tree"}},
            "required": ["name"],
        }
    },
}


def shape(*path: str | int) -> ValueShape:
    checker = Schemas().of(SCHEMA).checker
    assert checker is not None
    found = checker.shape
    for step in path:
        found = found.member(step)
    return found


def test_strings_that_can_be_sent_while_they_grow() -> None:
    names = [name for name in SCHEMA["properties"] if shape(name).is_free_text]
    assert names == ["free", "optional", "any", "day", "long", "body"]
    assert shape("body").is_text_union
    assert (shape("free").least_length, shape("long").least_length) == (0, 24)


@pytest.mark.parametrize(
    ("name", "fitting", "unfitting"),
    [
        ("count", [1, -5], [Decimal("1.0"), "1", True, None]),
        ("unit", ["c", 1], ["C", True, "1", None]),
        ("kind", ["x"], ["y", 1]),
        ("optional", ["", None], [1, False]),
        ("any", ["", None, 1, True, Decimal("1.5")], []),
    ],
)
def test_complete_values(name: str, fitting: list[Any], unfitting: list[Any]) -> None:
    assert [value for value in fitting if not shape(name).takes_value(value)] == []
    assert [value for value in unfitting if shape(name).takes_value(value)] == []


def test_a_place_with_fixed_values_takes_only_their_types() -> None:
    assert shape("unit").takes("string")
    assert not shape("unit").takes("array")
    assert not shape("kind").takes("object")


def test_names_of_members() -> None:
    assert shape().takes_name("free")
    assert not shape().takes_name("Free")
    assert shape("map").takes_name("anything")
    assert not shape("none").takes_name("anything")
    assert shape("any").takes_name("anything")


def test_members_of_references_lists_and_maps() -> None:
    assert shape("tree", "inner", "inner", "name").is_free_text
    assert shape("pair", 0).types == {"integer"}
    assert shape("pair", 7).types == {"string"}
    assert shape("map", "x").types == {"boolean"}
