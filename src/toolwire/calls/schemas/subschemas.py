"""Which schemas speak about one place of a value: through properties, items, references and unions, as far as paths tell."""

from __future__ import annotations

from collections.abc import Iterator

from ...types import Json, JsonObject
from .keywords import SAME_LISTS, Path

_MOST = 400


def schemas_at(root: JsonObject, path: Path) -> list[JsonObject]:
    """All that may apply there, each once; root is a schema as the reader wrote it."""
    found = schemas_of(root, [root])
    for step in path:
        found = schemas_of(root, [inner for schema in found for inner in _inside(schema, step)])
    return found


def declared(root: JsonObject, path: Path) -> set[str]:
    """The names of properties that an object at this place may have."""
    return {name for schema in schemas_at(root, path) for name in schema.get("properties", ())}


def referred(root: JsonObject, schema: Json) -> Json:
    """What a schema refers to, or itself where it refers to nothing."""
    reference = schema.get("$ref") if isinstance(schema, dict) else None
    if reference is None:
        return schema
    return root if reference == "#" else root["$defs"][reference.removeprefix("#/$defs/")]


def types_of(schema: Json) -> set[str]:
    """Those it names, whatever else stands there."""
    given = schema.get("type") if isinstance(schema, dict) else None
    if isinstance(given, str):
        return {given}
    return {name for name in given if isinstance(name, str)} if isinstance(given, list) else set()


def schemas_of(root: JsonObject, schemas: list[Json]) -> list[JsonObject]:
    """These, and what they refer to or are unions of."""
    found: dict[int, JsonObject] = {}
    waiting = schemas[::-1]
    while waiting and len(found) < _MOST:
        schema = waiting.pop()
        if not isinstance(schema, dict) or id(schema) in found:
            continue
        found[id(schema)] = schema
        waiting += [item for key in SAME_LISTS for item in schema.get(key, ())]
        waiting += [schema[key] for key in ("then", "else") if key in schema]
        if "$ref" in schema:
            waiting.append(referred(root, schema))
    return list(found.values())


def _inside(schema: JsonObject, step: str | int) -> Iterator[Json]:
    if isinstance(step, int):
        prefix = schema.get("prefixItems", ())
        yield prefix[step] if step < len(prefix) else schema.get("items")
    elif step in schema.get("properties", ()):
        yield schema["properties"][step]
    else:
        yield schema.get("additionalProperties")
        yield from schema.get("patternProperties", {}).values()
