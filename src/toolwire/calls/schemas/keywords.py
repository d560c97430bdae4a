"""Where schemas stand inside a JSON Schema: everything that walks one asks here, so that a property named "items" stays a name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias
from urllib.parse import unquote

from ...types import Json, JsonObject

Path: TypeAlias = tuple[str | int, ...]

SAME = frozenset({"not", "if", "then", "else"})  # one schema, on the value itself
SAME_LISTS = frozenset({"allOf", "anyOf", "oneOf"})
INNER = frozenset(
    {
        "items",
        "additionalItems",
        "contains",
        "additionalProperties",
        "propertyNames",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
INNER_LISTS = frozenset({"prefixItems"})
MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})


def children(schema: JsonObject) -> Iterator[tuple[Path, Json]]:
    """Every schema directly inside this one, with the way to it; what is not an object or boolean is left out."""
    for key, value in schema.items():
        if key in MAPS:
            if isinstance(value, dict):
                yield from (((key, name), item) for name, item in value.items() if is_schema(item))
        elif key in SAME_LISTS or key in INNER_LISTS or (key == "items" and isinstance(value, list)):
            if isinstance(value, list):
                yield from (((key, index), item) for index, item in enumerate(value) if is_schema(item))
        elif (key in INNER or key in SAME) and is_schema(value):
            yield (key,), value


def is_schema(value: Json) -> bool:
    return isinstance(value, dict | bool)


def target(root: Json, reference: str) -> Json:
    """What a reference inside this document leads to; KeyError where it leads nowhere or outside."""
    if reference in ("", "#"):
        return root
    if not reference.startswith("#/"):
        raise KeyError(reference)
    found = root
    for step in unquote(reference[2:]).split("/"):
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and key in found:
            found = found[key]
        elif isinstance(found, list) and key.isascii() and key.isdigit() and len(key) < 6 and int(key) < len(found):
            found = found[int(key)]
        else:
            raise KeyError(reference)
    return found


def pointer(path: Path) -> str:
    """The path as people read it in a message: properties.edits.items, "" for the root."""
    return ".".join(str(step) for step in path)


def properties_of(schema: JsonObject) -> JsonObject:
    """Of a schema as it came, which may hold anything."""
    found = schema.get("properties")
    return found if isinstance(found, dict) else {}


def required_of(schema: JsonObject) -> list[str]:
    found = schema.get("required")
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []
