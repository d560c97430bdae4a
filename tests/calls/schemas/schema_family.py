"""JSON Schemas made by hypothesis, each of which some value fits, and the referee that judges values."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
from hypothesis import strategies as st

Schemas = st.SearchStrategy[Any]

NAMES = st.sampled_from(["city", "unit", "count", "note", "items", "when", "x y", "ü"])
FORMATS = ["date", "date-time", "time", "email", "uri", "uuid", "ipv4", "ipv6", "hostname", "duration", "json-pointer"]
PATTERNS = [
    "^[a-z]+$",
    "^\\d{4}-\\d{2}$",
    "^(red|green|blue)$",
    "[A-Z]{3}",
    "^[^\\s@]+@[^\\s@]+\\.[a-z]{2,}$",
    "^(?!-)[a-z0-9-]{1,63}$",
    "^#([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$",
    "\\bid\\b",
    "^v?\\d+(\\.\\d+)*$",
    "^(?:[01]\\d|2[0-3]):[0-5]\\d$",
]
VALUES = st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.text(max_size=5), st.just([1]), st.just({"a": 1}))


def is_valid(schema: Any, value: Any) -> bool:
    return jsonschema_rs.validator_for(schema, offline=True, validate_formats=True).is_valid(value)


@st.composite
def integers(draw: st.DrawFn) -> dict[str, Any]:
    low, step = draw(st.integers(-1000, 1000)), draw(st.integers(1, 50))
    rules: dict[str, Any] = {"minimum": low, "maximum": low + 2 * step, "multipleOf": step}
    if draw(st.booleans()):
        rules["exclusiveMinimum"] = low - 1
    kept = draw(st.sets(st.sampled_from(sorted(rules))))
    return {"type": "integer", **{key: rules[key] for key in sorted(kept)}}


@st.composite
def numbers(draw: st.DrawFn) -> dict[str, Any]:
    low, width = draw(st.integers(-500, 500)) / 4, draw(st.sampled_from([0.25, 1, 7.5]))
    rules = {"exclusiveMinimum": low, "exclusiveMaximum": low + width, "minimum": low, "maximum": low + width}
    kept = draw(st.sets(st.sampled_from(sorted(rules))))
    schema: dict[str, Any] = {"type": "number", **{key: rules[key] for key in sorted(kept)}}
    if not kept and draw(st.booleans()):
        schema["multipleOf"] = draw(st.sampled_from([0.5, 0.1, 2, 0.01]))
    return schema


@st.composite
def strings(draw: st.DrawFn) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    match draw(st.sampled_from(["length", "format", "pattern", "plain"])):
        case "length":
            schema["minLength"] = draw(st.integers(0, 30))
            schema["maxLength"] = schema["minLength"] + draw(st.integers(0, 3))
        case "format":
            schema["format"] = draw(st.sampled_from(FORMATS))
        case "pattern":
            schema["pattern"] = draw(st.sampled_from(PATTERNS))
    return schema


@st.composite
def arrays(draw: st.DrawFn, inner: Schemas) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "array", "items": draw(inner)}
    if draw(st.booleans()):
        schema["minItems"] = draw(st.integers(0, 3))
    if draw(st.booleans()):
        schema["prefixItems"] = draw(st.lists(inner, min_size=1, max_size=2))
    if draw(st.booleans()):
        schema["maxItems"] = schema.get("minItems", 0) + draw(st.integers(0, 2))
    return schema


@st.composite
def objects(draw: st.DrawFn, inner: Schemas) -> dict[str, Any]:
    properties = draw(st.dictionaries(NAMES, inner, max_size=4))
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if properties:
        schema["required"] = sorted(draw(st.sets(st.sampled_from(sorted(properties)))))
        schema["minProperties"] = draw(st.integers(0, len(properties)))
    if draw(st.booleans()):
        schema["additionalProperties"] = draw(st.sampled_from([True, False, {"type": "integer"}]))
    return schema


def extended(inner: Schemas) -> Schemas:
    return st.one_of(
        arrays(inner),
        objects(inner),
        st.builds(lambda branches: {"anyOf": branches}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda one: {"allOf": [one, {"description": "the same again"}, one]}, inner),
        st.builds(lambda one: {"oneOf": [one, {"type": "null"}]}, inner.filter(lambda one: "null" not in str(one))),
        st.builds(lambda one: {"type": "object", "allOf": [{"properties": {"a": one}}, {"required": ["a"]}]}, inner),
    )


leaves: Schemas = st.one_of(
    integers(),
    numbers(),
    strings(),
    st.sampled_from([{"type": "boolean"}, {"type": ["string", "null"]}, {"type": ["integer", "string"]}, {}]),
    st.builds(lambda value: {"const": value}, VALUES.filter(lambda value: value is not None)),
    st.builds(lambda values: {"enum": values}, st.lists(VALUES.filter(bool), min_size=1, max_size=3, unique_by=repr)),
    st.builds(lambda number: {"type": "integer", "default": number}, st.integers(-5, 5)),
)

schemas: Schemas = st.recursive(leaves, extended, max_leaves=8)
