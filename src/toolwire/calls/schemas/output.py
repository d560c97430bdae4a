"""Schemas for the whole output of a model whose server constrains it: the arguments of a call, a call, or "text or calls".

Each tool's schema becomes part of a larger one, so its references are rewritten. A server may reject what its grammar cannot express,
so patterns are rewritten, and some patterns, large bounds, and unions beside properties are dropped: the arguments are validated in any case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...types import Json, JsonObject, Tool
from .grammar_patterns import grammar_pattern

TEXT, CALLS, JSON = "text", "calls", "json"

MOST_CALLS = 16  # in one answer: weak models repeat a call until something stops them

_EMPTY: JsonObject = {"type": "object", "properties": {}}
_VALUES = frozenset({"enum", "const", "default", "examples"})  # their content is no schema
_IDENTITY = frozenset({"$schema", "$id", "$anchor", "$dynamicAnchor", "$comment"})
_UNIONS = frozenset({"anyOf", "oneOf"})
_BOUNDS = frozenset({"minLength", "maxLength", "minItems", "maxItems"})
_LARGEST_BOUND = 1000  # llama.cpp unrolls repetitions, and refuses more than 2000


def arguments_schema(tool: Tool) -> JsonObject:
    """The tool's own schema as a root."""
    schema = _cleaned(tool.schema or _EMPTY, "#")
    assert isinstance(schema, dict)
    return schema


def call_schema(tools: Sequence[Tool]) -> JsonObject:
    """For one call. The arguments if there is one tool, else {"name", "arguments"} for one of the tools."""
    if len(tools) == 1:
        return arguments_schema(tools[0])
    writer = _Writer()
    return writer.root({"anyOf": [writer.call(tool) for tool in tools]})


def calls_schema(alternatives: Mapping[str, Sequence[Tool]]) -> JsonObject:
    """For several calls: an object with one member for each call, in the form of call_schema."""
    writer = _Writer()
    members = {
        name: writer.arguments(tools[0]) if len(tools) == 1 else {"anyOf": [writer.call(tool) for tool in tools]}
        for name, tools in alternatives.items()
    }
    return writer.root(_closed(members, list(members)))


def answer_schema(
    tools: Sequence[Tool], *, must_call: bool, is_single: bool, output: JsonObject | None = None
) -> JsonObject:
    """{"calls": [...]}, or {"text": "..."} with or without calls after it. must_call: only the first.

    output: the schema that the client wants for an answer without calls. {"json": ...} then replaces the text.
    """
    writer = _Writer()
    calls = [writer.call(tool) for tool in tools]
    listed: JsonObject = {
        "type": "array",
        "items": calls[0] if len(calls) == 1 else {"anyOf": calls},
        "minItems": 1,
        "maxItems": 1 if is_single else MOST_CALLS,
    }
    called = _closed({CALLS: listed}, [CALLS])
    if must_call:
        return writer.root(called)
    if output is not None:
        text_answer = _closed({JSON: writer.part(output)}, [JSON])
    else:
        text_answer = _closed({TEXT: {"type": "string"}, CALLS: listed}, [TEXT])
    return writer.root({"anyOf": [called, text_answer]})


class _Writer:
    """Collects the schemas of tools with references as definitions of one root; others are written in place."""

    def __init__(self) -> None:
        self._definitions: JsonObject = {}

    def root(self, schema: JsonObject) -> JsonObject:
        return {**schema, "$defs": self._definitions} if self._definitions else schema

    def call(self, tool: Tool) -> JsonObject:
        members = {"name": {"type": "string", "enum": [tool.name]}, "arguments": self.arguments(tool)}
        return _closed(members, list(members))

    def arguments(self, tool: Tool) -> JsonObject:
        return self.part(tool.schema or _EMPTY)

    def part(self, schema: JsonObject) -> JsonObject:
        if not _has_references(schema):
            cleaned = _cleaned(schema, "#")
            assert isinstance(cleaned, dict)
            return cleaned
        name = f"part_{len(self._definitions) + 1}"
        self._definitions[name] = _cleaned(schema, f"#/$defs/{name}")
        return {"$ref": f"#/$defs/{name}"}


def _closed(properties: JsonObject, required: list[str]) -> JsonObject:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _has_references(value: Json) -> bool:
    if isinstance(value, dict):
        return isinstance(value.get("$ref"), str) or any(map(_has_references, value.values()))
    return isinstance(value, list) and any(map(_has_references, value))


def _cleaned(value: Json, place: str) -> Json:
    """place: where the root of this schema will be, as a JSON pointer."""
    if isinstance(value, list):
        return [_cleaned(item, place) for item in value]
    if not isinstance(value, dict):
        return value
    out: JsonObject = {}
    has_members = isinstance(value.get("properties"), dict)
    for key, item in value.items():
        if (key in _IDENTITY or key == "$dynamicRef") and isinstance(item, str):
            continue
        if key == "pattern" and isinstance(item, str):
            if written := grammar_pattern(item):
                out[key] = written
        elif key in _BOUNDS and isinstance(item, int) and item > _LARGEST_BOUND:
            continue
        elif has_members and key in _UNIONS and isinstance(item, list):
            continue  # llama.cpp would take the union alone
        elif key == "$ref" and isinstance(item, str):
            if item == "#" or item.startswith("#/"):  # a reference to an anchor or another document allows anything
                out[key] = place + item[1:]
        elif key == "properties" and isinstance(item, dict):
            out[key] = {name: {} if inner is True else _cleaned(inner, place) for name, inner in item.items()}
        elif key == "items" and item is True:
            out[key] = {}  # the same, and some accept only objects
        else:
            out[key] = item if key in _VALUES else _cleaned(item, place)
    return out
