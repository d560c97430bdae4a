"""Whether nothing can be missing."""

from __future__ import annotations

import pytest

from toolwire.calls.arguments.unclosed import is_whole

pytestmark = pytest.mark.slow

SCHEMA = {
    "properties": {
        "a": {"type": "string"},
        "b": {"properties": {"c": {}, "d": {}}},
        "e": {"type": "array", "maxItems": 2},
        "f": {"additionalProperties": {"type": "string"}},
    }
}


def test_an_object_with_all_its_properties_is_whole() -> None:
    assert is_whole({"b": {"c": 1, "d": 2}}, [("b",)], SCHEMA)
    assert not is_whole({"b": {"c": 1}}, [("b",)], SCHEMA)
    assert is_whole({"a": "", "b": {}, "e": [], "f": {}}, [()], SCHEMA)
    assert not is_whole({"a": "", "b": {"c": 1, "d": 2}}, [("b",), ()], SCHEMA)


def test_lists_and_maps_never_are_unless_they_are_full() -> None:
    assert not is_whole({"e": [1]}, [("e",)], SCHEMA)
    assert is_whole({"e": [1, 2]}, [("e",)], SCHEMA)
    assert not is_whole({"f": {"x": "y"}}, [("f",)], SCHEMA)
    assert not is_whole({"g": {"x": "y"}}, [("g",)], SCHEMA)


def test_no_arguments_are_whole_where_none_are_known() -> None:
    assert is_whole({}, [()], {"type": "object"})
    assert not is_whole({}, [()], SCHEMA)
    assert not is_whole({}, [()], {"additionalProperties": True})
