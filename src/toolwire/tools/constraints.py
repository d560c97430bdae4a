"""What stands in Annotated beside a type: descriptions and limits, as msgspec, annotated-types and pydantic write them.

None of them is imported: what has an attribute `ge` limits from below, whoever made it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

from ..types import Json, JsonObject
from .shapes import Mismatch, Shape, found

_NUMBERS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
}
_TOLD = {"title": "title", "description": "description", "documentation": "description", "examples": "examples"}
_LENGTHS = {
    "string": {"min_length": "minLength", "max_length": "maxLength"},
    "array": {"min_length": "minItems", "max_length": "maxItems"},
    "object": {"min_length": "minProperties", "max_length": "maxProperties"},
}


def annotated(shape: Shape, metadata: Iterable[object]) -> Shape:
    """The same shape within these limits, with this description."""
    for note in _flat(metadata):
        if isinstance(note, str):
            shape = Shape({**shape.schema, "description": note}, shape.convert)
        else:
            shape = _limited(shape, note)
    return shape


def _flat(metadata: Iterable[object]) -> Iterable[object]:
    """pydantic keeps the limits of a Field in a list of its own; annotated-types lets groups be iterated."""
    for note in metadata:
        yield note
        if isinstance(inner := getattr(note, "metadata", None), list | tuple):
            yield from _flat(inner)
        elif type(note).__name__ in ("Interval", "Len"):
            yield from _flat(iter(note))  # type: ignore[call-overload]  # a group of annotated-types is iterable


def _limited(shape: Shape, note: object) -> Shape:
    told: JsonObject = {}
    for attribute, word in _TOLD.items():
        if (value := getattr(note, attribute, None)) is not None and not callable(value):
            told[word] = value
    if isinstance(extra := getattr(note, "extra_json_schema", None), dict):
        told |= extra
    limits = _limits(shape.schema, note)
    if not told and not limits:
        return shape
    return Shape({**shape.schema, **told, **limits}, _checked(shape, limits) if limits else shape.convert)


def _limits(schema: JsonObject, note: object) -> JsonObject:
    """Those of its attributes that mean something for these types, under the words of JSON Schema."""
    kinds = {str(each.get("type")) for each in (schema, *schema.get("anyOf", ()))}
    words = list(_NUMBERS.items()) if kinds & {"integer", "number"} else []
    words += [pair for kind in sorted(kinds) for pair in _LENGTHS.get(kind, {}).items()]
    limits = {
        word: value
        for attribute, word in words
        if isinstance(value := getattr(note, attribute, None), int | float | Decimal) and not isinstance(value, bool)
    }
    if "string" in kinds and (pattern := getattr(note, "pattern", None)):
        limits["pattern"] = getattr(pattern, "pattern", pattern)
    return limits


def _checked(shape: Shape, limits: JsonObject) -> Callable[[Json], Any]:
    checks = [(_WORDS[word], limit, _CHECKS[_SAME.get(word, word)], _KINDS[word]) for word, limit in limits.items()]

    def convert(value: Json) -> Any:
        converted = shape.convert(value)
        for words, limit, holds, kinds in checks:
            if isinstance(value, kinds) and not isinstance(value, bool) and not holds(value, limit):
                raise Mismatch(f"found {found(value)}, expected {words} {limit}.")
        return converted

    return convert


_CHECKS: dict[str, Callable[[Any, Any], bool]] = {
    "minimum": lambda value, limit: bool(value >= limit),
    "exclusiveMinimum": lambda value, limit: bool(value > limit),
    "maximum": lambda value, limit: bool(value <= limit),
    "exclusiveMaximum": lambda value, limit: bool(value < limit),
    "multipleOf": lambda value, limit: Decimal(str(value)) % Decimal(str(limit)) == 0,
    "minLength": lambda value, limit: len(value) >= limit,
    "maxLength": lambda value, limit: len(value) <= limit,
    "pattern": lambda value, limit: re.search(limit, value) is not None,
}
_SAME = {"minItems": "minLength", "minProperties": "minLength", "maxItems": "maxLength", "maxProperties": "maxLength"}
_KINDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(_NUMBERS.values(), (int, float, Decimal)),
    **dict.fromkeys((*_LENGTHS["string"].values(), "pattern"), (str,)),
    **dict.fromkeys(_LENGTHS["array"].values(), (list,)),
    **dict.fromkeys(_LENGTHS["object"].values(), (dict,)),
}
_WORDS = {
    "minimum": "at least",
    "exclusiveMinimum": "more than",
    "maximum": "at most",
    "exclusiveMaximum": "less than",
    "multipleOf": "a multiple of",
    "minLength": "a length of at least",
    "maxLength": "a length of at most",
    "minItems": "a number of items of at least",
    "maxItems": "a number of items of at most",
    "minProperties": "a number of members of at least",
    "maxProperties": "a number of members of at most",
    "pattern": "a text that matches",
}
