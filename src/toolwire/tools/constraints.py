"""Metadata of Annotated: descriptions and limits of msgspec, annotated-types and pydantic.

None of these libraries is imported: an object with an attribute `ge` is a lower limit, whatever its class.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

from ..types import Json, JsonObject
from .shapes import Mismatch, Shape, describe_value

_NUMBERS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
}
_ANNOTATIONS = {"title": "title", "description": "description", "documentation": "description", "examples": "examples"}
_LENGTHS = {
    "string": {"min_length": "minLength", "max_length": "maxLength"},
    "array": {"min_length": "minItems", "max_length": "maxItems"},
    "object": {"min_length": "minProperties", "max_length": "maxProperties"},
}


def constrain(shape: Shape, metadata: Iterable[object]) -> Shape:
    """The shape with the limits and the description of the metadata."""
    for note in _flatten(metadata):
        if isinstance(note, str):
            shape = Shape({**shape.schema, "description": note}, shape.convert)
        else:
            shape = _with_note(shape, note)
    return shape


def _flatten(metadata: Iterable[object]) -> Iterable[object]:
    """The limits of a pydantic Field are in its `metadata`; groups of annotated-types are iterable."""
    for note in metadata:
        yield note
        if isinstance(inner := getattr(note, "metadata", None), list | tuple):
            yield from _flatten(inner)
        elif type(note).__name__ in ("Interval", "Len"):
            yield from _flatten(iter(note))  # type: ignore[call-overload]  # a group of annotated-types is iterable


def _with_note(shape: Shape, note: object) -> Shape:
    about: JsonObject = {}
    for attribute, keyword in _ANNOTATIONS.items():
        if (value := getattr(note, attribute, None)) is not None and not callable(value):
            about[keyword] = value
    if isinstance(extra := getattr(note, "extra_json_schema", None), dict):
        about |= extra
    limits = _limits(shape.schema, note)
    if not about and not limits:
        return shape
    return Shape({**shape.schema, **about, **limits}, _with_checks(shape, limits) if limits else shape.convert)


def _limits(schema: JsonObject, note: object) -> JsonObject:
    """The attributes of the note that apply to the types of the schema, as keywords of JSON Schema."""
    kinds = {str(each.get("type")) for each in (schema, *schema.get("anyOf", ()))}
    keywords = list(_NUMBERS.items()) if kinds & {"integer", "number"} else []
    keywords += [pair for kind in sorted(kinds) for pair in _LENGTHS.get(kind, {}).items()]
    limits = {
        keyword: value
        for attribute, keyword in keywords
        if isinstance(value := getattr(note, attribute, None), int | float | Decimal) and not isinstance(value, bool)
    }
    if "string" in kinds and (pattern := getattr(note, "pattern", None)):
        limits["pattern"] = getattr(pattern, "pattern", pattern)
    return limits


def _with_checks(shape: Shape, limits: JsonObject) -> Callable[[Json], Any]:
    checks = [(*_CHECKS[keyword], limit) for keyword, limit in limits.items()]

    def convert(value: Json) -> Any:
        converted = shape.convert(value)
        for expected, kinds, holds, limit in checks:
            if isinstance(value, kinds) and not isinstance(value, bool) and not holds(value, limit):
                raise Mismatch(f"found {describe_value(value)}, expected {expected} {limit}.")
        return converted

    return convert


_Check = tuple[str, tuple[type, ...], Callable[[Any, Any], bool]]
_NUMBER = (int, float, Decimal)
_CHECKS: dict[
    str, _Check
] = {  # text before the limit, types of values that have the limit, and whether a value is within it
    "minimum": ("at least", _NUMBER, operator.ge),
    "exclusiveMinimum": ("more than", _NUMBER, operator.gt),
    "maximum": ("at most", _NUMBER, operator.le),
    "exclusiveMaximum": ("less than", _NUMBER, operator.lt),
    "multipleOf": ("a multiple of", _NUMBER, lambda value, limit: Decimal(str(value)) % Decimal(str(limit)) == 0),
    "minLength": ("a length of at least", (str,), lambda value, limit: len(value) >= limit),
    "maxLength": ("a length of at most", (str,), lambda value, limit: len(value) <= limit),
    "minItems": ("a number of items of at least", (list,), lambda value, limit: len(value) >= limit),
    "maxItems": ("a number of items of at most", (list,), lambda value, limit: len(value) <= limit),
    "minProperties": ("a number of members of at least", (dict,), lambda value, limit: len(value) >= limit),
    "maxProperties": ("a number of members of at most", (dict,), lambda value, limit: len(value) <= limit),
    "pattern": ("a text that matches", (str,), lambda value, limit: re.search(limit, value) is not None),
}
