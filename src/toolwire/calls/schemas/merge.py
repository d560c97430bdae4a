"""Several schemas of one object made one, for back ends that have no unions or only half of them."""

from __future__ import annotations

from typing import Literal

from ...types import Json, JsonObject
from .keywords import properties_of, required_of, target

_DEEPEST = 8


def local(schema: Json, root: JsonObject) -> Json:
    """The schema that a reference inside the document means, its own words kept; itself where it is none."""
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


def merged(base: JsonObject, variants: list[JsonObject], need: Literal["all", "some"]) -> JsonObject:
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
