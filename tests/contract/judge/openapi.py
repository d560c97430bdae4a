"""Validation against the vendors' OpenAPI documents, if they are available: toolwire ships none.

TOOLWIRE_OPENAPI names OpenAI's document, TOOLWIRE_OPENRESPONSES that of Open Responses, both as JSON.
"""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path

import jsonschema

_VARIABLES = {"openai": "TOOLWIRE_OPENAPI", "openresponses": "TOOLWIRE_OPENRESPONSES"}
_SCHEMAS = {
    ("openai", "chat", "body"): "CreateChatCompletionResponse",
    ("openai", "chat", "chunk"): "CreateChatCompletionStreamResponse",
    ("openai", "responses", "body"): "Response",
    ("openresponses", "responses", "body"): "ResponseResource",
}
_IGNORED = ("discriminator", "example", "examples", "x-oaiMeta")


def oracle(dialect, what, value, path, report):
    """Check a body, a chunk or an event against each available document."""
    for name in _VARIABLES:
        document = _document(name)
        if document is None:
            continue
        schema = _SCHEMAS.get((name, dialect, what))
        if dialect == "responses" and what == "event":
            schema = document.events.get(value.get("type"))
        if schema is not None:
            document.check(schema, value, path, report)


@cache
def _document(name):
    path = os.environ.get(_VARIABLES[name])
    return Document(Path(path), name) if path else None


class Document:
    def __init__(self, path, name):
        self.name = name
        self.components = as_json_schema(json.loads(path.read_text(encoding="utf-8"))["components"])
        self.events = dict(self._events())
        self._validators = {}

    def check(self, schema, value, path, report):
        for error in list(self._validator(schema).iter_errors(value))[:5]:
            best = jsonschema.exceptions.best_match([error])
            inside = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in best.absolute_path)
            # OpenAI's document forbids the null that its API and Open Responses have there until the end.
            if not (inside.endswith("response.usage") and best.instance is None):
                report.err(path + inside, f"{self.name} {schema}: {best.message[:200]}")

    def _events(self):
        for name, schema in self.components["schemas"].items():
            members = schema.get("properties") or {}
            kind = members.get("type") or {}
            kinds = [kind["const"]] if "const" in kind else kind.get("enum") or []
            if "Event" in name and len(kinds) == 1 and "sequence_number" in members:
                yield kinds[0], name

    def _validator(self, schema):
        if schema not in self._validators:
            root = {"$ref": f"#/components/schemas/{schema}", "components": self.components}
            self._validators[schema] = jsonschema.Draft202012Validator(root)
        return self._validators[schema]


def as_json_schema(value):
    """Convert OpenAPI keywords to JSON Schema."""
    if isinstance(value, list):
        return [as_json_schema(item) for item in value]
    if not isinstance(value, dict):
        return value
    schema = {key: as_json_schema(item) for key, item in value.items() if key not in _IGNORED}
    if schema.pop("nullable", None) is True:
        return {"anyOf": [schema, {"type": "null"}]}
    return schema
