"""Types whose library has their schema: msgspec structs and pydantic models (pydantic is not imported)."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from ..types import Json, JsonObject
from ..wire import exact_json as exact
from .plain import whole
from .shapes import Mismatch, Shape

_PREFIX = "#/$defs/"
_AT = re.compile(r" - at `\$(.*)`$")
_VALUES = ("default", "const", "enum", "examples")  # members of a schema that hold values, not schemas


class Definitions:
    """`$defs` of one schema, in which no two types share a name."""

    def __init__(self) -> None:
        self.schemas: JsonObject = {}
        self._adopted: dict[tuple[object, str], str] = {}

    def label(self, name: str) -> str:
        """Reserves a name that is not in use."""
        wanted = re.sub(r"[^A-Za-z0-9_.-]", "_", name)
        label, number = wanted, 1
        while label in self.schemas:
            number += 1
            label = f"{wanted}{number}"
        self.schemas[label] = {}
        return label

    def adopt(self, owner: object, schema: JsonObject, definitions: JsonObject) -> JsonObject:
        """Moves the schema's own definitions here, renames those whose names are in use, and returns the schema."""
        new = [name for name in definitions if (owner, name) not in self._adopted]
        for name in new:
            self._adopted[owner, name] = self.label(name)
        for name in new:
            self.schemas[self._adopted[owner, name]] = self._rename(owner, definitions[name])
        renamed: JsonObject = self._rename(owner, schema)
        return renamed

    def _rename(self, owner: object, schema: Json) -> Json:
        if isinstance(schema, list):
            return [self._rename(owner, item) for item in schema]
        if not isinstance(schema, dict):
            return schema
        return {
            key: self._reference(owner, value)
            if key == "$ref" and isinstance(value, str)
            else (value if key in _VALUES and not isinstance(value, dict) else self._rename(owner, value))
            for key, value in schema.items()
        }

    def _reference(self, owner: object, reference: str) -> str:
        name = self._adopted.get((owner, reference.removeprefix(_PREFIX)))
        return f"{_PREFIX}{name}" if name is not None and reference.startswith(_PREFIX) else reference


def is_pydantic_model(kind: type) -> bool:
    return hasattr(kind, "model_json_schema") and hasattr(kind, "model_validate_json")


def struct_shape(hint: Any, definitions: Definitions) -> Shape:
    """A msgspec struct; msgspec also converts it."""
    (schema,), components = msgspec.json.schema_components((hint,), ref_template=_PREFIX + "{name}")

    def convert(value: Json) -> Any:
        try:
            return msgspec.convert(whole(value), hint)
        except msgspec.ValidationError as error:
            text = str(error)
            place = _AT.search(text)
            raise Mismatch(_AT.sub("", text) + ".", _steps(place[1]) if place else ()) from error
        except ValueError as error:
            raise Mismatch(f"{error}.") from None

    return Shape(definitions.adopt(hint, schema, components), convert)


def pydantic_shape(model: Any, definitions: Definitions) -> Shape:
    """A pydantic 2 model; pydantic validates the JSON by its own rules."""
    schema: JsonObject = model.model_json_schema()
    own = schema.pop("$defs", {})

    def convert(value: Json) -> Any:
        try:
            return model.model_validate_json(exact.encode(value))
        except ValueError as error:
            errors: list[Any] = getattr(error, "errors", list)()
            if not errors:
                raise Mismatch(str(error)[:500]) from error
            raise Mismatch(f"{errors[0]['msg']}.", errors[0]["loc"]) from error

    return Shape(definitions.adopt(model, schema, own), convert)


def _steps(path: str) -> list[str | int]:
    """Splits `.items[0].name`; msgspec writes [...] for the values of a mapping."""
    found = re.findall(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]", path)
    return [int(index) if index.isdigit() else (name or index) for name, index in found]
