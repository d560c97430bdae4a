"""Numbers and texts by simple rules."""

from __future__ import annotations

from decimal import Decimal
from itertools import islice
from typing import Any

import pytest

from tests.backends.schema_family import is_valid
from toolwire.backends.demo.scalar_examples import _FORMATS, formatted, number_in, numbers, plain_number, size, spelled


@pytest.mark.parametrize(
    ("rules", "is_whole", "expected"),
    [
        ({}, True, [0, 1, -1]),
        ({"minimum": 3}, True, [3, 4, 5]),
        ({"minimum": 2.5}, True, [3, 4, 5]),
        ({"minimum": 4, "multipleOf": 3}, True, [6, 9, 12]),
        ({"maximum": -4}, True, [-4, -5, -6]),
        ({"minimum": -1, "maximum": 1}, True, [0, 1, -1]),
        ({"multipleOf": 2.5, "minimum": 1}, True, [5, 10, 15]),
        ({"multipleOf": 0.1}, False, [0, 0.1, -0.1]),
        ({"exclusiveMinimum": 0, "exclusiveMaximum": 1}, False, [0, 0, 0.5]),
        ({"minimum": "x", "multipleOf": -1}, True, [0, 1, -1]),
    ],
)
def test_numbers_nearest_to_zero_come_first(rules: Any, is_whole: bool, expected: list[float]) -> None:
    assert list(islice(numbers(rules, is_whole=is_whole), 3)) == expected


def test_numbers_between_bounds_come_to_an_end() -> None:
    assert list(numbers({"minimum": 1, "maximum": 3}, is_whole=True)) == [1, 2, 3]


@pytest.mark.parametrize("name", sorted(_FORMATS))
def test_formats_are_valid_and_differ(name: str) -> None:
    made = list(formatted(name))
    assert len(set(made)) == len(made) == 28
    assert all(is_valid({"format": name}, text) for text in made)


def test_an_unknown_format_gives_nothing() -> None:
    assert list(formatted("colour")) == list(formatted(None)) == list(formatted(["date"])) == []


def test_spelling_never_repeats() -> None:
    assert list(islice(spelled(0), 3)) == ["a", "b", "c"]
    assert list(islice(spelled(3), 2)) == ["aaa", "aab"]
    assert len(set(islice(spelled(2), 2000))) == 2000


def test_sizes_are_bounded() -> None:
    assert [size(rule) for rule in (3, 2.5, -1, "x", None, True, 10**30)] == [3, 3, 0, 0, 0, 0, 10_000]


def test_numbers_in_texts() -> None:
    assert [number_in(text) for text in ("4", "-2.5", "x", "nan", "1" * 40, "٣")] == [4, -2.5, None, None, None, None]
    assert [plain_number(Decimal(text)) for text in ("2.0", "0.25", "-1e999")] == [2, 0.25, -1.7e308]
