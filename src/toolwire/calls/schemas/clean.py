"""Schemas as a back end takes them: what it refuses is rewritten, so that one tool of forty does not cost the whole request.

The client's own schema is never changed, and calls are always validated against it; what is written here is only what the model
gets to see. Every change is named with its place.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from ...profiles import SchemaRules
from ...types import Json, JsonObject
from .keywords import Path, children, local, merge_schemas, pointer, properties_of, required_of
from .strict import Impossible, strict
from .subset import Texts, subset

_DEEPEST = 60
_DEEPEST_UNION = 5
_MOST = 500
_UNIONS = ("allOf", "anyOf", "oneOf")


class SchemaChange(NamedTuple):
    where: str
    what: str


class CleanSchema(Struct, frozen=True):
    """schema: None where the back end wants none for a tool without arguments. is_strict: the schema could be made strict.
    texts: places whose values are written as strings."""

    schema: JsonObject | None
    changes: tuple[SchemaChange, ...] = ()
    is_strict: bool = False
    texts: Texts = Texts()


def clean_schema(schema: JsonObject | None, rules: SchemaRules) -> CleanSchema:
    """The same object where nothing has to change."""
    changes: list[SchemaChange] = []
    found = _as_object(schema, changes)
    if not rules.has_root_unions:
        found = _without_root_unions(found, changes)
    if rules.is_subset:
        simple, texts = subset(found, lambda path, what: changes.append(SchemaChange(pointer(path), what)))
        return CleanSchema(simple, tuple(changes), texts=texts)
    if rules.needs_properties:
        found = _with_properties(found, (), changes)
    if not rules.is_strict:
        return CleanSchema(found, tuple(changes))
    reported = list(changes)
    try:
        written = strict(found, lambda path, what: reported.append(SchemaChange(pointer(path), what)))
    except Impossible as reason:
        changes.append(SchemaChange(pointer(reason.path), f"it cannot be strict: {reason}"))
        return CleanSchema(found, tuple(changes))
    return CleanSchema(written, tuple(reported), is_strict=True)


def _as_object(schema: JsonObject | None, changes: list[SchemaChange]) -> JsonObject:
    """H068: missing, null or without a type."""
    if schema and (schema.get("type") is not None or "$ref" in schema):
        return schema
    if schema and any(key in schema for key in _UNIONS):
        return schema
    changes.append(SchemaChange("", "a type was added"))
    return {**(schema or {}), "type": "object", "properties": properties_of(schema or {})}


def _without_root_unions(schema: JsonObject, changes: list[SchemaChange]) -> JsonObject:
    """One object with the properties of all variants; its description lists which of them go together."""
    given = [key for key in _UNIONS if isinstance(schema.get(key), list)]
    if not given and "$ref" not in schema:
        return schema
    found: JsonObject = {**local(schema, schema)}
    flattener = _Flattener(schema)
    for key in [key for key in _UNIONS if isinstance(found.get(key), list)]:
        variants = [flattener.flat(item) for item in found.pop(key)]
        found = merge_schemas(found, variants, "all" if key == "allOf" else "some")
        if key != "allOf" and (words := _alternatives(variants)):
            found["description"] = f"{found.get('description') or ''} {words}".strip()
        changes.append(SchemaChange("", f"{key} was merged into one object"))
    return found


class _Flattener:
    """Variants without unions of their own, to a bound: unions of references to unions grow without end."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._left = _MOST
        self._depth = 0

    def flat(self, variant: Json) -> JsonObject:
        self._left -= 1
        given = local(variant, self._root)
        found: JsonObject = given if isinstance(given, dict) else {}
        for key in _UNIONS:
            if isinstance(found.get(key), list) and self._left > 0 and self._depth < _DEEPEST_UNION:
                self._depth += 1
                inner = [self.flat(item) for item in found[key][: self._left]]
                self._depth -= 1
                rest = {name: value for name, value in found.items() if name != key}
                found = merge_schemas(rest, inner, "all" if key == "allOf" else "some")
        return found


def _alternatives(variants: list[JsonObject]) -> str:
    sets = [", ".join(required_of(variant) or properties_of(variant)) for variant in variants]
    named = [names[:300] for names in dict.fromkeys(sets) if names]
    return f"Give one of these sets of arguments: {'; or '.join(named[:20])}." if len(named) > 1 else ""


def _with_properties(schema: Json, path: Path, changes: list[SchemaChange]) -> Json:
    if not isinstance(schema, dict) or len(path) > _DEEPEST:
        return schema
    found = schema
    if schema.get("type") == "object" and not isinstance(schema.get("properties"), dict):
        found = {**schema, "properties": {}}
        changes.append(SchemaChange(pointer(path), "properties were added"))
    for step, item in children(schema):
        better = _with_properties(item, (*path, *step), changes)
        if better is not item:
            found = replaced(found, schema, step, better)
    return found


def replaced(found: JsonObject, original: JsonObject, step: Path, item: Json) -> JsonObject:
    """found, a copy of original if it is still that, with another schema at this step."""
    found = found if found is not original else {**original}
    key = str(step[0])
    if len(step) == 1:
        found[key] = item
        return found
    if found.get(key) is original.get(key):
        found[key] = original[key].copy()
    found[key][step[1]] = item
    return found
