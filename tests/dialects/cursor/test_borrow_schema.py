from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.dialects.cursor.borrow_schema import fits, properties_of, required_of, types_of

_SCHEMAS: list[dict[str, Any]] = [
    {"type": "string", "minLength": 2, "maxLength": 3},
    {"type": ["integer", "null"], "minimum": 0, "maximum": 9},
    {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 9},
    {"anyOf": [{"type": "boolean"}, {"const": 5}]},
    {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2},
    {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False},
    {"type": "object", "additionalProperties": {"type": "string"}},
    {"enum": [1, "a", None]},
    {},
]
_SCALARS = st.none() | st.booleans() | st.integers(-2, 12) | st.text("ab", max_size=4)
_VALUES = _SCALARS | st.lists(_SCALARS, max_size=3) | st.dictionaries(st.sampled_from("ab"), _SCALARS, max_size=2)


@given(st.sampled_from(_SCHEMAS), _VALUES)
def test_what_fits_here_fits_by_the_standard(schema: dict[str, Any], value: Any) -> None:
    is_valid = jsonschema.Draft202012Validator(schema).is_valid(value)
    assert fits(value, schema) == is_valid or (isinstance(value, bool) and "enum" in schema)


@pytest.mark.parametrize(
    "schema",
    [{"$ref": "#"}, {"allOf": []}, {"not": {}}, {"pattern": "a"}, {"if": {}}, {"type": 5}, {"minimum": "x"}, {"type": "x"}, False],
)  # fmt: skip
def test_what_is_not_known_is_a_no(schema: Any) -> None:
    assert not fits("a", schema)


def test_depth_is_bounded() -> None:
    schema: dict[str, Any] = {"type": "array"}
    value: list[Any] = []
    for _ in range(50):
        schema, value = {"type": "array", "items": schema}, [value]
    assert not fits(value, schema)


def test_odd_schemas_have_no_members() -> None:
    assert properties_of(None) == {}
    assert properties_of({"properties": {"a": True, "b": {}}}) == {"b": {}}
    assert required_of({"required": ["a", 5]}) == ["a"]
    assert required_of({"required": "a"}) == []
    assert types_of({"anyOf": [{"type": "string"}, {"type": "null"}, True]}) == {"string", "null"}
