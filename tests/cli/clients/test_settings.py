"""Settings as values: merging, lists whose elements are known by a member, and what has no place."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire.cli.clients.settings import Item, Setting, merged, nested, shown
from toolwire.errors import ConfigError


def test_objects_are_merged_and_the_rest_stays() -> None:
    data = {"a": {"kept": 1, "b": 2}, "z": [1]}
    assert merged(data, [Setting(("a", "b"), 3), Setting(("a",), {"c": 4})]) == {
        "a": {"kept": 1, "b": 3, "c": 4},
        "z": [1],
    }
    assert data == {"a": {"kept": 1, "b": 2}, "z": [1]}


def test_what_is_missing_is_made() -> None:
    assert merged({}, [Setting(("a", Item("id", "x"), "n"), 1)]) == {"a": [{"id": "x", "n": 1}]}
    assert nested(("a", Item("", "x")), "x") == {"a": ["x"]}


def test_an_element_is_found_by_its_member_or_added() -> None:
    data = {"a": [{"id": "y", "n": 0}, {"id": "x", "own": True}]}
    assert merged(data, [Setting(("a", Item("id", "x")), {"n": 1})]) == {
        "a": [{"id": "y", "n": 0}, {"id": "x", "own": True, "n": 1}]
    }
    assert merged({"a": ["x"]}, [Setting(("a", Item("", "x")), "x")]) == {"a": ["x"]}
    assert merged({"a": ["y"]}, [Setting(("a", Item("", "x")), "x")]) == {"a": ["y", "x"]}


def test_a_default_is_only_put_where_there_is_nothing() -> None:
    settings = [Setting(("a",), 1, is_default=True), Setting(("b",), 2, is_default=True)]
    assert merged({"a": 0}, settings) == {"a": 0, "b": 2}


def test_none_removes() -> None:
    assert merged({"a": {"b": 1, "c": 2}}, [Setting(("a", "b"), None), Setting(("x", "y"), None)]) == {"a": {"c": 2}}


@pytest.mark.parametrize(
    ("data", "words"), [({"a": 1}, "a number"), ({"a": []}, "a list"), ({"a": None}, "null"), ({"a": "x"}, "a string")]
)
def test_what_has_no_place_is_said(data: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=f"found {words} at .*; expected an object"):
        merged(data, [Setting(("a", "b"), 1)])
    with pytest.raises(ConfigError, match=r"found an object at .*; expected a list"):
        merged({"a": {}}, [Setting(("a", Item("id", "x")), {})])


def test_a_place_reads_well() -> None:
    assert shown(("a", Item("id", "x"), "b")) == "a.[id=x].b"
    assert shown(()) == "the file"
