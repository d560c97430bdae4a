"""Small changes that leave the old value alone."""

from __future__ import annotations

import pytest

from toolwire.calls.arguments.edits import Drop, Put, Rename, changed, put_all

pytestmark = pytest.mark.slow

VALUE = {"a": [{"b": 1, "c": 2}], "d": 3}


def test_each_edit_changes_one_place_of_a_copy() -> None:
    assert changed(VALUE, Put(("a", 0, "b"), [5], "x")) == {"a": [{"b": [5], "c": 2}], "d": 3}
    assert changed(VALUE, Drop(("a", 0, "b"), "x")) == {"a": [{"c": 2}], "d": 3}
    assert list(changed(VALUE, Rename(("a", 0, "b"), "e", "x"))["a"][0]) == ["e", "c"]
    assert changed(VALUE, Put((), {"x": 1}, "x")) == {"x": 1}
    assert VALUE == {"a": [{"b": 1, "c": 2}], "d": 3}


def test_what_is_no_longer_there_or_already_taken_stays() -> None:
    assert changed(VALUE, Put(("a", 7), 1, "x")) is VALUE
    assert changed(VALUE, Drop(("d", "e"), "x")) is VALUE
    assert changed(VALUE, Rename(("d",), "a", "x")) == VALUE


def test_many_at_once() -> None:
    assert put_all(VALUE, [(("a", 0, "b"), 7), (("a", 0, "c"), 8), (("d",), 9)]) == {"a": [{"b": 7, "c": 8}], "d": 9}
    assert put_all(VALUE, [((), 5)]) == 5
    assert VALUE == {"a": [{"b": 1, "c": 2}], "d": 3}
