"""Numbers as programs expect them: what the wire kept as exact decimals becomes int and float."""

from __future__ import annotations

from decimal import Decimal

from ..types import Json

_LARGEST = 308  # a float has no larger power of ten; beyond, an int of so many digits is a trap


def plain(value: Json) -> Json:
    """The same JSON value without decimals; ValueError where one is larger than any float."""
    if isinstance(value, Decimal):
        return float_of(value)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def whole(value: Json) -> Json:
    """As plain(), and a number without a fraction is an int: JSON does not tell 1.0 from 1."""
    if isinstance(value, Decimal | float):
        number = int_of(value)
        return float_of(value) if number is None else number
    if isinstance(value, dict):
        return {key: whole(item) for key, item in value.items()}
    if isinstance(value, list):
        return [whole(item) for item in value]
    return value


def float_of(value: Decimal | float | int) -> float:
    """ValueError where it is larger than any float."""
    try:
        number = float(value)
    except OverflowError:
        number = float("inf")
    if number in (float("inf"), float("-inf")):
        raise ValueError("the number is too large")
    return number


def int_of(value: Decimal | float | int) -> int | None:
    """None where it has a fraction; ValueError where it has more digits than anybody means."""
    if isinstance(value, int):
        return value
    if isinstance(value, Decimal) and value.adjusted() > _LARGEST:
        raise ValueError("the number is too large")
    return int(value) if value == value // 1 else None
