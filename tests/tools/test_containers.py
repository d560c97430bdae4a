"""Shapes made of shapes."""

from __future__ import annotations

import msgspec
import pytest

from toolwire.tools.containers import Member, list_of, mapping_of, object_of, optional, set_of, tuple_of, union_of
from toolwire.tools.shapes import ANY, NULL, SCALARS, TEXT, Mismatch

INT, FLOAT = SCALARS[int], SCALARS[float]


def test_unions_have_no_duplicates() -> None:
    assert union_of([INT, INT]) is INT
    assert union_of([FLOAT, INT]).schema == {"anyOf": [INT.schema, FLOAT.schema]}


def test_what_may_be_null_is_not_made_so_twice() -> None:
    once = optional(INT)
    assert optional(once) is once
    assert optional(ANY) is ANY
    assert optional(NULL) is NULL


def test_a_union_reports_the_deepest_mismatch() -> None:
    member = Member(name="n", shape=INT)
    shape = union_of([TEXT, object_of([member], dict), NULL])
    with pytest.raises(Mismatch) as caught:
        shape.convert({"n": "x"})
    assert str(caught.value) == 'n: found "x", expected an integer.'
    with pytest.raises(Mismatch, match="none of the 3 kinds"):
        shape.convert(7)


def test_sets_take_each_item_once_as_json_counts() -> None:
    shape = set_of(ANY, set)
    assert shape.convert([1, "1", True]) == {1, "1"}
    for twice in ([1, 1.0], ["a", "a"]):
        with pytest.raises(Mismatch, match="twice"):
            shape.convert(twice)
    with pytest.raises(Mismatch, match="a set cannot hold"):
        shape.convert([{"a": 1, "b": 2}])


def test_tuples_have_their_length() -> None:
    shape = tuple_of([INT, TEXT])
    with pytest.raises(Mismatch, match="an array of 2"):
        shape.convert([1])
    with pytest.raises(Mismatch) as caught:
        shape.convert([1, 2])
    assert caught.value.where == (1,)


def test_mappings_name_the_key_at_fault() -> None:
    with pytest.raises(Mismatch) as caught:
        mapping_of(TEXT, list_of(INT)).convert({"a": [1, None]})
    assert caught.value.where == ("a", 1)


def test_objects_report_missing_and_unknown_members() -> None:
    shape = object_of([Member(name="a", shape=INT), Member(name="b", shape=INT, has_default=True, default=2)], dict)
    assert shape.schema == {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer", "default": 2}},
        "required": ["a"],
        "additionalProperties": False,
    }
    assert shape.convert({"a": 1}) == {"a": 1}
    with pytest.raises(Mismatch, match='"a" missing'):
        shape.convert({})
    with pytest.raises(Mismatch, match='"c" is no member of it; expected "a", "b"'):
        shape.convert({"a": 1, "c": 2})


@pytest.mark.parametrize("default", [object(), "x" * 5000, msgspec.UNSET])
def test_defaults_that_json_cannot_express_are_left_out(default: object) -> None:
    assert Member(name="a", shape=ANY, has_default=True, default=default).member_schema() == {}
