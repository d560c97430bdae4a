"""Whether arguments certainly fit a tool's schema.

A tool of the client is only borrowed where there is no doubt, so this knows the plain part of JSON Schema that such tools are
written in, and takes any other keyword for a no. Linear in the schema: nothing is followed, nothing is tried twice.
"""

from __future__ import annotations

from typing import Any

from ...types import Json, JsonObject

_DEEPEST = 6
_WORDS = frozenset(
    {"title", "description", "default", "examples", "$schema", "format", "deprecated", "$comment", "$id"}
)
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def properties_of(schema: JsonObject | None) -> dict[str, JsonObject]:
    """The members of an object by name; those whose schema is no object are left out."""
    found = schema.get("properties") if isinstance(schema, dict) else None
    return {name: item for name, item in found.items() if isinstance(item, dict)} if isinstance(found, dict) else {}


def required_of(schema: JsonObject | None) -> list[str]:
    found = schema.get("required") if isinstance(schema, dict) else None
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


def types_of(schema: JsonObject) -> frozenset[str]:
    """The types that it names, also as plain alternatives; none if it does not say."""
    named = schema.get("type")
    names = [named] if isinstance(named, str) else named if isinstance(named, list) else []
    for key in ("anyOf", "oneOf"):
        choices = schema.get(key)
        for choice in choices if isinstance(choices, list) else ():
            names = [*names, choice.get("type")] if isinstance(choice, dict) else names
    return frozenset(name for name in names if isinstance(name, str))


def fits(value: Json, schema: Any, depth: int = 0) -> bool:
    if schema is True or schema is None:
        return True
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return False
    return all(key in _WORDS or _keeps(value, key, wanted, schema, depth) for key, wanted in schema.items())


def _keeps(value: Json, key: str, wanted: Any, schema: JsonObject, depth: int) -> bool:
    match key:
        case "type":
            names = [wanted] if isinstance(wanted, str) else wanted
            return isinstance(names, list) and any(_is(value, name) for name in names)
        case "enum":
            return isinstance(wanted, list) and value in wanted
        case "const":
            return bool(value == wanted)
        case "anyOf" | "oneOf":
            return isinstance(wanted, list) and any(fits(value, item, depth + 1) for item in wanted[:20])
        case "properties" | "required" | "additionalProperties":
            return not isinstance(value, dict) or _keeps_members(value, key, wanted, schema, depth)
        case "items":
            return not isinstance(value, list) or all(fits(item, wanted, depth + 1) for item in value)
    return _keeps_bounds(value, key, wanted)


def _keeps_members(value: JsonObject, key: str, wanted: Any, schema: JsonObject, depth: int) -> bool:
    if key == "required":
        return isinstance(wanted, list) and all(name in value for name in wanted)
    if key == "properties":
        return isinstance(wanted, dict) and all(
            fits(item, wanted[name], depth + 1) for name, item in value.items() if name in wanted
        )
    known = properties_of(schema)
    return all(fits(item, wanted, depth + 1) for name, item in value.items() if name not in known)


def _keeps_bounds(value: Json, key: str, wanted: Any) -> bool:
    if not isinstance(wanted, int | float):
        return False
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match key:
        case "minimum":
            return not is_number or value >= wanted
        case "maximum":
            return not is_number or value <= wanted
        case "exclusiveMinimum":
            return not is_number or value > wanted
        case "exclusiveMaximum":
            return not is_number or value < wanted
        case "minLength":
            return not isinstance(value, str) or len(value) >= wanted
        case "maxLength":
            return not isinstance(value, str) or len(value) <= wanted
        case "minItems":
            return not isinstance(value, list) or len(value) >= wanted
        case "maxItems":
            return not isinstance(value, list) or len(value) <= wanted
    return False


def _is(value: Json, name: object) -> bool:
    kinds = _TYPES.get(name) if isinstance(name, str) else None
    if kinds is None:
        return False
    return isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))
