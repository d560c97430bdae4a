"""Exact decimals of the wire as int and float."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from ..types import Json

_LARGEST = 308  # the largest exponent of a float; a larger int would exhaust memory


def plain(value: Json) -> Json:
    """The JSON value with floats instead of decimals; ValueError if one is larger than any float."""
    return _map_numbers(value, lambda number: float_of(number) if isinstance(number, Decimal) else number)


def whole(value: Json) -> Json:
    """As plain(), but numbers without a fraction become ints: 1.0 and 1 are equal in JSON."""
    return _map_numbers(value, lambda number: float_of(number) if (whole := int_of(number)) is None else whole)


def float_of(value: Decimal | float | int) -> float:
    """ValueError if it is larger than any float."""
    try:
        number = float(value)
    except OverflowError:
        number = float("inf")
    if number in (float("inf"), float("-inf")):
        raise ValueError("the number is too large")
    return number


def int_of(value: Decimal | float | int) -> int | None:
    """None if it has a fraction; ValueError if it is larger than any float."""
    if isinstance(value, int):
        return value
    if isinstance(value, Decimal) and value.adjusted() > _LARGEST:
        raise ValueError("the number is too large")
    return int(value) if value == value // 1 else None


def _map_numbers(value: Json, convert: Callable[[Decimal | float], float]) -> Json:
    if isinstance(value, Decimal | float):
        return convert(value)
    if isinstance(value, dict):
        return {key: _map_numbers(item, convert) for key, item in value.items()}
    return [_map_numbers(item, convert) for item in value] if isinstance(value, list) else value
