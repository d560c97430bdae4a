"""What a store holds."""

from __future__ import annotations

import json

import pytest

from tests.memory.store.contract import answer
from toolwire.memory.store import Item


def test_what_is_not_given_is_empty_json() -> None:
    entry = answer("a")
    assert json.loads(entry.input) == []
    assert json.loads(entry.body) == {}
    assert entry.output == ()


def test_an_entry_cannot_be_changed() -> None:
    for value in (answer("a"), Item("a", b"1")):
        with pytest.raises(AttributeError):
            setattr(value, "id", "b")  # noqa: B010 (mypy knows better)
