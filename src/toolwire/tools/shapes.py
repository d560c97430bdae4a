"""Shapes: a JSON Schema together with the conversion of JSON values to Python values.

Schema and conversion agree: a JSON value that is valid converts, any other raises Mismatch. Only for strings with a format the conversion is
stricter, because most validators do not check formats.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import partial
from pathlib import Path, PosixPath, PurePath, PurePosixPath
from typing import Any
from uuid import UUID

import msgspec
from msgspec import Struct

from ..errors import quote
from ..types import Json, JsonObject
from .plain import float_of, int_of, plain


class Mismatch(ValueError):
    """A value that does not fit; where is the path to it, from the outermost value."""

    def __init__(self, message: str, where: Sequence[str | int] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.where = tuple(where)

    def inside(self, step: str | int) -> Mismatch:
        return Mismatch(self.message, (step, *self.where))

    def __str__(self) -> str:
        path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.where)
        return f"{quote(path.removeprefix('.'))[1:-1]}: {self.message}" if path else self.message


class Shape(Struct, frozen=True):
    """convert raises Mismatch if the value is not valid."""

    schema: JsonObject
    convert: Callable[[Json], Any]


def describe_value(value: Json) -> str:
    """A value as text for a message, short for large values."""
    match value:
        case None | bool():
            return {None: "null", True: "true", False: "false"}[value]
        case str():
            return quote(value)
        case dict():
            return f"an object with {len(value)} members"
        case list():
            return f"an array of {len(value)}"
        case int() if value.bit_length() > 512:
            return "a number of many digits"
        case _:
            return str(value)[:40]


def _expect(kind: type | tuple[type, ...], expected: str, value: Json) -> Json:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise Mismatch(f"found {describe_value(value)}, expected {expected}.")
    return value


def _text(value: Json) -> str:
    return str(_expect(str, "a string", value))


def _int(value: Json) -> int:
    number = _numeric(int_of, _expect((int, float, Decimal), "an integer", value))
    if number is None:
        raise Mismatch(f"found {describe_value(value)}, expected an integer.")
    return int(number)


def _float(value: Json) -> float:
    return float(_numeric(float_of, _expect((int, float, Decimal), "a number", value)))


def _numeric(convert: Callable[[Any], Any], value: Json) -> Any:
    try:
        return convert(value)
    except ValueError as error:
        raise Mismatch(f"{error}.") from None


ANY = Shape({}, partial(_numeric, plain))
TEXT = Shape({"type": "string"}, _text)
NULL = Shape({"type": "null"}, partial(_expect, type(None), "null"))
SCALARS: dict[object, Shape] = {
    str: TEXT,
    int: Shape({"type": "integer"}, _int),
    float: Shape({"type": "number"}, _float),
    bool: Shape({"type": "boolean"}, partial(_expect, bool, "true or false")),
    None: NULL,
    type(None): NULL,
    Any: ANY,
    object: ANY,
}


def _formatted(kind: type, name: str, example: str) -> Shape:
    def convert(value: Json) -> Any:
        try:
            return msgspec.convert(_text(value), kind)
        except msgspec.ValidationError:
            raise Mismatch(f"found {describe_value(value)}, expected a {name} such as {example}.") from None

    return Shape({"type": "string", "format": name}, convert)


def _base64(value: Json) -> bytes:
    try:
        return base64.b64decode(_text(value), validate=True)
    except (binascii.Error, ValueError):
        raise Mismatch(f"found {describe_value(value)}, expected bytes in base64.") from None


def _path(kind: type[PurePath]) -> Shape:
    def convert(value: Json) -> PurePath:
        if "\0" in _text(value):
            raise Mismatch(f"found {describe_value(value)}, expected a path without a null character.")
        return kind(value)

    return Shape({"type": "string", "format": "path"}, convert)


FORMATS: dict[object, Shape] = {
    datetime: _formatted(datetime, "date-time", "2026-01-31T18:30:00Z"),
    date: _formatted(date, "date", "2026-01-31"),
    time: _formatted(time, "time", "18:30:00"),
    timedelta: _formatted(timedelta, "duration", "PT1H30M"),
    UUID: _formatted(UUID, "uuid", "123e4567-e89b-12d3-a456-426614174000"),
    Decimal: _formatted(Decimal, "decimal", '"12.50"'),
    bytes: Shape({"type": "string", "format": "byte", "contentEncoding": "base64"}, _base64),
    **{kind: _path(kind) for kind in (Path, PurePath, PosixPath, PurePosixPath)},
}


def choices(values: Sequence[tuple[Json, Any]]) -> Shape:
    """One of several JSON scalars, each with the Python value that it stands for."""
    table = {_identity(value): meaning for value, meaning in values}
    scalars = [value for value, _ in values]
    types = {_TYPES[type(value)] for value in scalars}
    schema: JsonObject = {"enum": scalars}
    if len(types) == 1:
        schema = {"type": types.pop(), **schema}

    def convert(value: Json) -> Any:
        if isinstance(value, str | int | float | Decimal | None) and _identity(value) in table:
            return table[_identity(value)]
        raise Mismatch(
            f"found {describe_value(value)}, expected one of {', '.join(map(describe_value, scalars[:20]))}."
        )

    return Shape(schema, convert)


_TYPES: dict[type, str] = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


def _identity(value: Json) -> tuple[bool, Json]:
    """In Python True equals 1, in JSON it does not."""
    return isinstance(value, bool), value


def scalar_of(value: object) -> Json:
    """The JSON scalar for a member of a Literal or Enum; ValueError if there is none."""
    if isinstance(value, Enum):
        return enum_scalars(type(value))[value]
    if value is None or type(value) in _TYPES:
        return value
    if isinstance(value, str | int | float):
        return next(kind(value) for kind in (str, int, float) if isinstance(value, kind))
    raise ValueError(f"{type(value).__name__} is no JSON value")


def enum_scalars(kind: type[Enum]) -> dict[Enum, Json]:
    """The JSON scalar for each member: its value if all values are JSON scalars, otherwise its name."""
    values = {member: member.value for member in kind}
    if all(type(value) in _TYPES or isinstance(value, str | int | float) for value in values.values()):
        return {member: scalar_of(value) for member, value in values.items()}
    return {member: member.name for member in kind}
