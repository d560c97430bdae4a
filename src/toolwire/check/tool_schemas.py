"""Tool schemas of many families. A check forces one call with each of them, and validates its arguments."""

from __future__ import annotations

from ..types import JsonObject, Tool

_TEXT: JsonObject = {"type": "string"}
_COUNT: JsonObject = {"type": "integer"}


def _object(properties: JsonObject, required: list[str] | None = None, **more: object) -> JsonObject:
    wanted = list(properties) if required is None else required
    return {"type": "object", "properties": properties, "required": wanted} | more


# By family; the first of each family are the ones of a quick check.
_SCHEMAS: dict[str, JsonObject] = {
    "text": _object({"city": _TEXT}),
    "integer": _object({"count": {"type": "integer", "minimum": 1, "maximum": 10}}),
    "boolean": _object({"is_urgent": {"type": "boolean"}}),
    "enum": _object({"unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}}),
    "list": _object({"tags": {"type": "array", "items": _TEXT, "minItems": 1}}),
    "nested": _object({"place": _object({"city": _TEXT, "zip": _TEXT})}),
    "number": _object({"price": {"type": "number", "exclusiveMinimum": 0}}),
    "optional": _object({"city": _TEXT, "unit": _TEXT, "days": _COUNT}, ["city"]),
    "closed": _object({"query": _TEXT}, additionalProperties=False),
    "open": _object({"query": _TEXT}, additionalProperties=True),
    "empty": {"type": "object", "properties": {}},
    "nullable": _object({"comment": {"anyOf": [_TEXT, {"type": "null"}]}}),
    "type_list": _object({"value": {"type": ["string", "null"]}}),
    "any_of": _object({"target": {"anyOf": [_object({"id": _COUNT}), _object({"name": _TEXT})]}}),
    "one_of": _object({"filter": {"oneOf": [_TEXT, _COUNT]}}),
    "const": _object({"version": {"const": "v2"}, "name": _TEXT}),
    "pattern": _object({"code": {"type": "string", "pattern": "^[A-Z]{3}$", "description": "Three capital letters"}}),
    "format": _object({"day": {"type": "string", "format": "date", "description": "Like 2026-01-31"}}),
    "length": _object({"title": {"type": "string", "minLength": 3, "maxLength": 40}}),
    "list_of_objects": _object(
        {"points": {"type": "array", "items": _object({"x": _COUNT, "y": _COUNT}), "minItems": 2}}
    ),
    "integer_enum": _object({"level": {"type": "integer", "enum": [1, 2, 3]}}),
    "deep": _object({"a": _object({"b": _object({"c": _object({"d": _TEXT})})})}),
    "definitions": {
        "type": "object",
        "properties": {"from": {"$ref": "#/$defs/place"}, "to": {"$ref": "#/$defs/place"}},
        "required": ["from", "to"],
        "$defs": {"place": _object({"city": _TEXT})},
    },
    "odd_names": _object({"file-path": _TEXT, "max.results": _COUNT}),
    "many": _object({f"field_{number}": _TEXT for number in range(20)}, [f"field_{number}" for number in range(5)]),
}
_QUICK = 6


def schema_tools(*, is_quick: bool) -> list[tuple[str, Tool]]:
    """Family and tool."""
    families = list(_SCHEMAS.items())[: _QUICK if is_quick else None]
    return [
        (family, Tool(name=f"record_{family}", description="Record example data of your choice.", schema=schema))
        for family, schema in families
    ]
