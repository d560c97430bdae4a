"""What a model that slipped may have meant."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from toolwire.calls.arguments.fixes import View, plans, whole_number
from toolwire.calls.arguments.members import Put, Remove, Rename
from toolwire.calls.schemas import Schemas


def ways(schema: dict[str, Any], value: Any, *, may_wrap: bool = False) -> list[Any]:
    """For one property, each way as it would change it."""
    checker = Schemas().of({"type": "object", "properties": {"p": schema}}).checker
    assert checker is not None
    arguments = {"p": value}
    found = plans(checker.faults(arguments, 100), View(arguments, checker.schema, may_wrap))
    return [edit.value if isinstance(edit, Put) else edit for place in found for plan in place for edit in plan]


@pytest.mark.parametrize(
    ("kind", "value", "meant"),
    [
        ("integer", "30", 30),
        ("integer", "30.0", 30),
        ("integer", " -7 ", -7),
        ("number", "0.10", Decimal("0.10")),
        ("boolean", "True", True),
        ("boolean", "false", False),
        (["integer", "null"], "null", None),
        ("array", "[1, 2]", [1, 2]),
        ("array", "['a']", ["a"]),
        ("object", '{"a": 1}', {"a": 1}),
        ("string", 12345, "12345"),
    ],
)
def test_H131_values_get_the_type_that_is_asked_for(kind: Any, value: Any, meant: Any) -> None:
    assert ways({"type": kind}, value) == [meant]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("integer", "30.5"),
        ("integer", "2026-01-15"),
        ("integer", "thirty"),
        ("integer", "1,000"),
        ("integer", Decimal("30.5")),
        ("boolean", "2"),
        ("boolean", 2),
        ("boolean", "maybe"),
        ("number", "NaN"),
        ("number", "1e"),
        ("array", "a, b"),
        ("array", '{"a": 1}'),
        ("object", "[1]"),
        ("array", "[1"),
        ("string", Decimal("1e5")),
        ("string", {"a": 1}),
        ("object", 5),
    ],
)
def test_no_guess_is_made(kind: str, value: Any) -> None:
    assert ways({"type": kind}, value) == []


def test_H133_text_stays_text_where_text_is_asked_for() -> None:
    for value in ("null", "30", "true", "[1]"):
        assert ways({"type": "string"}, value) == []


def test_null_for_what_may_be_absent_goes() -> None:
    assert ways({"type": "integer"}, None) == [Remove(("p",), "null")]
    assert ways({"type": "integer"}, "") == [Remove(("p",), "null")]
    assert ways({"type": "array", "items": {"type": "integer"}}, [None]) == []
    for word in ("", "null", "None"):  # nothing, or the only item
        assert ways({"type": "array"}, word, may_wrap=True) == []


def test_a_single_value_is_listed_only_with_leave_and_if_it_is_one() -> None:
    assert ways({"type": "array"}, "a") == []
    assert ways({"type": "array"}, "a", may_wrap=True) == [["a"]]
    assert ways({"type": "array"}, {"b": 1}, may_wrap=True) == [[{"b": 1}]]
    for value in ("a, b", "a\nb", "[a", "a;b"):
        assert ways({"type": "array"}, value, may_wrap=True) == []


def test_each_member_of_a_union_is_a_way() -> None:
    union = {"anyOf": [{"type": "integer"}, {"type": "boolean"}, {"type": "object", "required": ["k"]}]}
    assert ways(union, "5") == [5]
    assert ways(union, "true") == [True]
    assert ways(union, "words") == []
    inner = {"anyOf": [{"type": "object", "properties": {"k": {"type": "integer"}}}, {"type": "null"}]}
    assert ways(inner, {"k": "5"}) == [5]


def test_spelling_of_constants() -> None:
    assert ways({"enum": ["Celsius", "Kelvin"]}, " celsius") == ["Celsius"]
    assert ways({"enum": ["Aa", "aA"]}, "AA") == []
    assert ways({"const": "on"}, "ON") == ["on"]
    assert ways({"enum": [1, 2]}, "2") == [2]


def renames(schema: dict[str, Any], arguments: dict[str, Any]) -> list[tuple[Any, str]]:
    checker = Schemas().of(schema).checker
    assert checker is not None
    found = plans(checker.faults(arguments, 100), View(arguments, checker.schema, False))
    return [(edit.path[-1], edit.name) for ways in found for plan in ways for edit in plan if isinstance(edit, Rename)]


def test_keys_in_other_spelling_are_renamed_all_or_none() -> None:
    schema = {"properties": {"file_path": {}, "max_lines": {}}, "required": ["file_path"]}
    assert renames(schema, {"filePath": 1}) == [("filePath", "file_path")]
    assert renames(schema, {"FILE-PATH": 1, "maxLines": 2}) == [("FILE-PATH", "file_path"), ("maxLines", "max_lines")]
    assert renames(schema, {"filePath": 1, "other": 2}) == []
    assert renames(schema, {"filePath": 1, "file-path": 2}) == []
    assert renames(schema, {"path": 1}) == []


def test_a_key_that_is_a_name_of_its_own_is_never_renamed() -> None:
    schema = {"properties": {"user_id": {}, "userId": {}}, "required": ["user_id"], "additionalProperties": False}
    assert renames(schema, {"userId": 1}) == []
    assert renames(schema, {"USERID": 1}) == []


def test_unexpected_keys_are_renamed_never_dropped() -> None:
    schema = {"properties": {"max_lines": {}}, "additionalProperties": False}
    assert renames(schema, {"maxLines": 1}) == [("maxLines", "max_lines")]
    assert renames(schema, {"maxLines": 1, "more": 1}) == []
    assert renames(schema, {"maxLines": 1, "max_lines": 1}) == []


def test_H073_whole_numbers() -> None:
    assert whole_number(Decimal("10.0")) == 10
    assert whole_number(Decimal("1e3")) == 1000
    assert whole_number(Decimal("10.5")) is None
    assert whole_number(Decimal("1e999999")) is None


def test_a_list_of_one_is_its_item_where_no_list_is_asked_for() -> None:
    assert ways({"type": "integer"}, [5]) == [5]
    assert ways({"enum": ["a", "b"]}, ["B"]) == ["b"]
    assert ways({"type": "integer"}, [5, 6]) == []


def test_an_item_of_a_list_is_never_listed() -> None:
    schema = {"type": "array", "items": {"type": "array"}}
    assert ways(schema, [1, [2]], may_wrap=True) == []


def test_booleans_have_a_few_other_words() -> None:
    for value in ("yes", "On", "1", 1, "TRUE"):
        assert ways({"type": "boolean"}, value) == [True]


def test_what_lost_its_quotes_is_a_text_with_its_digits() -> None:
    assert ways({"type": "string"}, Decimal("1.50")) == ["1.50"]
    assert ways({"type": "string"}, True) == ["true", "True"]
    assert ways({"type": "integer"}, "null") == [Remove(("p",), "null")]
