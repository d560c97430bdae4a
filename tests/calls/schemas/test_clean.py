"""Schemas as back ends take them."""

from __future__ import annotations

import copy
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.thorough import examples
from toolwire.calls.schemas import clean_schema
from toolwire.calls.schemas.keywords import children
from toolwire.profiles import ANTHROPIC_SCHEMAS, GEMINI_SCHEMAS, OPENAI_SCHEMAS, STRICT_SCHEMAS, SchemaRules

ALL = [OPENAI_SCHEMAS, STRICT_SCHEMAS, ANTHROPIC_SCHEMAS, GEMINI_SCHEMAS]
PLAIN = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
TREE = {
    "type": "object",
    "properties": {"root": {"$ref": "#/$defs/node"}},
    "$defs": {
        "node": {
            "type": "object",
            "description": "A node.",
            "properties": {"name": {"type": "string"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
        }
    },
}


@pytest.mark.parametrize("rules", [OPENAI_SCHEMAS, ANTHROPIC_SCHEMAS])
def test_what_is_in_order_stays_the_same_object(rules: SchemaRules) -> None:
    found = clean_schema(PLAIN, rules)
    assert found.schema is PLAIN
    assert found.changes == ()


@pytest.mark.parametrize("schema", [None, {}, {"type": None}])
def test_H068_a_missing_schema_becomes_an_empty_object(schema: dict[str, Any] | None) -> None:
    assert clean_schema(schema, ANTHROPIC_SCHEMAS).schema == {"type": "object", "properties": {}}


def test_H066_objects_get_properties_where_they_are_demanded() -> None:
    schema = {"type": "object", "properties": {"items": {"type": "object"}, "b": {"items": {"type": "object"}}}}
    found = clean_schema(schema, OPENAI_SCHEMAS)
    assert found.schema == {
        "type": "object",
        "properties": {
            "items": {"type": "object", "properties": {}},
            "b": {"items": {"type": "object", "properties": {}}},
        },
    }
    assert [change.where for change in found.changes] == ["properties.items", "properties.b.items"]


def test_H064_unions_at_the_root_become_one_object_that_says_so() -> None:
    schema = {
        "description": "Find it.",
        "type": "object",
        "properties": {"limit": {"type": "integer"}},
        "oneOf": [
            {"properties": {"id": {"type": "string"}}, "required": ["id"]},
            {"$ref": "#/$defs/by_name"},
        ],
        "$defs": {"by_name": {"anyOf": [{"properties": {"name": {"type": "string"}}, "required": ["name"]}]}},
    }
    found = clean_schema(schema, ANTHROPIC_SCHEMAS).schema
    assert found is not None
    assert not {"oneOf", "anyOf", "allOf"} & set(found)
    assert set(found["properties"]) == {"limit", "id", "name"}
    assert "required" not in found
    assert found["description"] == "Find it. Give one of these sets of arguments: id; or name."


def test_H064_allof_at_the_root_requires_all() -> None:
    schema = {"allOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}, "required": ["b"]}]}
    assert clean_schema(schema, ANTHROPIC_SCHEMAS).schema == {
        "type": "object",
        "properties": {"a": {}, "b": {}},
        "required": ["a", "b"],
    }


@pytest.mark.parametrize("rules", ALL)
def test_the_original_is_never_changed(rules: SchemaRules) -> None:
    for schema in (TREE, PLAIN, {"type": "object", "anyOf": [PLAIN, TREE], "properties": {"x": {"type": "object"}}}):
        before = copy.deepcopy(schema)
        clean_schema(schema, rules)
        assert schema == before


@pytest.mark.parametrize("rules", ALL)
def test_H069_H070_circles_and_bombs_end(rules: SchemaRules) -> None:
    definitions: dict[str, Any] = {"d40": {"type": "object", "properties": {"z": {"type": "string"}}}}
    for number in range(40):
        inner = {"$ref": f"#/$defs/d{number + 1}"}
        definitions[f"d{number}"] = {"type": "object", "properties": {"a": inner, "b": inner}, "anyOf": [inner, inner]}
    bomb = {"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "anyOf": [{"$ref": "#/$defs/d0"}] * 50}
    deep: Any = {"type": "object"}
    for _ in range(300):
        deep = {"type": "object", "properties": {"x": deep}}
    started = time.process_time()
    for schema in (TREE, {**bomb, "$defs": definitions}, {"$ref": "#"}, {"anyOf": [{"$ref": "#"}] * 200}, deep):
        clean_schema(schema, rules)
    assert time.process_time() - started < 5


keywords = st.sampled_from(
    ["type", "properties", "items", "anyOf", "oneOf", "allOf", "$ref", "enum", "const", "required"]
)
values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from(["object", "array", "string", "#", "#/items", "null"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(keywords | st.sampled_from(["a", "additionalProperties", "not", "$defs"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@examples(400)
@given(st.dictionaries(keywords, values, max_size=4), st.sampled_from(ALL))
def test_nothing_that_clients_send_breaks_it(schema: dict[str, Any], rules: SchemaRules) -> None:
    before = copy.deepcopy(schema)
    found = clean_schema(schema, rules)
    assert schema == before
    if rules is ANTHROPIC_SCHEMAS:
        assert found.schema is not None
        assert not any(isinstance(found.schema.get(key), list) for key in ("oneOf", "anyOf", "allOf"))


def test_only_schema_positions_are_cleaned() -> None:
    schema = {
        "type": "object",
        "properties": {"properties": {"enum": [{"type": "object"}]}},
        "default": {"type": "object"},
    }
    assert clean_schema(schema, OPENAI_SCHEMAS).schema is schema
    assert list(children(schema))
