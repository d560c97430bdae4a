"""Exact numbers as programs expect them."""

from __future__ import annotations

from decimal import Decimal

import pytest

from toolwire.tools.plain import int_of, plain, whole


def test_decimals_become_floats_everywhere() -> None:
    value = plain({"a": [Decimal("1.5"), 2, "x", None, True], "b": Decimal("1.0")})
    assert value == {"a": [1.5, 2, "x", None, True], "b": 1.0}
    assert type(value["b"]) is float


def test_whole_makes_ints_of_numbers_without_a_fraction() -> None:
    value = whole({"a": [Decimal("2.0"), 3.0, 0.5], "b": Decimal("1E+2"), "c": 10**40})
    assert value == {"a": [2, 3, 0.5], "b": 100, "c": 10**40}
    assert [type(item) for item in value["a"]] == [int, int, float]


@pytest.mark.parametrize("number", [Decimal("1e400"), Decimal("-1e999999999")])
def test_numbers_beyond_any_use_are_refused_at_once(number: Decimal) -> None:
    for turn in (plain, whole, int_of):
        with pytest.raises(ValueError, match="too large"):
            turn(number)


def test_a_fraction_is_no_int() -> None:
    assert int_of(Decimal("1.5")) is None
    assert int_of(7) == 7
