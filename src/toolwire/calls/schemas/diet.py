"""Shorter tool definitions: descriptions are trimmed, titles, comments and examples dropped, and equal subschemas shared by reference.

What validates never changes: only annotations are touched, and a shared subschema is replaced by a reference to itself. Values (const, enum,
default) and names of members are never read as schemas.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from ...types import JsonObject, Tool

_TOOL_TEXT, _MEMBER_TEXT = 300, 120  # characters of a description
_DROPPED = frozenset({"examples", "example", "$comment", "title", "markdownDescription", "x-examples"})
_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_SINGLE = [
    "items",
    "additionalProperties",
    "additionalItems",
    "contains",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
    "unevaluatedProperties",
    "unevaluatedItems",
]
_BASES = frozenset({"$id", "id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveAnchor", "$recursiveRef"})
_SHARED = "shared_"
_LEAST = 120  # bytes of a subschema that is worth a reference
_DEEPEST = 60


def shorten(tool: Tool) -> Tool:
    """The same object where nothing is left out."""
    if tool.kind != "function" or tool.is_deferred:
        return tool
    about = _trimmed(tool.description, _TOOL_TEXT)
    schema = None if tool.schema is None else shorten_schema(tool.schema)
    if about == tool.description and schema == tool.schema:
        return tool
    return replace(tool, description=about, schema=schema, source=None)


def shorten_schema(schema: JsonObject) -> JsonObject:
    """A schema that accepts the same values. One that is nested too deeply is returned as it is."""
    try:
        return _shared(_without_annotations(schema, _DEEPEST))
    except RecursionError:
        return schema


def _without_annotations(schema: Any, depth: int) -> Any:
    if not isinstance(schema, dict):
        return schema
    if not depth:
        raise RecursionError
    shorter = {key: value for key, value in schema.items() if key not in _DROPPED}
    if isinstance(shorter.get("description"), str):
        shorter["description"] = _trimmed(shorter["description"], _MEMBER_TEXT)
    return _map_subschemas(shorter, lambda inner: _without_annotations(inner, depth - 1))


def _map_subschemas(schema: JsonObject, change: Callable[[Any], Any]) -> JsonObject:
    changed = dict(schema)
    for key in _MAPS:
        if isinstance(value := schema.get(key), dict):
            changed[key] = {name: change(inner) for name, inner in value.items()}
    for key in _LISTS:
        if isinstance(value := schema.get(key), list):
            changed[key] = [change(inner) for inner in value]
    for key in _SINGLE:
        value = schema.get(key)
        if isinstance(value, dict):
            changed[key] = change(value)
        elif key == "items" and isinstance(value, list):
            changed[key] = [change(inner) for inner in value]
    return changed


def _shared(schema: JsonObject) -> JsonObject:
    """Equal large subschemas are written once, under $defs."""
    found, is_plain = Counter[bytes](), True

    def count(inner: Any) -> Any:
        nonlocal is_plain
        if isinstance(inner, dict):
            is_plain = is_plain and _BASES.isdisjoint(inner) and _is_plain_reference(inner.get("$ref"))
            found[_key(inner)] += 1
            _map_subschemas(inner, count)
        return inner

    count(schema)
    repeated = {key for key, times in found.items() if times > 1 and len(key) >= _LEAST}
    taken = schema.get("$defs", {})
    if not repeated or not is_plain or not isinstance(taken, dict) or any(name.startswith(_SHARED) for name in taken):
        return schema
    names: dict[bytes, str] = {}
    definitions: JsonObject = {}

    def refer(inner: Any) -> Any:
        if not isinstance(inner, dict):
            return inner
        key = _key(inner)
        if key not in repeated:
            return _map_subschemas(inner, refer)
        if key not in names:
            names[key] = f"{_SHARED}{len(names) + 1}"
            definitions[names[key]] = _map_subschemas(inner, refer)
        return {"$ref": f"#/$defs/{names[key]}"}

    shorter = _map_subschemas(schema, refer)
    return {**shorter, "$defs": {**shorter.get("$defs", {}), **definitions}}


def _is_plain_reference(reference: Any) -> bool:
    """To a whole definition, which no sharing moves."""
    if reference is None or reference == "#":
        return True
    return (
        isinstance(reference, str)
        and reference.startswith(("#/$defs/", "#/definitions/"))
        and reference.count("/") == 2
    )


def _key(schema: JsonObject) -> bytes:
    return msgspec.json.encode(schema, enc_hook=str)  # in order, so that equal schemas with another order stay apart


def _trimmed(text: str | None, longest: int) -> str | None:
    """Up to the last sentence that fits, else up to the last word."""
    if text is None:
        return None
    text = text.strip()
    if len(text) <= longest:
        return text
    cut = text[:longest]
    end = max(cut.rfind(". "), cut.rfind(".\n"), cut.rfind("\n\n"))
    if end > longest // 3:
        return cut[: end + 1].rstrip()
    return cut.rsplit(None, 1)[0].rstrip(",;:") + " ..."
