"""Schemas for the whole output of a model whose server constrains it: the arguments of a call, a call, or "text or calls".

Each tool's schema becomes part of a larger one, so its references are rewritten. A server may reject what its grammar cannot express,
so patterns that are not plain are dropped: the arguments are validated in any case.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ...types import Json, JsonObject, Tool

TEXT, CALLS = "text", "calls"

_EMPTY: JsonObject = {"type": "object", "properties": {}}
_VALUES = frozenset({"enum", "const", "default", "examples"})  # their content is no schema
_IDENTITY = frozenset({"$schema", "$id", "$anchor", "$dynamicAnchor", "$comment"})
_PLAIN_PATTERN = re.compile(r"\^(?!.*\(\?)(?!.*\\[bB1-9pPkK]).*\$", re.DOTALL)  # llama.cpp takes only anchored ones


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


def answer_schema(tools: Sequence[Tool], *, must_call: bool, is_single: bool) -> JsonObject:
    """{"calls": [...]}, or {"text": "..."} with or without calls after it. must_call: only the first."""
    writer = _Writer()
    calls = [writer.call(tool) for tool in tools]
    listed: JsonObject = {
        "type": "array",
        "items": calls[0] if len(calls) == 1 else {"anyOf": calls},
        "minItems": 1,
        **({"maxItems": 1} if is_single else {}),
    }
    called = _closed({CALLS: listed}, [CALLS])
    if must_call:
        return writer.root(called)
    spoken = _closed({TEXT: {"type": "string"}, CALLS: listed}, [TEXT])
    return writer.root({"anyOf": [called, spoken]})


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
        schema = tool.schema or _EMPTY
        if not _has_references(schema):
            return arguments_schema(tool)
        name = f"tool_{len(self._definitions) + 1}"
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
    for key, item in value.items():
        if (key in _IDENTITY or key == "$dynamicRef") and isinstance(item, str):
            continue
        if key == "pattern" and isinstance(item, str):
            if _PLAIN_PATTERN.fullmatch(item):
                out[key] = item
        elif key == "$ref" and isinstance(item, str):
            if item == "#" or item.startswith("#/"):  # a reference to an anchor or another document allows anything
                out[key] = place + item[1:]
        else:
            out[key] = item if key in _VALUES else _cleaned(item, place)
    return out
