"""Schemas for a back end that holds the model to them: all properties required, optional ones null instead, no others (H065).

A model under such a schema writes null for what it would have left out; without_added_nulls takes those away again.
"""

from __future__ import annotations

from collections.abc import Callable

from ...types import Json, JsonObject
from .keywords import Path, local, merge_schemas, properties_of, required_of, schemas_at, types_of

_DEEPEST = 40
_MOST = 5000
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_DROPPED = frozenset(
    {
        "not",
        "if",
        "then",
        "else",
        "dependentRequired",
        "dependentSchemas",
        "dependencies",
        "patternProperties",
        "propertyNames",
        "unevaluatedProperties",
        "unevaluatedItems",
        "contains",
        "minContains",
        "maxContains",
        "minProperties",
        "maxProperties",
        "uniqueItems",
        "minLength",
        "maxLength",
        "default",
        "examples",
        "$schema",
        "$id",
        "$comment",
    }
)

Tell = Callable[[Path, str], None]


class Impossible(Exception):
    """An object with free names has no strict form."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(why)
        self.path = path


def strict(schema: JsonObject, tell: Tell) -> JsonObject:
    writer = _Writer(schema, tell)
    return writer.schema(schema, ())


def without_added_nulls(arguments: JsonObject, schema: JsonObject) -> JsonObject:
    """schema: the original as the reader wrote it (Checker.schema). Nulls that it allows stay; the same object where none goes."""
    found = _without_nulls(arguments, (), schema)
    return found if isinstance(found, dict) else arguments


class _Writer:
    def __init__(self, root: JsonObject, tell: Tell) -> None:
        self._root = root
        self._tell = tell
        self._nodes = 0

    def schema(self, node: JsonObject, path: Path) -> JsonObject:
        self._nodes += 1
        if len(path) > 2 * _DEEPEST or self._nodes > _MOST:
            raise Impossible(path[:8], "it is too deep or too large")
        if "$ref" in node:
            return {"$ref": node["$ref"], **self._definitions(node, path)}
        out = {key: value for key, value in self._united(node, path).items() if not self._is_dropped(key, value, path)}
        out.update(self._definitions(node, path))
        if isinstance(out.get("anyOf"), list):
            out["anyOf"] = [self._inner(item, (*path, "anyOf", place)) for place, item in enumerate(out["anyOf"])]
        if "items" in out:
            out["items"] = self._inner(out["items"], (*path, "items"))
        return self._object(out, path) if _is_object(out) else out

    def _is_dropped(self, key: str, value: Json, path: Path) -> bool:
        if key not in _DROPPED and (key != "format" or value in _FORMATS):
            return key in ("$defs", "definitions")
        if key not in ("$schema", "$id", "$comment", "examples"):
            self._tell((*path, key), "it was left out")
        return True

    def _united(self, node: JsonObject, path: Path) -> JsonObject:
        found = dict(node)
        if isinstance(parts := found.pop("allOf", None), list):
            inner = [item for part in parts if isinstance(item := local(part, self._root), dict)]
            self._tell((*path, "allOf"), "it was merged into one")
            if _is_object(found) or any(_is_object(item) for item in inner):
                found = merge_schemas(found, inner, "all")
            else:
                for item in inner:
                    found = {**item, **found}
        if isinstance(parts := found.pop("oneOf", None), list):
            found["anyOf"] = [*_list(found.get("anyOf")), *parts]
            self._tell((*path, "oneOf"), "it became anyOf")
        return found

    def _definitions(self, node: JsonObject, path: Path) -> JsonObject:
        return {
            key: {name: self._inner(item, (*path, key, name)) for name, item in node[key].items()}
            for key in ("$defs", "definitions")
            if isinstance(node.get(key), dict)
        }

    def _inner(self, item: Json, path: Path) -> Json:
        if not isinstance(item, dict):
            raise Impossible(path, "it takes anything")
        return self.schema(item, path)

    def _object(self, node: JsonObject, path: Path) -> JsonObject:
        properties = properties_of(node)
        others = node.get("additionalProperties")
        if others is True or isinstance(others, dict) or (path and not properties and others is not False):
            raise Impossible(path, "its properties are not named")
        required = required_of(node)
        written: JsonObject = {}
        for name, item in properties.items():
            inner = self._inner(item, (*path, "properties", name))
            if name not in required and not _takes_null(inner):
                inner = _nullable(inner)
                self._tell((*path, "properties", name), "it may be null instead of left out")
            written[name] = inner
        return {**node, "properties": written, "required": list(written), "additionalProperties": False}


def _list(given: Json) -> list[Json]:
    return given if isinstance(given, list) else []


def _is_object(node: JsonObject) -> bool:
    return "object" in types_of(node) or isinstance(node.get("properties"), dict)


def _takes_null(node: JsonObject) -> bool:
    if isinstance(node.get("anyOf"), list):
        return any(isinstance(item, dict) and _takes_null(item) for item in node["anyOf"])
    return "null" in types_of(node)


def _nullable(node: JsonObject) -> JsonObject:
    types = node.get("type")
    if "$ref" in node or "anyOf" in node or "const" in node or not isinstance(types, str | list):
        words = {"description": node["description"]} if "description" in node and "$ref" not in node else {}
        return {**words, "anyOf": [node, {"type": "null"}]}
    found = {**node, "type": [*([types] if isinstance(types, str) else types), "null"]}
    if isinstance(node.get("enum"), list):
        found["enum"] = [*node["enum"], None]
    return found


def _without_nulls(value: Json, path: Path, schema: JsonObject) -> Json:
    if len(path) > _DEEPEST:
        return value
    if isinstance(value, list):
        items = [_without_nulls(item, (*path, place), schema) for place, item in enumerate(value)]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    if not isinstance(value, dict):
        return value
    required = {name for found in schemas_at(schema, path) for name in found.get("required", ())}
    kept = {
        name: _without_nulls(item, (*path, name), schema)
        for name, item in value.items()
        if item is not None or name in required or _allows_null(schema, (*path, name))
    }
    is_same = len(kept) == len(value) and all(kept[name] is item for name, item in value.items())
    return value if is_same else kept


def _allows_null(schema: JsonObject, path: Path) -> bool:
    found = schemas_at(schema, path)
    if not found:
        return True
    limited = [item for item in found if "type" in item or "enum" in item or "const" in item]
    return not limited or any(
        "null" in types_of(item) or None in item.get("enum", ()) or ("const" in item and item["const"] is None)
        for item in limited
    )
