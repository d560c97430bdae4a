"""Shapes of unions, arrays, mappings and objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from ..errors import quote
from ..types import Json, JsonObject
from ..wire import exact_json as exact
from .plain import whole
from .shapes import NULL, SCALARS, Mismatch, Shape, describe_value

_MAX_DEFAULT = 1000  # bytes; longer defaults are not in the schema


class Member(Struct, frozen=True, kw_only=True):
    """One named member of an object; with has_default it is optional, and default is in the schema if JSON can express it."""

    name: str
    shape: Shape
    has_default: bool = False
    default: Any = None
    description: str = ""

    def member_schema(self) -> JsonObject:
        schema = dict(self.shape.schema)
        if self.description:
            schema.setdefault("description", self.description)
        if self.has_default and (default := _json_default(self.default)) is not msgspec.UNSET:
            schema.setdefault("default", default)
        return schema


def union_of(shapes: Sequence[Shape]) -> Shape:
    """The first shape that fits wins; int takes precedence over float, so that whole numbers are ints."""
    ordered = sorted(shapes, key=lambda shape: shape is SCALARS[float])
    unique = [shape for index, shape in enumerate(ordered) if shape not in ordered[:index]]
    if len(unique) == 1:
        return unique[0]

    def convert(value: Json) -> Any:
        mismatches: list[Mismatch] = []
        for shape in unique:
            try:
                return shape.convert(value)
            except Mismatch as mismatch:
                if shape is not NULL:
                    mismatches.append(mismatch)
        # The deepest mismatch most likely belongs to the kind that was meant.
        closest = max(mismatches, key=lambda mismatch: len(mismatch.where))
        if closest.where or len(mismatches) == 1:
            raise closest
        raise Mismatch(
            f"found {describe_value(value)}, which is none of the {len(unique)} kinds of value that are taken here."
        )

    return Shape({"anyOf": [shape.schema for shape in unique]}, convert)


def optional(shape: Shape) -> Shape:
    """The same, or null."""
    takes_null = shape is NULL or not shape.schema or NULL.schema in shape.schema.get("anyOf", ())
    return shape if takes_null else union_of((shape, NULL))


def list_of(item: Shape, build: Callable[[list[Any]], Any] = list) -> Shape:
    schema: JsonObject = {"type": "array"} | ({"items": item.schema} if item.schema else {})
    return Shape(schema, lambda value: build(_items(value, item)))


def set_of(item: Shape, build: Callable[[Iterable[Any]], Any]) -> Shape:
    """Items of unknown type may not be hashable, which is a Mismatch."""

    def convert(value: Json) -> Any:
        items = _items(value, item)
        if len({_identity(each) for each in value}) < len(value):
            raise Mismatch("found the same item twice, expected each once.")
        try:
            return build(items)
        except TypeError:
            raise Mismatch("found items that a set cannot hold, such as objects or arrays.") from None

    return Shape(list_of(item).schema | {"uniqueItems": True}, convert)


def tuple_of(items: Sequence[Shape], build: Callable[[list[Any]], Any] = tuple) -> Shape:
    size = len(items)
    schema: JsonObject = {"type": "array", "minItems": size, "maxItems": size}
    if size:
        schema["prefixItems"] = [item.schema for item in items]

    def convert(value: Json) -> Any:
        if not isinstance(value, list) or len(value) != size:
            raise Mismatch(f"found {describe_value(value)}, expected an array of {size}.")
        return build([_inside(at, item, each) for at, (item, each) in enumerate(zip(items, value, strict=True))])

    return Shape(schema, convert)


def mapping_of(key: Shape, item: Shape, build: Callable[[dict[Any, Any]], Any] = dict) -> Shape:
    """key takes strings, because JSON has no other keys."""
    schema: JsonObject = {"type": "object", "additionalProperties": item.schema or True}
    if key.schema != {"type": "string"}:
        schema["propertyNames"] = key.schema

    def convert(value: Json) -> Any:
        if not isinstance(value, dict):
            raise Mismatch(f"found {describe_value(value)}, expected an object.")
        return build({_inside(name, key, name): _inside(name, item, each) for name, each in value.items()})

    return Shape(schema, convert)


def object_of(members: Sequence[Member], build: Callable[[dict[str, Any]], Any], *, rest: Shape | None = None) -> Shape:
    """rest: the shape of additional members, None to forbid them. build gets only the members that are present."""
    named = {member.name: member for member in members}
    required = [member.name for member in members if not member.has_default]
    schema: JsonObject = {"type": "object", "properties": {member.name: member.member_schema() for member in members}}
    if required:
        schema["required"] = required
    schema["additionalProperties"] = False if rest is None else (rest.schema or True)

    def convert(value: Json) -> Any:
        if not isinstance(value, dict):
            raise Mismatch(f"found {describe_value(value)}, expected an object.")
        missing = [name for name in required if name not in value]
        if missing:
            raise Mismatch(f"{', '.join(map(quote, missing))} missing.")
        given: dict[str, Any] = {}
        for name, each in value.items():
            shape = named[name].shape if name in named else rest
            if shape is None:
                raise Mismatch(f"{quote(name)} is no member of it; expected {', '.join(map(quote, named)) or 'none'}.")
            given[name] = _inside(name, shape, each)
        try:
            return build(given)
        except Mismatch:
            raise
        except (TypeError, ValueError) as error:  # a class that checks its own members
            raise Mismatch(f"{str(error)[:500]}") from error

    return Shape(schema, convert)


def _items(value: Json, item: Shape) -> list[Any]:
    if not isinstance(value, list):
        raise Mismatch(f"found {describe_value(value)}, expected an array.")
    return [_inside(at, item, each) for at, each in enumerate(value)]


def _inside(step: str | int, shape: Shape, value: Json) -> Any:
    try:
        return shape.convert(value)
    except Mismatch as mismatch:
        raise mismatch.inside(step) from None


def _identity(value: Json) -> bytes:
    """Equal for values that are equal in JSON."""
    return exact.encode(_sorted(whole(value)))


def _sorted(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def _json_default(value: object) -> Json:
    """The default as JSON; UNSET if JSON cannot express it or it is too long."""
    if value is msgspec.UNSET:
        return value
    try:
        default = msgspec.to_builtins(value)
        size = len(msgspec.json.encode(default))
    except (TypeError, ValueError, RecursionError):
        return msgspec.UNSET
    return default if size <= _MAX_DEFAULT else msgspec.UNSET
