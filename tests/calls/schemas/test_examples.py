"""Values by schema: an independent validator is the referee."""

from __future__ import annotations

import json
import re
import time
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.calls.schemas.schema_family import is_valid, objects, schemas
from tests.thorough import examples
from toolwire.backends.demo.arguments import PromptArguments
from toolwire.backends.demo.prompt_match import hints_of
from toolwire.calls.schemas.examples import NoExample, example_of

PROMPTS = st.sampled_from(
    ["", 'Put "red" and 17 in Paris', "city: Oslo, count=3", "write to ann@example.com on 2025-03-04", "-2.5 x y"]
)


@examples(300)
@given(schemas, PROMPTS)
def test_an_example_is_valid(schema: Any, prompt: str) -> None:
    value = example_of(schema, PromptArguments(hints_of(prompt)))
    assert is_valid(schema, value), (schema, value)
    json.dumps(value, allow_nan=False)


@examples(100)
@given(objects(schemas), PROMPTS)
def test_an_example_for_a_reference_is_valid(schema: Any, prompt: str) -> None:
    rooted = {
        "$defs": {"a/b": schema},
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/a~1b"}},
        "required": ["x"],
    }
    value = example_of(rooted, PromptArguments(hints_of(prompt)))
    assert is_valid(rooted, value), (rooted, value)


NODE = {
    "type": "object",
    "required": ["next"],
    "properties": {"next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}},
}

HARD: list[Any] = [
    {"type": "array", "items": {"type": "string"}, "minItems": 5, "uniqueItems": True},
    {"type": "array", "items": {"enum": ["a", "b", "c"]}, "minItems": 3, "uniqueItems": True},
    {"type": "array", "items": {"type": "integer", "minimum": 3}, "minItems": 40, "uniqueItems": True},
    {
        "type": "array",
        "items": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]},
        "minItems": 3,
        "uniqueItems": True,
    },
    {"type": "array", "items": {"type": "integer"}, "contains": {"minimum": 7}, "minItems": 3},
    {"type": "array", "contains": {"const": "x"}, "minContains": 2},
    {"type": "string", "format": "email", "pattern": "^(?!\\.)(?!.*\\.\\.)([A-Za-z0-9_'+\\-\\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\\-]*\\.)+[A-Za-z]{2,}$"},
    {"type": "string", "pattern": "^[a-z]+$", "minLength": 12, "maxLength": 12},
    {"type": "string", "pattern": "b", "minLength": 7},
    {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    {"type": "number", "exclusiveMinimum": 5},
    {"type": "integer", "exclusiveMaximum": -5, "multipleOf": 4},
    {"type": "integer", "multipleOf": 2.5, "minimum": 1},
    {"allOf": [{"type": "number"}, {"type": "integer"}, {"minimum": 3}, {"minimum": 5}, {"multipleOf": 4}, {"multipleOf": 6}]},
    {"type": "string", "not": {"enum": ["a", "b"]}},
    {"oneOf": [{"type": "integer"}, {"type": "integer", "minimum": 0}]},
    {"oneOf": [{"type": "number", "multipleOf": 5}, {"type": "number", "multipleOf": 3}], "minimum": 1},
    {"oneOf": [
        {"type": "object", "properties": {"kind": {"const": "a"}}, "required": ["kind"]},
        {"type": "object", "properties": {"kind": {"const": "b"}, "n": {"type": "integer"}}, "required": ["kind", "n"]},
    ]},
    {"type": "object", "required": ["a"], "dependentRequired": {"a": ["b"]}, "properties": {"b": {"type": "integer"}}},
    {"type": "object", "minProperties": 3, "additionalProperties": {"type": "integer"}},
    {"type": "object", "minProperties": 2, "propertyNames": {"pattern": "^k_"}},
    {"type": "object", "minProperties": 1, "patternProperties": {"^n\\d$": {"type": "integer"}}, "additionalProperties": False},
    {"type": "object", "required": ["n1"], "patternProperties": {"^n\\d$": {"type": "integer"}}, "additionalProperties": False},
    {"if": {"properties": {"a": {"const": 1}}, "required": ["a"]}, "then": {"required": ["b"]}, "else": False, "type": "object"},
    {"type": "object", "properties": {"x": {"type": "string", "pattern": "(?<=a)b"}}, "additionalProperties": False},
    {"$defs": {"node": NODE}, "$ref": "#/$defs/node"},
    {"definitions": {"n": {"type": "integer", "minimum": 3}}, "type": "object", "required": ["a"], "properties": {"a": {"$ref": "#/definitions/n"}}},
    {"type": "object", "properties": {"self": {"$ref": "#"}}},
    {"type": ["null", "array"], "minItems": 2},
    {"type": "string", "default": 5, "examples": [7, "seven"]},
    {"enum": [None, 1]},
    {"type": "string", "maxLength": 0},
    True,
    {},
]  # fmt: skip


@pytest.mark.parametrize("prompt", ["", 'Tell "Ann" about the 3 trees in Oslo with x'])
@pytest.mark.parametrize("schema", HARD, ids=lambda schema: json.dumps(schema)[:60])
def test_hard_schemas(schema: Any, prompt: str) -> None:
    value = example_of(schema, PromptArguments(hints_of(prompt)))
    assert is_valid(schema, value), value


IMPOSSIBLE: list[Any] = [
    False,
    {"type": "string", "minLength": 5, "maxLength": 3},
    {"allOf": [{"type": "string"}, {"type": "integer"}]},
    {"type": "object", "required": ["a"], "properties": {"a": False}},
    {"$ref": "#/$defs/none"},
    {"$ref": "http://127.0.0.1:1/schema.json"},
    {"$ref": "file:///etc/hostname"},
    {"$ref": "#"},
    {"type": "string", "pattern": "(?<=a)b"},
    {"type": "nothing"},
]


@pytest.mark.parametrize("schema", IMPOSSIBLE, ids=json.dumps)
def test_what_no_value_fits_is_said(schema: Any) -> None:
    with pytest.raises(NoExample):
        example_of(schema)


def nested(schema: Any, depth: int) -> Any:
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    return schema


TREE = {
    "type": "object",
    "required": ["l", "r"],
    "properties": {"l": {"$ref": "#/$defs/t"}, "r": {"$ref": "#/$defs/t"}},
}

HOSTILE: list[Any] = [
    {"type": "array", "minItems": 10**9, "items": {}},
    {
        "type": "array",
        "minItems": 100,
        "items": {"type": "array", "minItems": 100, "items": {"type": "array", "minItems": 100}},
    },
    {"type": "string", "minLength": 10**12},
    {"type": "string", "pattern": "^(a+)+$", "minLength": 5000, "maxLength": 5000, "not": {"pattern": "^(a|aa)+$"}},
    {"type": "string", "pattern": "((a{1000}){1000}){1000}"},
    {"type": "string", "pattern": "(" * 900 + ")" * 900},
    {"allOf": [{"anyOf": [{"minimum": n} for n in range(20)]} for _ in range(20)], "type": "string", "maxLength": -1},
    {"$defs": {"t": TREE}, "$ref": "#/$defs/t"},
    {"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}] * 50}}, "$ref": "#/$defs/a"},
    nested({"type": "integer"}, 300),
    {"type": "object", "required": [f"p{n}" for n in range(50_000)]},
    {"enum": ["x" * n for n in range(2000)], "type": "integer"},
    {"type": "integer", "minimum": 10**400},
    {"type": "number", "minimum": 1e308, "maximum": 1.1e308},
    {"type": "array", "uniqueItems": True, "minItems": 3000, "items": {"type": "boolean"}},
]


@pytest.mark.parametrize("schema", HOSTILE, ids=lambda schema: json.dumps(schema)[:40])
def test_a_hostile_schema_costs_little(schema: Any) -> None:
    begun = time.process_time()
    with suppress(NoExample):
        example_of(schema, PromptArguments(hints_of("a" * 3000 + "! in Paris")))
    assert time.process_time() - begun < 2


KEYWORDS = st.sampled_from(
    re.findall(
        r"\S+",
        "type enum const properties required items anyOf oneOf allOf not if then else $ref minimum maximum multipleOf "
        "pattern format minLength minItems uniqueItems contains minContains additionalProperties patternProperties "
        "examples dependentRequired dependentSchemas propertyNames prefixItems minProperties default",
    )
)
ODD = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            KEYWORDS,
            st.one_of(inner, st.sampled_from(["object", "array", "string", "#", "integer"])),
            max_size=4,
        ),
    ),
    max_leaves=12,
)


@examples(300)
@given(ODD)
def test_nonsense_is_no_more_than_no_example(schema: Any) -> None:
    with suppress(NoExample):
        json.dumps(example_of(schema, PromptArguments(hints_of('a "b" 3'))))


def test_without_a_prompt_the_schema_gives_values() -> None:
    assert example_of({"type": "string", "examples": ["one"], "default": "two"}) == "one"
    assert example_of({"type": "string", "default": "two"}) == "two"
    assert example_of({"type": "integer", "minimum": 3}) == 3
    assert example_of({"type": "object", "properties": {"a": {"type": "string"}}}) == {}


def test_decimals_of_a_decoded_schema_become_plain_numbers() -> None:
    assert example_of({"type": "number", "minimum": Decimal("0.5"), "maximum": Decimal("0.75")}) == 0.5
