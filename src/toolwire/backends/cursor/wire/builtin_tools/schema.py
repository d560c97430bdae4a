"""The plain members of a tool's schema: which arguments it names, demands, and of which types. Whether arguments fit is judged by Fits."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from .....types import JsonObject, Tool

# Whether arguments certainly fit the schema of a tool. Handed in, because the one judge of schemas belongs to calls.
Fits: TypeAlias = Callable[[Tool, JsonObject], bool]


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
