"""Calls that are not repaired by halves."""

from __future__ import annotations

import pytest

from toolwire.calls.arguments.ambiguity import Fixed, is_doubtful
from toolwire.calls.arguments.property_names import same_name

pytestmark = pytest.mark.slow

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


def test_among_texts_without_quotes_a_number_may_be_one() -> None:
    schema = {"properties": {"a": {"type": "string"}, "any": {}, "n": {"type": "integer"}}}
    assert is_doubtful(Fixed({"a": "x", "any": 5}, ("syntax.bare",)), schema)
    assert is_doubtful(Fixed({"a": "x"}, ("syntax.bare", "null")), schema)
    assert not is_doubtful(Fixed({"a": "x", "n": 5}, ("syntax.bare",)), schema)


def test_where_brackets_were_mended_an_unknown_key_may_belong_elsewhere() -> None:
    schema = {"properties": {"a": {"type": "string"}}}
    assert is_doubtful(Fixed({"a": "x", "b": 1}, ("syntax.bracket",)), schema)
    assert is_doubtful(Fixed({"a": ["x"]}, ("syntax.closers", "listed")), schema)
    assert not is_doubtful(Fixed({"a": "x", "b": 1}, ("syntax.quotes",)), schema)
    assert not is_doubtful(Fixed({"a": "x", "b": 1}, ("syntax.bracket",)), {**schema, "additionalProperties": True})


def test_an_object_found_inside_other_text_has_only_members_that_the_tool_knows() -> None:
    schema = {"properties": {"a": {"type": "string"}}}
    for repair in ("junk", "unlisted", "wrapped"):
        assert is_doubtful(Fixed({"ok": True}, (repair,)), schema)
        assert not is_doubtful(Fixed({"a": "x"}, (repair,)), schema)
