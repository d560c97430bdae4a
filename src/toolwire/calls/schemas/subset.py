"""Schemas in the subset that Gemini's functions take: few keywords, one type each, no references, no empty objects.

References are written out, to a bound; a cycle ends in an object written as text (H069, H070). What the subset cannot say is put
in words where the model reads them. Texts that stand for objects come back as texts, and are decoded by the schema of the client.
"""

from __future__ import annotations

from collections.abc import Callable

from ...types import Json, JsonObject
from .merging import local, merged
from .places import types_of
from .positions import Path, properties_of, required_of
from .reading import type_name

_MOST = 2000
_DEEPEST = 30
_KEPT = (
    "title",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "pattern",
)
_FORMATS = {
    "string": frozenset({"date-time", "enum"}),
    "integer": frozenset({"int32", "int64"}),
    "number": frozenset({"float", "double"}),
}
_WORDS = {"not", "patternProperties", "propertyNames", "multipleOf", "uniqueItems", "contains", "if", "default"}

Tell = Callable[[Path, str], None]


def subset(schema: JsonObject, tell: Tell) -> JsonObject | None:
    """None for a tool without arguments (H067)."""
    written = _Writer(schema, tell).schema(schema, (), ())
    return written if written.get("properties") else None


class _Writer:
    def __init__(self, root: JsonObject, tell: Tell) -> None:
        self._root = root
        self._tell = tell
        self._nodes = 0

    def schema(self, given: Json, path: Path, seen: tuple[str, ...]) -> JsonObject:
        self._nodes += 1
        if not isinstance(given, dict):
            return _as_text("Any JSON value", {})
        reference = given.get("$ref")
        if isinstance(reference, str):
            if reference in seen or self._nodes > _MOST or len(seen) > _DEEPEST:
                self._tell(path, "the schema goes round in a circle; from here on it is text")
                return _as_text("A JSON object", given)
            self._tell(path, "a reference was written out")
            return (
                self.schema(local(given, self._root), path, (*seen, reference)) if self._leads(given) else _any(given)
            )
        if self._nodes > _MOST or len(path) > 2 * _DEEPEST:
            self._tell(path[:8], "the schema is too large; from here on it is text")
            return _as_text("A JSON value", given)
        return self._plain(self._united(given, path), path, seen)

    def _leads(self, given: JsonObject) -> bool:
        found = local(given, self._root)
        return isinstance(found, dict) and "$ref" not in found

    def _united(self, given: JsonObject, path: Path) -> JsonObject:
        found = dict(given)
        if isinstance(parts := found.pop("allOf", None), list):
            inner = [item for part in parts if isinstance(item := local(part, self._root), dict)]
            is_object = any("properties" in item for item in (*inner, found))
            found = (
                merged(found, inner, "all") if is_object else {**{k: v for i in inner for k, v in i.items()}, **found}
            )
            self._tell((*path, "allOf"), "it was merged into one")
        if isinstance(parts := found.pop("oneOf", None), list):
            found["anyOf"] = [*(found["anyOf"] if isinstance(found.get("anyOf"), list) else []), *parts]
        return found

    def _plain(self, node: JsonObject, path: Path, seen: tuple[str, ...]) -> JsonObject:
        types = [name for name in _listed(node.get("type")) if name and name != "null"]
        is_nullable = node.get("nullable") is True or "null" in _listed(node.get("type"))
        out: JsonObject = {"nullable": True} if is_nullable else {}
        variants = node.get("anyOf") if isinstance(node.get("anyOf"), list) else [{"type": name} for name in types]
        if len(types) > 1 or "anyOf" in node:
            self._variants(node, variants or [], out, path, seen)
        else:
            self._single(types[0] if types else _guessed(node), node, out, path, seen)
        words = [node.get("description"), *self._said(node, path)]
        if text := " ".join(str(word) for word in words if word):
            out["description"] = f"{text} {out.get('description', '')}".strip()
        return out

    def _variants(
        self, node: JsonObject, variants: list[Json], out: JsonObject, path: Path, seen: tuple[str, ...]
    ) -> None:
        real = [item for item in variants if not (isinstance(item, dict) and item.get("type") == "null")]
        if len(real) < len(variants):
            out["nullable"] = True
        rest = {key: value for key, value in node.items() if key not in ("anyOf", "description", "type", "nullable")}
        if path and path[-1] == "items":  # H062: no unions directly inside a list
            self._tell(path, "only the first of several forms is told") if len(real) > 1 else None
            real = real[:1]
        inner = [self.schema({**rest, **_dict(item)}, (*path, "anyOf", place), seen) for place, item in enumerate(real)]
        if len(inner) == 1:
            out.update(inner[0])
        elif inner:
            out["anyOf"] = inner

    def _single(self, kind: str, node: JsonObject, out: JsonObject, path: Path, seen: tuple[str, ...]) -> None:
        out["type"] = kind
        out.update({key: node[key] for key in _KEPT if node.get(key) is not None})
        for bound, plain in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
            if bound in node and not isinstance(node[bound], bool) and plain not in out:
                out[plain] = node[bound]
                self._tell((*path, bound), f"it became {plain}")
        if node.get("format") in _FORMATS.get(kind, ()):
            out["format"] = node["format"]
        values = node.get("enum") if isinstance(node.get("enum"), list) else [node["const"]] if "const" in node else []
        if values and kind == "string" and all(isinstance(value, str) and value for value in values):
            out["enum"] = values
        if kind == "array":
            items = node.get("items", node.get("prefixItems"))
            first = items[0] if isinstance(items, list) and items else items
            out["items"] = self.schema(first if isinstance(first, dict) else {}, (*path, "items"), seen)
        if kind == "object":
            self._object(node, out, path, seen)

    def _object(self, node: JsonObject, out: JsonObject, path: Path, seen: tuple[str, ...]) -> None:
        properties = properties_of(node)
        if not properties and path:
            out.clear()
            out.update(_as_text("A JSON object", {}))
            self._tell(path, "an object without named properties became text")
            return
        out["properties"] = {
            name: self.schema(item, (*path, "properties", name), seen) for name, item in properties.items()
        }
        if required := [name for name in required_of(node) if name in properties]:
            out["required"] = required

    def _said(self, node: JsonObject, path: Path) -> list[str]:
        """What can only be said in words."""
        for key in sorted(_WORDS.intersection(node)):
            self._tell((*path, key), "it was left out")
        values = node.get("enum")
        if isinstance(values, list) and not all(isinstance(value, str) for value in values):
            self._tell((*path, "enum"), "it was put in words")
            return [f"One of: {', '.join(map(str, values[:50]))}."]
        if "const" in node and not isinstance(node["const"], str):
            return [f"Always {str(node['const'])[:100]}."]
        return []


def _guessed(node: JsonObject) -> str:
    if "properties" in node:
        return "object"
    return "array" if "items" in node or "prefixItems" in node else "string"


def _as_text(what: str, node: JsonObject) -> JsonObject:
    words = f"{node.get('description') or ''} {what}, written as text.".strip()
    return {"type": "string", "description": words}


def _any(node: JsonObject) -> JsonObject:
    return _as_text("Any JSON value", node)


def _listed(given: Json) -> list[str]:
    return sorted({type_name(name) for name in types_of({"type": given})})


def _dict(given: Json) -> JsonObject:
    return given if isinstance(given, dict) else {}
