"""Flat schemas: merging and the order of branches."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire.backends.demo.flat_schema import Expander, Flat, merged
from toolwire.backends.demo.schema_check import Checker, TooCostly


def flats(schema: Any, steps: int = 1000) -> list[dict[str, Any]]:
    checker = Checker(schema, steps)
    return [flat.rules for flat in Expander(checker).expand(schema, Flat(checker, {}))]


def flat(rules: dict[str, Any]) -> Flat:
    return Flat(Checker(rules, 1000), rules)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ({"minimum": 1}, {"minimum": 3}, {"minimum": 3}),
        ({"maximum": 1}, {"maximum": 3}, {"maximum": 1}),
        ({"type": "number"}, {"type": ["integer", "null"]}, {"type": ["integer"]}),
        ({"type": "string"}, {"type": "null"}, None),
        ({"enum": [1, 2, 3]}, {"enum": [3.0, 2]}, {"enum": [2, 3]}),
        ({"enum": [1]}, {"enum": [2]}, None),
        ({"const": 1}, {"const": 1.0}, {"const": 1}),
        ({"const": 1}, {"const": True}, None),
        ({"required": ["a"]}, {"required": ["b", "a"]}, {"required": ["a", "b"]}),
        ({"multipleOf": 4}, {"multipleOf": 6}, {"multipleOf": 12}),
        ({"multipleOf": 0.5}, {"multipleOf": 0.2}, {"multipleOf": 1}),
        ({"properties": {"a": True}}, {"properties": {"b": False}}, {"properties": {"a": True, "b": False}}),
        (
            {"properties": {"a": {"minimum": 1}}},
            {"properties": {"a": {"maximum": 2}}},
            {"properties": {"a": {"allOf": [{"minimum": 1}, {"maximum": 2}]}}},
        ),
        ({"uniqueItems": False}, {"uniqueItems": True}, {"uniqueItems": True}),
        ({"title": "a"}, {"title": "b"}, {"title": "a"}),
    ],
)
def test_merging(first: Any, second: Any, expected: Any) -> None:
    assert merged(first, second) == expected


def test_all_of_and_references_become_one() -> None:
    schema = {"$defs": {"a": {"type": "integer"}}, "$ref": "#/$defs/a", "allOf": [{"minimum": 1}, {"maximum": 2}]}
    (rules,) = flats(schema)
    assert (rules["type"], rules["minimum"], rules["maximum"]) == ("integer", 1, 2)


def test_every_branch_is_offered_and_null_last() -> None:
    assert flats({"anyOf": [{"type": "null"}, {"const": 1}, {"const": 2}]}) == [
        {"const": 1},
        {"const": 2},
        {"type": "null"},
    ]
    assert flats({"type": "string", "oneOf": [{"type": "integer"}, {"minLength": 1}]}) == [
        {"type": "string", "minLength": 1}
    ]


def test_the_way_back_is_tried_last() -> None:
    checker = Checker({"anyOf": [{"$ref": "#"}, {"type": "null"}, {"const": 1}]}, 1000)
    inside = Flat(checker, {}, ("#",))
    assert [one.rules for one in Expander(checker).expand(checker.root, inside)][:2] == [{"const": 1}, {"type": "null"}]


def test_circles_and_nonsense_give_nothing() -> None:
    assert flats({"$ref": "#"}) == []
    assert flats(False) == []
    assert flats({"anyOf": "nonsense"}) == []
    with pytest.raises(TooCostly):
        flats({"allOf": [{"anyOf": [{}] * 50}] * 50})


def test_kinds_follow_the_type_or_the_other_rules() -> None:
    assert flat({"type": ["null", "string", "x", 5]}).kinds() == ["string", "null"]
    assert flat({"minItems": 1}).kinds()[0] == "array"
    assert flat({"required": []}).kinds()[0] == "object"
    assert flat({}).kinds()[0] == "string"


def test_properties_bring_others_along() -> None:
    rules = {
        "required": ["a"],
        "dependentRequired": {"a": ["b"], "b": ["c", "a"]},
        "properties": {"c": {}, "d": {"type": "null"}},
        "patternProperties": {"^x": {"type": "integer"}},
        "additionalProperties": False,
    }
    assert flat(rules).properties() == (["a", "b", "c"], ["d"])
    assert flat(rules).property("d") == {"type": "null"}
    assert flat(rules).property("x1") == {"type": "integer"}
    assert flat(rules).property("y") is False


def test_items_by_place() -> None:
    assert [flat({"prefixItems": [{"const": 1}], "items": False}).item(place) for place in (0, 1)] == [
        {"const": 1},
        False,
    ]
    old = flat({"items": [{"const": 1}], "additionalItems": {"const": 2}})
    assert [old.item(0), old.item(1)] == [{"const": 1}, {"const": 2}]
    assert flat({}).item(3) is True
