"""The checker: what it accepts, the referee accepts; it stays inside its schema and its steps."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.backends.schema_family import VALUES, is_valid, schemas
from toolwire.backends.demo.schema_check import Checker, TooCostly, canonical, exact, types_of

pytestmark = pytest.mark.slow

values = st.recursive(
    st.one_of(VALUES, st.floats(-100, 100), st.sampled_from(["2025-01-01", "red", "AAA", "a@b.cc", "::1"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["city", "a"]), inner, max_size=2)
    ),
    max_leaves=5,
)


def accepts(schema: Any, value: Any) -> bool:
    return Checker(schema, 10_000).accepts(schema, value)


@settings(max_examples=400, deadline=None)
@given(schemas, values)
def test_what_it_accepts_the_referee_accepts(schema: Any, value: Any) -> None:
    if accepts(schema, value):
        assert is_valid(schema, value)
    elif "format" not in json.dumps(schema):
        assert not is_valid(schema, value)


CASES: list[tuple[Any, Any]] = [
    ({"oneOf": [{"minimum": 1}, {"minimum": 5}]}, 7),
    ({"not": {"const": 1.0}}, 1),
    ({"if": {"const": 1}, "then": False}, 1),
    ({"if": {"const": 1}, "else": {"const": 2}}, 3),
    ({"uniqueItems": True}, [1, 1.0]),
    ({"contains": {"const": 1}, "maxContains": 1}, [1, 1]),
    ({"contains": {"const": 1}, "minContains": 2}, [1]),
    ({"prefixItems": [True], "items": False}, [1, 2]),
    ({"patternProperties": {"^a": {"type": "null"}}}, {"ab": 1}),
    ({"additionalProperties": False, "patternProperties": {"^a": True}}, {"b": 1}),
    ({"propertyNames": {"maxLength": 1}}, {"ab": 1}),
    ({"dependentRequired": {"a": ["b"]}}, {"a": 1}),
    ({"dependentSchemas": {"a": {"required": ["b"]}}}, {"a": 1}),
    ({"format": "date"}, "2025-02-30"),
    ({"format": "ipv4"}, "256.1.1.1"),
    ({"multipleOf": 0.1}, 0.35),
    ({"type": "integer"}, True),
    ({"enum": [1]}, True),
    ({"$defs": {"a": {"type": "null"}}, "$ref": "#/$defs/a"}, 1),
]


@pytest.mark.parametrize(("schema", "value"), CASES, ids=lambda case: json.dumps(case)[:40])
def test_each_keyword_can_refuse(schema: Any, value: Any) -> None:
    assert not is_valid(schema, value)
    assert not accepts(schema, value)


def test_one_and_a_half_truths() -> None:
    assert canonical({"b": 1, "a": [1.0]}) == canonical({"a": [1], "b": 1.0})
    assert canonical(1) != canonical(True)
    assert types_of(2.0) == ("integer", "number")
    assert exact(0.1) * 10 == 1


def test_references_stay_inside() -> None:
    checker = Checker({"$defs": {"a/b": {"type": "null"}, "x y": True}, "list": [{}, {"const": 1}]}, 100)
    assert checker.resolve("#/$defs/a~1b") == {"type": "null"}
    assert checker.resolve("#/$defs/x%20y") is True
    assert checker.resolve("#/list/1") == {"const": 1}
    for reference in (
        "http://127.0.0.1/",
        "file:///etc/hostname",
        "other.json",
        "#anchor",
        "#/list/7",
        "#/list",
        5,
        None,
    ):
        assert checker.resolve(reference) is None


def test_a_circle_ends() -> None:
    circle = {"$ref": "#"}
    assert not accepts(circle, 1)
    wide = {"anyOf": [{"$ref": "#"}] * 10}
    with pytest.raises(TooCostly):
        accepts(wide, 1)


def test_a_pattern_that_is_not_understood_fits_nothing() -> None:
    assert not accepts({"pattern": "(?<=a)b"}, "ab")
    assert accepts({"pattern": "(?<=a)b"}, 5)
