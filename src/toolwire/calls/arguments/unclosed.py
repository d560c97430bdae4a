"""Whether an object that was not closed can be closed: only where nothing more could have followed.

A call that ends early looks the same as one whose last brace was forgotten. The difference is what the tool could still have
been given: where every property that the schema knows is there already, and no others are foreseen, nothing was lost.
"""

from __future__ import annotations

from ...types import Json, JsonObject
from ..schemas.keywords import Path
from ..schemas.subschemas import schemas_at
from .edits import find


def is_whole(arguments: JsonObject, unclosed: list[Path], schema: JsonObject) -> bool:
    return all(_is_full(find(arguments, path), schemas_at(schema, path)) for path in unclosed)


def _is_full(value: Json, schemas: list[JsonObject]) -> bool:
    if isinstance(value, list):
        limits = [schema["maxItems"] for schema in schemas if "maxItems" in schema]
        return bool(limits) and len(value) >= max(limits)
    named = {name for schema in schemas for name in schema.get("properties", ())}
    return (bool(named) or not value) and named <= set(value) and not any(map(is_open, schemas))


def is_open(schema: JsonObject) -> bool:
    """Made for names that it does not list."""
    others = schema.get("additionalProperties")
    return others is True or isinstance(others, dict) or "patternProperties" in schema
