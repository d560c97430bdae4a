"""Integers that JavaScript cannot hold."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire.backends.vscode.wire.integers import WHOLE, loses_digits


@pytest.mark.parametrize(
    ("value", "is_lost"),
    [
        (WHOLE, False),
        (WHOLE + 1, True),
        (-WHOLE - 1, True),
        ({"a": [1, {"b": (2, WHOLE * 2)}]}, True),
        ({"a": ["9" * 30, 1.5, True, None]}, False),
    ],
)
def test_H072_long_integers_are_seen(value: Any, is_lost: bool) -> None:
    assert loses_digits(value) is is_lost


def test_depth_does_not_matter() -> None:
    deep: Any = WHOLE + 1
    for _ in range(100_000):
        deep = [deep]
    assert loses_digits(deep)
