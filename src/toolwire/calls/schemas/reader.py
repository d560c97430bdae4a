"""What a tool's schema means, read as its writer meant it.

Clients send schemas that no validator would compile: `"type": "any"`, `"required": true` on a property, exclusiveMinimum of
another draft, patterns of another language, `[]` for an empty object. None of that is a reason to refuse a request, so the
reader turns it into plain draft 2020-12, notes what it overlooked, and never makes a schema stricter than it was. Only what
has no meaning at all is a fault: a type that is a number, properties that are a list. References stay inside the document;
one that leads elsewhere is never followed, and makes the schema one that cannot be checked.
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache

import jsonschema_rs
from msgspec import Struct

from ...errors import quote
from ...types import Json, JsonObject
from .keywords import Path, children, pointer, target

DEEPEST = 60
MOST_NODES = 5_000  # of one schema; the compiler holds the interpreter for 60 ms with so many

_TYPES = {"null", "boolean", "object", "array", "number", "string", "integer"}
_ALIASES = {
    "dict": "object",
    "map": "object",
    "hashmap": "object",
    "list": "array",
    "tuple": "array",
    "arraylist": "array",
    "str": "string",
    "char": "string",
    "text": "string",
    "int": "integer",
    "long": "integer",
    "short": "integer",
    "byte": "integer",
    "bigint": "integer",
    "float": "number",
    "double": "number",
    "bool": "boolean",
    "none": "null",
}
# Names that are no JSON type, but used with a meaning: any value is accepted.
_FREE = frozenset(
    [
        "any",
        "mixed",
        "unknown",
        "undefined",
        "date",
        "datetime",
        "time",
        "timestamp",
        "duration",
        "uuid",
        "file",
        "path",
        "url",
        "uri",
        "email",
        "json",
        "bytes",
        "binary",
        "enum",
        "union",
        "callable",
        "function",
        "literal",
        "optional",
        "decimal",
        "set",
        "sequence",
        "iterable",
        "class",
        "image",
        "audio",
        "video",
    ]
)
_NUMBERS = ("minimum", "maximum", "multipleOf")
_BOUNDS = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}
_COUNTS = (
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "minContains",
    "maxContains",
)
_SINGLE = ("not", "if", "then", "else", "contains", "propertyNames", "unevaluatedItems", "unevaluatedProperties")


class UnreadableSchema(Exception):
    """A place in a schema that means nothing; path leads there."""

    def __init__(self, path: Path, words: str) -> None:
        super().__init__(words)
        self.path = path
        self.words = words


class Uncheckable(Exception):
    """The schema may be valid, but this reader cannot tell what it allows."""


class NormalSchema(Struct, frozen=True):
    """schema: plain draft 2020-12, every reference into its own $defs. notes: what was overlooked, and where."""

    schema: JsonObject
    notes: tuple[str, ...]
    patterns: SchemaPatterns


def read(schema: JsonObject, annotations: tuple[str, ...] = ()) -> NormalSchema:
    """annotations: keywords that are copied as they are. Raises Unreadable or Uncheckable."""
    reader = _Reader(schema, annotations)
    found = reader.root()
    return NormalSchema(found, tuple(dict.fromkeys(reader.notes)), reader.patterns)


class _Reader:
    def __init__(self, root: JsonObject, annotations: tuple[str, ...]) -> None:
        self._root = root
        self._annotations = annotations
        self._base = root.get("$id")
        self._anchors: dict[str, Json] | None = None
        self._names: dict[str, str] = {}
        self._waiting: list[tuple[str, str]] = []
        self._nodes = 0
        self._depth = 0
        self.notes: list[str] = []
        self.patterns = SchemaPatterns()

    def root(self) -> JsonObject:
        found = self._schema(self._root, ())
        schema = found if isinstance(found, dict) else {}
        if schema.get("type") is not None and "object" not in _listed(schema["type"]):
            self._note((), f"type {schema['type']}, though arguments are always an object")
            del schema["type"]
        definitions: JsonObject = {}
        while self._waiting:
            reference, name = self._waiting.pop()
            definitions[name] = self._schema(self._found(reference), (reference,))
        if definitions:
            schema["$defs"] = definitions
        return schema

    def _note(self, path: Path, words: str) -> None:
        if len(self.notes) < 50:
            self.notes.append(f"{pointer(path) or 'schema'}: {words}"[:200])

    def _schema(self, node: Json, path: Path) -> Json:
        self._nodes += 1
        if self._nodes > MOST_NODES:
            raise Uncheckable(f"the schema has more than {MOST_NODES} parts")
        if isinstance(node, bool):
            return node
        if node is None:
            return {}
        if isinstance(node, str) and type_name(node):
            return {"type": type_name(node)}
        if not isinstance(node, dict):
            raise UnreadableSchema(path, f"found {_kind(node)}, expected a schema (an object)")
        self._depth += 1
        if self._depth > DEEPEST:
            raise Uncheckable(f"the schema nests deeper than {DEEPEST} levels")
        found = self._object(node, path)
        self._depth -= 1
        return found

    def _object(self, node: JsonObject, path: Path) -> JsonObject:
        out: JsonObject = {key: node[key] for key in self._annotations if key in node}
        self._types(node, out, path)
        self._values(node, out, path)
        self._limits(node, out, path)
        self._properties(node, out, path)
        self._items(node, out, path)
        self._unions(node, out, path)
        self._reference(node, out, path)
        return _with_null(out) if node.get("nullable") is True else out

    def _types(self, node: JsonObject, out: JsonObject, path: Path) -> None:
        given = node.get("type")
        if given is None:
            return
        if not isinstance(given, str | list) or not all(isinstance(item, str) for item in _listed(given)):
            raise UnreadableSchema((*path, "type"), f"found {_kind(given)}, expected the name of a type")
        names = [type_name(name) for name in _listed(given)]
        for name, found in zip(_listed(given), names, strict=True):
            if not found and name.isalpha() and name.lower() not in _FREE:
                raise UnreadableSchema(
                    (*path, "type"), f"found {quote(name[:60])}, expected one of {', '.join(sorted(_TYPES))}"
                )
        if names and all(names):
            out["type"] = names[0] if len(names) == 1 else list(dict.fromkeys(names))
        else:
            self._note((*path, "type"), f"no such type: {given}")

    def _values(self, node: JsonObject, out: JsonObject, path: Path) -> None:
        enum = node.get("enum")
        if isinstance(enum, list):
            if enum:
                out["enum"] = enum
        elif enum is not None:
            raise UnreadableSchema((*path, "enum"), f"found {_kind(enum)}, expected a list of values")
        if "const" in node:
            out["const"] = node["const"]

    def _limits(self, node: JsonObject, out: JsonObject, path: Path) -> None:
        for key in _NUMBERS:
            if _is_number(node.get(key)) and (key != "multipleOf" or node[key] > 0):
                out[key] = node[key]
        for key, plain in _BOUNDS.items():
            given = node.get(key)
            if given is True and plain in out:
                out[key] = out.pop(plain)
            elif _is_number(given):
                out[key] = given
        for key in _COUNTS:
            given = node.get(key)
            if (count := _count(given)) is not None:
                out[key] = count
        if node.get("uniqueItems") is True:
            out["uniqueItems"] = True
        for key in (*_NUMBERS, *_COUNTS):
            if node.get(key) is not None and key not in out and not any(bound in out for bound in _BOUNDS):
                self._note((*path, key), "not a number that it could be")
        if isinstance(given := node.get("pattern"), str):
            if pattern := self.patterns.read(given):
                out["pattern"] = pattern
            else:
                self._note((*path, "pattern"), "a pattern that cannot be run here")

    def _properties(self, node: JsonObject, out: JsonObject, path: Path) -> None:
        for key in ("properties", "patternProperties", "dependentSchemas"):
            found = self._map(node.get(key), (*path, key))
            if found is not None and key == "patternProperties":
                found = {plain: item for name, item in found.items() if (plain := self.patterns.read(name))}
            if found is not None:
                out[key] = found
        if required := self._required(node.get("required"), (*path, "required")):
            out["required"] = required
        for key, needs in _dict(node.get("dependentRequired")).items():
            out.setdefault("dependentRequired", {})[key] = [name for name in _listed(needs) if isinstance(name, str)]
        for key, needs in _dict(node.get("dependencies")).items():
            if isinstance(needs, list):
                out.setdefault("dependentRequired", {})[key] = [name for name in needs if isinstance(name, str)]
            elif isinstance(needs, dict):
                inner = self._schema(needs, (*path, "dependencies", key))
                out.setdefault("dependentSchemas", {})[key] = inner
        given = node.get("additionalProperties")
        if isinstance(given, dict | bool):
            out["additionalProperties"] = self._schema(given, (*path, "additionalProperties"))
        elif given is not None:
            self._note((*path, "additionalProperties"), "neither a schema nor true or false")

    def _map(self, given: Json, path: Path) -> JsonObject | None:
        if given is None or given == []:
            return None
        if not isinstance(given, dict):
            raise UnreadableSchema(path, f"found {_kind(given)}, expected an object of schemas")
        return {name: self._schema(item, (*path, name)) for name, item in given.items()}

    def _required(self, given: Json, path: Path) -> list[str]:
        if given is None or isinstance(given, bool):
            return []  # on a property itself: the draft-03 way, which validators of today overlook
        if isinstance(given, str):
            return [given]
        if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
            raise UnreadableSchema(path, f"found {_kind(given)}, expected a list of names")
        return list(dict.fromkeys(given))

    def _items(self, node: JsonObject, out: JsonObject, path: Path) -> None:
        items, prefix, rest = node.get("items"), node.get("prefixItems"), "items"
        if isinstance(items, list):  # a tuple, as it was written before 2020
            items, prefix, rest = node.get("additionalItems"), items, "additionalItems"
        if isinstance(prefix, list) and prefix:
            out["prefixItems"] = [self._schema(item, (*path, "items", place)) for place, item in enumerate(prefix)]
        if items is not None:
            out["items"] = self._schema(items, (*path, rest))

    def _unions(self, node: JsonObject, out: JsonObject, path: Path) -> None:
        for key in ("allOf", "anyOf", "oneOf"):
            given = node.get(key)
            if given is None or given == []:
                continue
            if not isinstance(given, list):
                raise UnreadableSchema((*path, key), f"found {_kind(given)}, expected a list of schemas")
            out[key] = [self._schema(item, (*path, key, place)) for place, item in enumerate(given)]
        for key in _SINGLE:
            if isinstance(node.get(key), dict | bool):
                out[key] = self._schema(node[key], (*path, key))

    def _reference(self, node: JsonObject, out: JsonObject, path: Path) -> None:
        given = node.get("$ref", node.get("$dynamicRef", node.get("$recursiveRef")))
        if given is None:
            return
        if not isinstance(given, str):
            raise UnreadableSchema((*path, "$ref"), f"found {_kind(given)}, expected a reference")
        if isinstance(self._base, str) and given.startswith(self._base):
            given = given[len(self._base) :]
        if given in ("", "#"):
            out["$ref"] = "#"
            return
        self._found(given)
        if given not in self._names:
            self._names[given] = f"r{len(self._names)}"
            self._waiting.append((given, self._names[given]))
        out["$ref"] = f"#/$defs/{self._names[given]}"

    def _found(self, reference: str) -> Json:
        if self._anchors is None and not reference.startswith("#/"):
            self._anchors = dict(_anchors(self._root))
        try:
            return target(self._root, reference) if reference.startswith("#/") else (self._anchors or {})[reference]
        except KeyError:
            why = "leads nowhere" if reference.startswith("#") else "leads out of the schema, and is never followed"
            raise Uncheckable(f'the reference "{reference[:100]}" {why}') from None


def _anchors(schema: JsonObject) -> list[tuple[str, Json]]:
    """Schemas that have a name of their own, by the reference that means them."""
    found: list[tuple[str, Json]] = []
    waiting: list[Json] = [schema]
    for _ in range(MOST_NODES):
        if not waiting:
            break
        node = waiting.pop()
        if not isinstance(node, dict):
            continue
        found += [(f"#{node[key]}", node) for key in ("$anchor", "$dynamicAnchor") if isinstance(node.get(key), str)]
        found += [(node["$id"], node)] if isinstance(node.get("$id"), str) else []
        waiting += [item for _, item in children(node)]
    return found


def _with_null(schema: JsonObject) -> JsonObject:
    if set(schema) <= {"type"}:
        return {"type": [*_listed(schema["type"]), "null"]} if schema else {}
    return {"anyOf": [schema, {"type": "null"}]}


def type_name(name: str) -> str:
    """The standard name of a type; \"\" for an unknown one."""
    lowered = name.strip().lower()
    return lowered if lowered in _TYPES else _ALIASES.get(lowered, "")


def _listed(given: Json) -> list[Json]:
    return given if isinstance(given, list) else [given]


def _dict(given: Json) -> JsonObject:
    return given if isinstance(given, dict) else {}


def _is_number(given: Json) -> bool:
    """A number that a limit can be: exponents beyond those of a double are traps."""
    if isinstance(given, bool) or not isinstance(given, int | float | Decimal):
        return False
    return given == 0 or (-1e300 < given < 1e300 and not -1e-300 < given < 1e-300)


def _count(given: Json) -> int | None:
    return int(given) if _is_number(given) and 0 <= given < 1 << 53 and given == int(given) else None


def _kind(value: Json) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false"}
    return names.get(type(value), "null" if value is None else "a number")


MOST = 60
_MOST_LARGE = 6  # those that repeat something a hundred times: each takes a hundredth of a second to compile or refuse
_LONGEST = 1000
_SIZE = 1_000_000  # bytes of compiled automaton; `^.{1,500}$` needs half of it
LINEAR = jsonschema_rs.RegexOptions(size_limit=_SIZE, dfa_size_limit=_SIZE)
BACKTRACKING = jsonschema_rs.FancyRegexOptions(backtrack_limit=10_000, size_limit=_SIZE, dfa_size_limit=_SIZE)
_PYTHON = ((re.compile(r"\(\?P<"), "(?<"), (re.compile(r"\\A"), "^"), (re.compile(r"\\[Zz]\Z"), "$"))
_REPEATED = re.compile(r"\{\d*,?\d{3,}\}|\\[pP]\{")


class SchemaPatterns:
    """The patterns of one schema. A pattern comes from the client and its text from the model, so both may be hostile.

    A pattern that the linear engine accepts is safe for texts of any length. Look-around and back references need the backtracking
    engine, whose work grows with the square of the text; they are marked, so that long texts are checked without them.
    """

    def __init__(self) -> None:
        self._slow: set[str] = set()
        self._known: dict[str, str] = {}
        self.weight = 0
        self._large = 0

    @property
    def needs_backtracking(self) -> bool:
        return bool(self._slow)

    def is_slow(self, pattern: str) -> bool:
        return pattern in self._slow

    def read(self, given: str) -> str:
        """The pattern as the engine takes it; "" where it cannot be run."""
        if given not in self._known and len(self._known) < MOST and len(given) <= _LONGEST:
            self._known[given] = self._compiled(given)
        return self._known.get(given, "")

    def _compiled(self, given: str) -> str:
        is_large = _REPEATED.search(given) is not None
        self._large += is_large
        if is_large and self._large > _MOST_LARGE:
            return ""
        plain, is_slow = _compiled(given)
        self.weight += len(given) * 50 + (_SIZE if is_large else 0)
        if is_slow:
            self._slow.add(plain)
        return plain


@lru_cache(maxsize=2000)
def _compiled(given: str) -> tuple[str, bool]:
    for python, ours in _PYTHON:
        given = python.sub(ours, given)
    if _compiles(given, LINEAR):
        return given, False
    return (given, True) if _compiles(given, BACKTRACKING) else ("", False)


def _compiles(pattern: str, options: jsonschema_rs.RegexOptions | jsonschema_rs.FancyRegexOptions) -> bool:
    try:
        jsonschema_rs.validator_for({"pattern": pattern}, pattern_options=options, offline=True)
    except ValueError:
        return False
    return True
