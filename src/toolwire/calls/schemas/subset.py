"""Schemas in the subset that Gemini's functions take: few keywords, one type each, no references, no empty objects.

References are written out, to a bound; a cycle ends in an object written as text (H069, H070). What the subset cannot express is
put into descriptions, which the model reads. A value that has no form in the subset is declared as a text that holds JSON; where
that is the case is part of the outcome, so that the arguments of calls can be decoded again (calls.encoded).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import TypeAlias

from msgspec import Struct

from ...types import Json, JsonObject
from ...wire.exact_json import encode
from .keywords import Path, local, merge_schemas, properties_of, required_of, types_of
from .reader import type_name

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
_TEXTUAL = frozenset({"pattern", "minLength", "maxLength", "format"})
_LONGEST = 100
_LONGEST_SCHEMA = 1000
_TELLING = frozenset({"additionalProperties", "patternProperties", "propertyNames", "required", "prefixItems", "items"})
_LEFT_OUT = frozenset({"not", "patternProperties", "propertyNames", "contains", "if", "default"})
_EXACT = dict.fromkeys(
    ("exclusiveMinimum", "exclusiveMaximum"), ("integer",)
)  # replaced by a bound one step further in
_SAID = {
    "multipleOf": "A multiple of {}.",
    "uniqueItems": "No item twice.",
    "exclusiveMinimum": "Greater than {}.",
    "exclusiveMaximum": "Less than {}.",
}

WHOLE = "arguments"  # the one property of a tool whose arguments have no names
Tell = Callable[[Path, str], None]
Place: TypeAlias = tuple[str | None, ...]  # names of members; None is every item of a list


class Texts(Struct, frozen=True):
    """Places whose value is declared as a string that holds JSON. objects: places that accept only objects and lists; at the others a
    string that is no JSON is the value itself. is_whole: all arguments are one string, in the member WHOLE."""

    anything: frozenset[Place] = frozenset()
    objects: frozenset[Place] = frozenset()
    is_whole: bool = False

    def __bool__(self) -> bool:
        return bool(self.anything or self.objects or self.is_whole)


def subset(schema: JsonObject, tell: Tell) -> tuple[JsonObject | None, Texts]:
    """No schema for a tool without arguments (H067)."""
    writer = _Writer(schema, tell)
    written = writer.schema(schema, (), ())
    texts = Texts(frozenset(writer.anything), frozenset(writer.objects))
    if written.get("properties"):
        return written, texts
    if not _is_open(schema):
        return None, Texts()
    tell((), "arguments without names became one text")
    inner = _as_text("A JSON object with all arguments", {})
    return {"type": "object", "properties": {WHOLE: inner}, "required": [WHOLE]}, Texts(is_whole=True)


def _is_open(schema: JsonObject) -> bool:
    """Whether it accepts members that it does not name; an object without any keyword means no arguments."""
    others = schema.get("additionalProperties")
    is_named = any(schema.get(key) for key in ("patternProperties", "required", "minProperties"))
    return others is True or (isinstance(others, dict) and bool(others)) or is_named


class _Writer:
    def __init__(self, root: JsonObject, tell: Tell) -> None:
        self._root = root
        self._tell = tell
        self._nodes = 0
        self.anything: set[Place] = set()
        self.objects: set[Place] = set()

    def schema(self, given: Json, path: Path, seen: tuple[str, ...]) -> JsonObject:
        self._nodes += 1
        if not isinstance(given, dict):
            return self._any({}, path)
        reference = given.get("$ref")
        if isinstance(reference, str):
            if reference in seen or self._nodes > _MOST or len(seen) > _DEEPEST:
                self._tell(path, "the schema goes round in a circle; from here on it is text")
                return self._any(given, path, "A JSON object")
            self._tell(path, "a reference was written out")
            if not self._leads(given):
                return self._any(given, path)
            return self.schema(local(given, self._root), path, (*seen, reference))
        if self._nodes > _MOST or len(path) > 2 * _DEEPEST:
            self._tell(path[:8], "the schema is too large; from here on it is text")
            return self._any(given, path)
        return self._plain(self._united(given, path), path, seen)

    def _any(self, node: JsonObject, path: Path, what: str = "Any JSON value") -> JsonObject:
        self.anything.add(_place(path))
        return _as_text(what, node)

    def _leads(self, given: JsonObject) -> bool:
        found = local(given, self._root)
        return isinstance(found, dict) and "$ref" not in found

    def _united(self, given: JsonObject, path: Path) -> JsonObject:
        found = dict(given)
        if isinstance(parts := found.pop("allOf", None), list):
            inner = [item for part in parts if isinstance(item := local(part, self._root), dict)]
            is_object = any("properties" in item for item in (*inner, found))
            found = (
                merge_schemas(found, inner, "all")
                if is_object
                else {**{k: v for i in inner for k, v in i.items()}, **found}
            )
            self._tell((*path, "allOf"), "it was merged into one")
        if isinstance(parts := found.pop("oneOf", None), list):
            found["anyOf"] = [*(found["anyOf"] if isinstance(found.get("anyOf"), list) else []), *parts]
        return found

    def _plain(self, node: JsonObject, path: Path, seen: tuple[str, ...]) -> JsonObject:
        types = [name for name in _listed(node.get("type")) if name and name != "null"]
        is_nullable = node.get("nullable") is True or "null" in _listed(node.get("type"))
        is_nullable = is_nullable or ("enum" in node and None in _values(node))
        out: JsonObject = {"nullable": True} if is_nullable else {}
        variants = node.get("anyOf") if isinstance(node.get("anyOf"), list) else [{"type": name} for name in types]
        if _needs_spelling(node):
            self._spell(node, out, path)
        elif len(types) > 1 or "anyOf" in node:
            self._variants(node, variants or [], out, path, seen)
        elif kind := types[0] if types else _guessed(node):
            self._single(kind, node, out, path, seen)
        else:
            out.update(self._any({}, path))
        words = [node.get("description"), *self._described(node, out, path)]
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
            self._tell(path, "only the first of several forms is sent") if len(real) > 1 else None
            real = real[:1]
        inner = [self.schema({**rest, **_dict(item)}, (*path, "anyOf", place), seen) for place, item in enumerate(real)]
        if len(inner) == 1:
            out.update(inner[0])
        elif inner:
            out["anyOf"] = inner
        else:
            out.update(self._any({}, path))

    def _spell(self, node: JsonObject, out: JsonObject, path: Path) -> None:
        """Only texts can be listed, and no empty ones: other values are listed as texts that hold JSON."""
        out["type"] = "string"
        out["enum"] = list(dict.fromkeys(_json(value) for value in _values(node) if value is not None))
        self.anything.add(_place(path))
        self._tell((*path, "const" if "const" in node else "enum"), "its values are written as text")

    def _single(self, kind: str, node: JsonObject, out: JsonObject, path: Path, seen: tuple[str, ...]) -> None:
        out["type"] = kind
        out.update({key: node[key] for key in _KEPT if node.get(key) is not None})
        for bound, plain, step in (("exclusiveMinimum", "minimum", 1), ("exclusiveMaximum", "maximum", -1)):
            value = node.get(bound)
            if isinstance(value, int | Decimal) and not isinstance(value, bool) and plain not in out:
                out[plain] = value + step if kind == "integer" and isinstance(value, int) else value
                self._tell((*path, bound), f"it became {plain}")
        if node.get("format") in _FORMATS.get(kind, ()):
            out["format"] = node["format"]
        values = [value for value in _values(node) if value is not None]
        if values:
            out["enum"] = values
        if kind == "array":
            self._array(node, out, path, seen)
        if kind == "object":
            self._object(node, out, path, seen)

    def _array(self, node: JsonObject, out: JsonObject, path: Path, seen: tuple[str, ...]) -> None:
        """A list has one schema for all its items; one with a schema for each place becomes text."""
        items = node.get("prefixItems", node.get("items"))
        places = items if isinstance(items, list) else [items]
        if len(places) > 1 and any(place != places[0] for place in places):
            self._become_text("A JSON array", node, out, path)
            self._tell(path, "a list with a schema for each place became text")
            return
        first = places[0] if places else None
        out["items"] = self.schema(first if isinstance(first, dict) else {}, (*path, "items"), seen)

    def _become_text(self, what: str, node: JsonObject, out: JsonObject, path: Path) -> None:
        for key in out.keys() - {"nullable"}:
            del out[key]
        out.update(_as_text(what, {}, _shown(node)))
        self.objects.add(_place(path))

    def _object(self, node: JsonObject, out: JsonObject, path: Path, seen: tuple[str, ...]) -> None:
        properties = properties_of(node)
        if not properties and path:
            self._become_text("A JSON object", node, out, path)
            self._tell(path, "an object without named properties became text")
            return
        out["properties"] = {
            name: self.schema(item, (*path, "properties", name), seen) for name, item in properties.items()
        }
        if required := [name for name in required_of(node) if name in properties]:
            out["required"] = required

    def _described(self, node: JsonObject, out: JsonObject, path: Path) -> list[str]:
        """What can only be stated in the description."""
        for key in sorted(_LEFT_OUT.intersection(node)):
            self._tell((*path, key), "it was left out")
        said: list[str] = []
        for key, words in _SAID.items():
            value = node.get(key)
            if value is not None and value is not False and not (key in out or out.get("type") in _EXACT.get(key, ())):
                said.append(words.format(_json(value)[:_LONGEST]))
                self._tell((*path, key), "it was put in words")
        return said


def _place(path: Path) -> Place:
    """The place of a value by the way to its schema, in which a union is no step of its own."""
    return tuple(_steps(path))


def _steps(path: Path) -> Iterator[str | None]:
    number = 0
    while number < len(path):
        step = path[number]
        if step == "items":
            yield None
            number += 1
        else:
            if step == "properties":
                yield str(path[number + 1])
            number += 2


def _values(node: JsonObject) -> list[Json]:
    if "const" in node:
        return [node["const"]]
    return node["enum"] if isinstance(node.get("enum"), list) else []


def _needs_spelling(node: JsonObject) -> bool:
    values = [value for value in _values(node) if value is not None]
    return bool(values) and not all(isinstance(value, str) and value for value in values)


def _json(value: Json) -> str:
    return encode(value).decode()


def _guessed(node: JsonObject) -> str:
    """The type that a schema without one means, "" where it may be any."""
    if "properties" in node:
        return "object"
    if "items" in node or "prefixItems" in node:
        return "array"
    is_text = any(isinstance(value, str) for value in _values(node)) or bool(node.keys() & _TEXTUAL)
    return "string" if is_text else ""


def _as_text(what: str, node: JsonObject, shown: str = "") -> JsonObject:
    by = f", by this JSON Schema: {shown}" if shown else ""
    words = f"{node.get('description') or ''} {what}, written as text{by}.".strip()
    return {"type": "string", "description": words}


def _shown(node: JsonObject) -> str:
    """A description of a value that is written as a string; "" where there is none, it is too long, or it is given elsewhere."""
    rest = {key: value for key, value in node.items() if key not in ("description", "title", "type", "nullable")}
    text = _json({"type": node.get("type", "object"), **rest}) if rest.keys() & _TELLING else ""
    return text if len(text) <= _LONGEST_SCHEMA and '"$ref"' not in text else ""


def _listed(given: Json) -> list[str]:
    return sorted({type_name(name) for name in types_of({"type": given})})


def _dict(given: Json) -> JsonObject:
    return given if isinstance(given, dict) else {}
