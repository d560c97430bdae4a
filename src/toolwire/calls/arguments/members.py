"""Members of arguments: edits at one place, names that differ only in spelling, and whether an unclosed object is complete.

A call that was cut looks like one whose last brace was forgotten. An object can be closed only where every property of the schema is
present and no other is allowed: then nothing can be missing.
"""

from __future__ import annotations

import json
import re
from typing import TypeAlias

from msgspec import Struct

from ...types import Json, JsonObject
from ..schemas.keywords import Path, children, schemas_at

_END_OF_NAME = re.compile(r'"[ \t\r\n]*:')


class Put(Struct, frozen=True):
    path: Path
    value: Json
    repair: str


class Remove(Struct, frozen=True):
    path: Path
    repair: str


class Rename(Struct, frozen=True):
    """path leads to the member; name is its new key."""

    path: Path
    name: str
    repair: str


Edit: TypeAlias = Put | Remove | Rename


def find(value: Json, path: Path) -> Json:
    """Raises KeyError, IndexError or TypeError where there is nothing."""
    for step in path:
        value = value[step]
    return value


def apply_edit(value: Json, edit: Edit) -> Json:
    """Only the containers on the way are copied. An edit whose place an earlier one took away changes nothing."""
    try:
        find(value, edit.path)
    except (KeyError, IndexError, TypeError):
        return value
    return _changed(value, edit, edit.path)


def put_all(value: Json, puts: list[tuple[Path, Json]]) -> Json:
    """Many at once, each container copied once."""
    by_step: dict[str | int, list[tuple[Path, Json]]] = {}
    for path, item in puts:
        if not path:
            return item
        by_step.setdefault(path[0], []).append((path[1:], item))
    copy = value.copy()
    for step, inner in by_step.items():
        copy[step] = put_all(value[step], inner)
    return copy


def _changed(value: Json, edit: Edit, path: Path) -> Json:
    if not path:
        return edit.value if isinstance(edit, Put) else value
    step = path[0]
    if len(path) > 1 or isinstance(edit, Put):
        copy = value.copy()
        copy[step] = _changed(value[step], edit, path[1:])
        return copy
    if isinstance(edit, Remove):
        return {key: item for key, item in value.items() if key != step}
    if edit.name in value:
        return value
    return {edit.name if key == step else key: item for key, item in value.items()}


_SEPARATORS = re.compile(r"[\W_]+")
_MOST_NODES = 5_000


def same_name(name: str) -> str:
    """What is left of a name without its case, separators and quotes."""
    return _SEPARATORS.sub("", name).casefold()


def all_names(schema: JsonObject) -> frozenset[str]:
    """The names of properties at any depth, up to a limit."""
    found: set[str] = set()
    waiting: list[Json] = [schema]
    for _ in range(_MOST_NODES):
        if not waiting:
            break
        node = waiting.pop()
        if isinstance(node, dict):
            found.update(node.get("properties", ()))
            waiting += [item for _, item in children(node)]
    return frozenset(found)


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


def repeated_members(raw: str, arguments: JsonObject) -> dict[str, bool]:
    """The names that an object of this JSON text has twice, and whether their values are equal. arguments: the decoded text."""
    if len(_END_OF_NAME.findall(raw)) <= len(arguments):
        return {}
    found: dict[str, bool] = {}

    def join(pairs: list[tuple[str, Json]]) -> JsonObject:
        members = dict(pairs)
        if len(members) < len(pairs):
            first: JsonObject = {}
            for name, value in pairs:
                if name in first:
                    found[name] = found.get(name, True) and first[name] == value
                else:
                    first[name] = value
        return members

    try:
        json.loads(raw, object_pairs_hook=join, parse_float=str, parse_int=str)
    except (ValueError, RecursionError):
        return {}
    return found
