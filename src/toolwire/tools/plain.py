"""Exact decimals of the wire as int and float."""

from __future__ import annotations

from decimal import Decimal

from ..types import Json

_LARGEST = 308  # the largest exponent of a float; a larger int would exhaust memory


def plain(value: Json) -> Json:
    """The JSON value with floats instead of decimals; ValueError if one is larger than any float."""
    if isinstance(value, Decimal):
        return float_of(value)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def whole(value: Json) -> Json:
    """As plain(), but numbers without a fraction become ints: 1.0 and 1 are equal in JSON."""
    if isinstance(value, Decimal | float):
        number = int_of(value)
        return float_of(value) if number is None else number
    if isinstance(value, dict):
        return {key: whole(item) for key, item in value.items()}
    if isinstance(value, list):
        return [whole(item) for item in value]
    return value


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
