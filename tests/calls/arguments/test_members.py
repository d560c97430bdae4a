"""Small changes that leave the old value alone."""

from __future__ import annotations

import pytest

from toolwire.calls.arguments.members import (
    Put,
    Remove,
    Rename,
    all_names,
    apply_edit,
    is_whole,
    put_all,
    repeated_members,
    same_name,
)
from toolwire.wire.exact_json import decode

VALUE = {"a": [{"b": 1, "c": 2}], "d": 3}


def test_each_edit_changes_one_place_of_a_copy() -> None:
    assert apply_edit(VALUE, Put(("a", 0, "b"), [5], "x")) == {"a": [{"b": [5], "c": 2}], "d": 3}
    assert apply_edit(VALUE, Remove(("a", 0, "b"), "x")) == {"a": [{"c": 2}], "d": 3}
    assert list(apply_edit(VALUE, Rename(("a", 0, "b"), "e", "x"))["a"][0]) == ["e", "c"]
    assert apply_edit(VALUE, Put((), {"x": 1}, "x")) == {"x": 1}
    assert VALUE == {"a": [{"b": 1, "c": 2}], "d": 3}


def test_what_is_no_longer_there_or_already_taken_stays() -> None:
    assert apply_edit(VALUE, Put(("a", 7), 1, "x")) is VALUE
    assert apply_edit(VALUE, Remove(("d", "e"), "x")) is VALUE
    assert apply_edit(VALUE, Rename(("d",), "a", "x")) == VALUE


def test_many_at_once() -> None:
    assert put_all(VALUE, [(("a", 0, "b"), 7), (("a", 0, "c"), 8), (("d",), 9)]) == {"a": [{"b": 7, "c": 8}], "d": 9}
    assert put_all(VALUE, [((), 5)]) == 5
    assert VALUE == {"a": [{"b": 1, "c": 2}], "d": 3}


@pytest.mark.parametrize(
    "name", ["max_results", "maxResults", "MAX-RESULTS", " max results", '"max.results"', "'maxResults'"]
)
def test_spelling_makes_no_difference(name: str) -> None:
    assert same_name(name) == "maxresults"


def test_names_at_any_depth_are_found_and_properties_called_properties_too() -> None:
    schema = {
        "properties": {"a": {"items": {"properties": {"b": {}}}}, "properties": {"type": "string"}},
        "$defs": {"x": {"anyOf": [{"properties": {"c": {}}}, True]}},
    }
    assert all_names(schema) == {"a", "b", "c", "properties"}


def test_a_schema_without_end_is_left() -> None:
    schema: dict[str, object] = {"properties": {"a": {}}}
    schema["items"] = schema
    assert all_names(schema) == {"a"}


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


@pytest.mark.parametrize(
    ("raw", "repeated"),
    [
        ('{"a": 1, "b": "\\"a\\": 2"}', {}),
        ('{"a": 1, "a" : 1}', {"a": True}),
        ('{"a": 1, "a": 1, "a": 2}', {"a": False}),
        ('{"a": [{"b": {}, "b": {}}, {"c": true, "c": 1}]}', {"b": True, "c": False}),
    ],
)
def test_members_that_occur_twice_in_one_object_are_found(raw: str, repeated: dict[str, bool]) -> None:
    assert repeated_members(raw, decode(raw)) == repeated
