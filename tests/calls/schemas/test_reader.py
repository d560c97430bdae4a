"""Schemas as clients write them."""

from __future__ import annotations

import time
from typing import Any

import pytest

from toolwire.calls.schemas.reader import MOST, SchemaPatterns, Uncheckable, UnreadableSchema, read


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"type": "dict"}, {"type": "object"}),
        (
            {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}},
            {"type": "object", "properties": {"a": {"type": "string"}}},
        ),
        ({"type": None, "properties": None}, {}),
        ({"properties": []}, {}),
        ({"properties": {"a": {"type": "any", "required": True}}}, {"properties": {"a": {}}}),
        ({"properties": {"a": None, "b": "integer"}}, {"properties": {"a": {}, "b": {"type": "integer"}}}),
        (
            {"properties": {"a": {"minimum": 1, "exclusiveMinimum": True}}},
            {"properties": {"a": {"exclusiveMinimum": 1}}},
        ),
        ({"properties": {"a": {"minimum": "1", "maxLength": 2.5}}}, {"properties": {"a": {}}}),
        (
            {"properties": {"a": {"type": "string", "nullable": True}}},
            {"properties": {"a": {"type": ["string", "null"]}}},
        ),
        (
            {"properties": {"a": {"type": "string", "enum": ["x"], "nullable": True}}},
            {"properties": {"a": {"anyOf": [{"type": "string", "enum": ["x"]}, {"type": "null"}]}}},
        ),
        (
            {"properties": {"a": {"items": [{"type": "int"}]}}},
            {"properties": {"a": {"prefixItems": [{"type": "integer"}]}}},
        ),
        ({"required": "a"}, {"required": ["a"]}),
        ({"anyOf": [], "additionalProperties": "no"}, {}),
        (
            {"dependencies": {"a": ["b"], "c": {"required": ["d"]}}},
            {"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"c": {"required": ["d"]}}},
        ),
        (
            {"properties": {"a": {"pattern": "("}, "b": {"pattern": r"\A(?P<x>a)\Z"}}},
            {"properties": {"a": {}, "b": {"pattern": "^(?<x>a)$"}}},
        ),
        ({"$schema": "http://example.com/own", "type": "object", "description": 5, "default": {}}, {"type": "object"}),
        ({"type": "string"}, {}),
    ],
)
def test_what_clients_write_is_read_as_they_meant_it(given: dict[str, Any], meant: dict[str, Any]) -> None:
    before = repr(given)
    assert read(given).schema == meant
    assert repr(given) == before


def test_what_was_overlooked_is_noted_with_its_place() -> None:
    assert read({"properties": {"a": {"type": "any"}}}).notes == ("properties.a.type: no such type: any",)


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"properties": ["a"]}, ("properties",)),
        ({"properties": {"a": {"type": 5}}}, ("properties", "a", "type")),
        ({"properties": {"a": 5}}, ("properties", "a")),
        ({"anyOf": {}}, ("anyOf",)),
        ({"required": [1]}, ("required",)),
        ({"items": {"$ref": 5}}, ("items", "$ref")),
    ],
)
def test_what_means_nothing_is_a_fault_with_a_path(given: dict[str, Any], path: tuple[str, ...]) -> None:
    with pytest.raises(UnreadableSchema) as caught:
        read(given)
    assert caught.value.path == path


@pytest.mark.parametrize(
    "reference", ["http://127.0.0.1:9/schema", "file:///etc/hosts", "other.json", "#/$defs/none", "#none", "//host/x"]
)
def test_a_reference_that_leads_elsewhere_makes_it_uncheckable(reference: str) -> None:
    with pytest.raises(Uncheckable, match="reference"):
        read({"properties": {"a": {"$ref": reference}}})


def test_references_of_every_kind_inside_are_understood() -> None:
    text = {"type": "string"}
    schema = {
        "$id": "https://example.com/tool",
        "properties": {
            "a": {"$ref": "#/components/schemas/X"},
            "b": {"$ref": "#named"},
            "c": {"$ref": "https://example.com/tool#/components/schemas/X"},
            "d": {"$ref": "#"},
            "e": {"$ref": "inner"},
        },
        "components": {"schemas": {"X": text}},
        "$defs": {"y": {"$anchor": "named", "type": "integer"}, "z": {"$id": "inner", "type": "null"}},
    }
    found = read(schema).schema
    names = {key: item["$ref"].removeprefix("#/$defs/") for key, item in found["properties"].items()}
    assert names["a"] == names["c"]
    assert names["d"] == "#"
    assert found["$defs"] == {names["a"]: text, names["b"]: {"type": "integer"}, names["e"]: {"type": "null"}}


def test_circles_end() -> None:
    schema = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}
    assert len(read(schema).schema["$defs"]) == 2


def test_too_deep_and_too_large_are_uncheckable_not_wrong() -> None:
    deep: dict[str, Any] = {}
    for _ in range(3000):
        deep = {"items": deep}
    with pytest.raises(Uncheckable, match="deeper"):
        read({"properties": {"a": deep}})
    with pytest.raises(Uncheckable, match="more than"):
        read({"properties": {f"p{number}": {} for number in range(60_000)}})


def test_numbers_that_are_traps_are_no_limits() -> None:
    from decimal import Decimal

    given = {
        "properties": {
            "a": {"maximum": Decimal("1e999999"), "multipleOf": Decimal("1e-99999"), "minLength": Decimal("1e99")}
        }
    }
    assert read(given).schema == {"properties": {"a": {}}}


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ({"type": "strng"}, ("type",)),
        ({"type": "object", "properties": {"c": {"type": ["string", "nul"]}}}, ("properties", "c", "type")),
        ({"type": "object", "properties": {"c": {"enum": "x"}}}, ("properties", "c", "enum")),
    ],
)
def test_an_unknown_key_is_named_with_its_place(schema: dict[str, Any], path: tuple[str, ...]) -> None:
    with pytest.raises(UnreadableSchema) as fault:
        read(schema)
    assert fault.value.path == path


@pytest.mark.parametrize("word", ["any", "Date", "file", "", "string|null", "List[str]", "HashMap", "dict"])
def test_words_that_people_use_for_types_are_no_fault(word: str) -> None:
    assert read({"type": "object", "properties": {"c": {"type": word}}})


@pytest.mark.parametrize("pattern", ["^[a-z0-9-]{1,64}$", r"^\d{4}-\d\d-\d\d$", "^.{1,200}$", r"\p{L}+", "(a+)+$", ""])
def test_what_the_linear_engine_takes_is_not_slow(pattern: str) -> None:
    patterns = SchemaPatterns()
    assert patterns.read(pattern) == pattern
    assert not patterns.needs_backtracking


@pytest.mark.parametrize("pattern", ["^(?!x)", r"(a)\1", "(?<=a)b"])
def test_what_needs_the_other_engine_is_marked(pattern: str) -> None:
    patterns = SchemaPatterns()
    assert patterns.read(pattern) == pattern
    assert patterns.is_slow(pattern)


@pytest.mark.parametrize("pattern", ["(", "[", "a" * 2000, "((a{1,1000}){1,1000}){1,1000}"])
def test_what_cannot_be_run_is_left_out(pattern: str) -> None:
    assert SchemaPatterns().read(pattern) == ""


def test_many_large_patterns_cost_little() -> None:
    started = time.process_time()
    patterns = SchemaPatterns()
    read = [patterns.read(rf"(\p{{L}}{{1,200}}|x){number}") for number in range(500)]
    assert len([pattern for pattern in read if pattern]) <= MOST
    assert time.process_time() - started < 10


def test_only_a_few_large_patterns_are_compiled() -> None:
    patterns = SchemaPatterns()
    taken = [patterns.read(f"^.{{1,{number}}}$") for number in range(100, 120)]
    assert all(taken[:6])
    assert not any(taken[6:])
    assert patterns.read("^small$")
