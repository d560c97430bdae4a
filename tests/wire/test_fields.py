"""Look-ups in foreign JSON: the right type, or an error that names the field."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from toolwire.errors import BadRequest
from toolwire.wire import fields

WRONG: dict[Callable[..., Any], list[Any]] = {
    fields.need_text: [None, 1, True, [], {}],
    fields.need_name: [None, 1, "", []],
    fields.need_list: [None, {}, "x", 1],
    fields.text_or_none: [1, True, [], {}],
    fields.flag_or_none: [0, 1, "true", []],
    fields.number_or_none: [True, "1", [], {}],
    fields.count_or_none: [
        True,
        "1",
        -1,
        Decimal("1.5"),
        Decimal("1e400"),
        Decimal("1e9999999"),
        Decimal("-1e9999999"),
        [],
    ],
    fields.object_or_none: [[], "x", 1],
    fields.list_or_none: [{}, "x", 1],
}
CASES = [(look, value) for look, values in WRONG.items() for value in values]


@pytest.mark.parametrize(("look", "value"), CASES)
def test_a_wrong_type_names_the_field(look: Callable[..., Any], value: Any) -> None:
    with pytest.raises(BadRequest) as caught:
        look({"size": value}, "size", "tools[3]")
    assert caught.value.where == "tools[3].size"
    assert "expected" in caught.value.message
    with pytest.raises(BadRequest) as caught:
        look({"size": value}, "size", "")
    assert caught.value.where == "size"


@pytest.mark.parametrize("look", [fields.need_text, fields.need_name, fields.need_list])
def test_what_is_missing_is_called_missing(look: Callable[..., Any]) -> None:
    with pytest.raises(BadRequest) as caught:
        look({}, "size", "top")
    assert (caught.value.where, caught.value.code) == ("top.size", "missing_field")


@pytest.mark.parametrize("look", [look for look in WRONG if "none" in look.__name__])
def test_absent_and_null_are_nothing(look: Callable[..., Any]) -> None:
    assert look({}, "size") is None
    assert look({"size": None}, "size") is None


def test_the_right_types_pass() -> None:
    assert fields.need_text({"a": ""}, "a", "") == ""
    assert fields.count_or_none({"a": Decimal("1e3")}, "a") == 1000
    assert fields.count_or_none({"a": 10**30}, "a") == 10**30
    assert fields.number_or_none({"a": Decimal("0.7")}, "a") == Decimal("0.7")
    assert fields.need_object({"b": 1}, "x") == {"b": 1}


def test_found_text_is_quoted_and_bounded() -> None:
    error = fields.wrong("role", "x\n" * 500, "a role")
    assert len(error.message) < 260
    assert "\n" not in error.message


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("x", "a string"),
        (True, "true or false"),
        (1, "an integer"),
        (Decimal(1), "a number"),
        ([], "an array"),
        ({}, "an object"),
        (None, "null"),
    ],
)
def test_names_of_kinds(value: Any, words: str) -> None:
    assert fields.kind_of(value) == words


def test_the_rest_rides_along_under_its_dialect() -> None:
    assert fields.rest({"a": 1, "b": None}, frozenset({"a"}), "chat") == {"chat": {"b": None}}
    assert fields.rest({"a": 1}, frozenset({"a", "b"}), "chat") == {}


def test_members_that_are_read_in_part() -> None:
    known = frozenset({"a"})
    assert fields.unread({"k": {"a": 1, "b": 2}}, "k", known) == {"k": {"b": 2}}
    assert fields.unread({"k": {"a": 1}}, "k", known) == {}
    assert fields.unread({"k": None}, "k", known) == fields.unread({"k": [1]}, "k", known) == {}


@pytest.mark.parametrize(
    ("given", "count"),
    [(5, 5), (0, 0), (-1, 0), (True, 0), ("5", 0), (None, 0), (Decimal("5.0"), 5), (Decimal("5.5"), 0), (10**30, 0)],
)
def test_only_whole_numbers_are_counts(given: object, count: int) -> None:
    assert fields.count_of(given) == count
    assert fields.is_count(given) == (type(given) is int and given == count)
