"""The structure of JSON Schemas: where subschemas are, which of them apply to a place of a value, and merging several into one.

Everything that walks a schema uses this module, so that a property named "items" stays a name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias
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


_MOST = 400


def schemas_at(root: JsonObject, path: Path) -> list[JsonObject]:
    """All that may apply there, each once; root is a schema as the reader wrote it."""
    found = schemas_of(root, [root])
    for step in path:
        found = schemas_of(root, [inner for schema in found for inner in inside(schema, step)])
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
    """The types that the schema names itself."""
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


def inside(schema: JsonObject, step: str | int) -> Iterator[Json]:
    if isinstance(step, int):
        prefix = schema.get("prefixItems", ())
        yield prefix[step] if step < len(prefix) else schema.get("items")
    elif step in schema.get("properties", ()):
        yield schema["properties"][step]
    else:
        yield schema.get("additionalProperties")
        yield from schema.get("patternProperties", {}).values()


_DEEPEST = 8


def local(schema: Json, root: JsonObject) -> Json:
    """The target of a local reference, with the other members of the schema; the schema itself if it is none."""
    for _ in range(_DEEPEST):
        reference = schema.get("$ref") if isinstance(schema, dict) else None
        if not isinstance(reference, str):
            break
        try:
            found = target(root, reference)
        except KeyError:
            break
        if not isinstance(found, dict):
            break
        schema = {**found, **{key: value for key, value in schema.items() if key != "$ref"}}
    return schema


def merge_schemas(base: JsonObject, variants: list[JsonObject], need: Literal["all", "some"]) -> JsonObject:
    """One object that takes what base and the variants take: required by all of them (or, where all must fit, by any)."""
    properties: JsonObject = dict(properties_of(base))
    for variant in variants:
        for name, item in properties_of(variant).items():
            properties[name] = item if name not in properties else either(properties[name], item)
    required = required_of(base)
    lists = [required_of(variant) for variant in variants]
    for name in dict.fromkeys(name for names in lists for name in names):
        if name not in required and (need == "all" or all(name in names for names in lists)):
            required.append(name)
    found = {**base, "type": "object", "properties": properties}
    found.pop("required", None)
    if required:
        found["required"] = required
    if need == "some" and variants and all(variant.get("additionalProperties") is False for variant in variants):
        found["additionalProperties"] = False
    return found


def either(first: Json, second: Json) -> Json:
    """What takes one or the other; two lists of constants become one list."""
    if first == second:
        return first
    if isinstance(first, dict) and isinstance(second, dict):
        values = [_values(first), _values(second)]
        if values[0] and values[1] and first.get("type") == second.get("type"):
            kept = {key: item for key, item in {**second, **first}.items() if key not in ("const", "enum")}
            return {**kept, "enum": list(dict.fromkeys(values[0] + values[1]))}
        if isinstance(first.get("anyOf"), list) and set(first) == {"anyOf"}:
            return first if second in first["anyOf"] else {"anyOf": [*first["anyOf"], second]}
    return {"anyOf": [first, second]}


def _values(schema: JsonObject) -> list[Json]:
    found = [schema["const"]] if "const" in schema else schema.get("enum")
    return found if isinstance(found, list) and all(isinstance(item, str | int) for item in found) else []
