"""Calls that are not repaired by halves."""

from __future__ import annotations

import pytest

from toolwire.calls.arguments.doubts import Fixed, is_doubtful, same_name

SCHEMA = {"properties": {"n": {"type": "number"}, "any": {}, "text": {"type": "string"}, "kind": {"enum": ["1", 2]}}}


@pytest.mark.parametrize("value", ["0.1", "True", "null", "-3e5", '{"a": 1}', "[1]"])
def test_a_literal_where_anything_goes_is_in_doubt(value: str) -> None:
    assert is_doubtful(Fixed({"n": 3, "any": value}, ("typed",)), SCHEMA)
    assert is_doubtful(Fixed({"n": 3, "any": [{"x": value}]}, ("typed",)), SCHEMA)
    assert not is_doubtful(Fixed({"n": 3, "any": value}, ("renamed",)), SCHEMA)
    assert not is_doubtful(Fixed({"n": 3, "text": value, "any": 5}, ("typed",)), SCHEMA)


def test_other_values_are_not() -> None:
    assert not is_doubtful(Fixed({"n": 3, "any": "words", "kind": "1"}, ("typed",)), SCHEMA)
    assert not is_doubtful(Fixed({"n": 3, "any": None}, ("typed",)), SCHEMA)
    assert is_doubtful(Fixed({"any": None}, ("null",)), SCHEMA)


def test_a_known_name_in_other_spelling_is_in_doubt_whatever_was_repaired() -> None:
    schema = {"properties": {"user_id": {}, "list": {"items": {"properties": {"maxLines": {}}}}}}
    assert is_doubtful(Fixed({"userId": 1}, ("syntax.quotes",)), schema)
    assert is_doubtful(Fixed({"list": [{"max-lines": 1}]}, ("fence",)), schema)
    assert not is_doubtful(Fixed({"user_id": 1, "more": 2}, ("fence",)), schema)
    assert not is_doubtful(Fixed({"other": {"user-id": 1}}, ("fence",)), schema)
    assert same_name("File-Path_x") == same_name("filePathX")
