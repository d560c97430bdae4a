"""The one valid reading of arguments that do not fit."""

from __future__ import annotations

import time
from typing import Any

import pytest

from toolwire.calls.arguments.repair_search import Search
from toolwire.calls.schemas import Schemas

pytestmark = pytest.mark.slow

EDITS = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "edits": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"line": {"type": "integer"}, "text": {"type": "string"}},
                "required": ["line", "text"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["path", "edits"],
}
EDIT = {"line": 3, "text": "[x]"}
WHOLE = {"path": "a", "edits": [EDIT]}


def fix(schema: dict[str, Any], arguments: dict[str, Any], name: str = "edit_file") -> Any:
    checker = Schemas().of(schema).checker
    assert checker is not None
    found = Search(checker, name, 200).fix(arguments)
    assert found is None or checker.fits(found.arguments, 200)
    return None if found is None else found.arguments


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": "a", "edits": '[{"line": 3, "text": "[x]"}]'},
        {"path": "a", "edits": "[{'line': '3', 'text': '[x]'}]"},
        {"path": "a", "edits": ['{"line": 3, "text": "[x]"}']},
        {"path": "a", "edits": EDIT},
        {"path": "a", "edits": [{"Line": "3", "TEXT": "[x]"}]},
        {"Path": "a", "Edits": [EDIT]},
        {"arguments": WHOLE},
        {"input": '{"path": "a", "edits": [{"line": "3", "text": "[x]"}]}'},
        {"name": "edit_file", "arguments": WHOLE},
        {"type": "function", "function": {"name": "edit_file", "arguments": WHOLE}},
        {"edit_file": WHOLE},
        {"editFile": {"parameters": WHOLE}},
    ],
)
def test_H025_slips_alone_and_together_come_back_as_meant(arguments: dict[str, Any]) -> None:
    assert fix(EDITS, arguments) == WHOLE


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"path": "a"},
        {"path": "a", "edits": "[{'line': 3"},
        {"path": "a", "edits": "replace all"},
        {"path": "a", "edits": [{"line": 3}]},
        {"path": "a", "edits": [{"line": 3, "text": "x", "more": 1}]},
        {"path": None, "edits": [EDIT]},
        {"name": "other_tool", "arguments": WHOLE},
        {"arguments": WHOLE, "more": 1},
        {"arguments": WHOLE, "input": WHOLE},
    ],
)
def test_what_cannot_be_known_stays_invalid(arguments: dict[str, Any]) -> None:
    assert fix(EDITS, arguments) is None


def test_two_readings_are_none() -> None:
    schema = {"properties": {"a": {"anyOf": [{"type": "integer"}, {"const": "007"}]}}}
    assert fix(schema, {"a": "7"}) == {"a": 7}
    schema = {"properties": {"a": {"anyOf": [{"type": "integer"}, {"enum": ["YES", "7 "]}]}}}
    assert fix(schema, {"a": "7"}) is None


def test_a_list_of_one_is_the_last_resort() -> None:
    schema = {"properties": {"a": {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "integer"}]}}}
    assert fix(schema, {"a": "7"}) == {"a": 7}
    assert fix({"properties": {"a": {"type": "array", "items": {"type": "integer"}}}}, {"a": "7"}) == {"a": [7]}


def test_a_wrapper_that_the_tool_knows_is_no_wrapper() -> None:
    schema = {"properties": {"input": {"type": "object"}, "x": {}}, "required": ["x"]}
    assert fix(schema, {"input": {"x": 1}}) is None


def test_half_unwrapped_is_not_enough() -> None:
    schema = {"properties": {"type": {"enum": ["a", "b"]}}}
    call = {"type": "function", "function": {"name": "edit_file", "arguments": {"type": "a"}}}
    assert fix(schema, call) == {"type": "a"}


def test_what_is_legal_inside_and_outside_is_in_doubt() -> None:
    checker = Schemas().of({"properties": {"a": {"type": "string"}}}).checker
    assert checker is not None
    assert Search(checker, "t", 50).fix({"arguments": {"a": "x"}}, ("syntax.quotes",)) is None


def test_legal_values_are_never_touched() -> None:
    schema = {"properties": {"text": {"type": "string"}, "n": {"type": "integer"}}}
    texts = ["30", "true", "null", "[1]", '{"a": 1}', "'x'", "```json\n{}\n```"]
    for text in texts:
        assert fix(schema, {"text": text, "n": "5"}) == {"text": text, "n": 5}


def test_many_faults_cost_bounded_time() -> None:
    schema = {"properties": {"a": {"type": "array", "items": {"type": "integer"}}}}
    union = {"anyOf": [{"type": "array", "items": {"$ref": "#/properties/a"}}, {"type": "object", "required": ["k"]}]}
    started = time.process_time()
    assert fix(schema, {"a": [str(number) for number in range(150)]}) == {"a": list(range(150))}
    fix(schema, {"a": ["x"] * 5000})
    fix({"properties": {"a": union}}, {"a": [[["x"]] * 20] * 20})
    fix(
        {"properties": {f"p{n}": {"anyOf": [{"const": "A"}, {"const": "a "}]} for n in range(40)}},
        {f"p{n}": "a" for n in range(40)},
    )
    assert time.process_time() - started < 10


def test_wrappers_of_any_name_with_all_that_the_tool_knows_inside() -> None:
    schema = {"properties": {"x": {"type": "integer"}}, "required": ["x"]}
    assert fix(schema, {"whatever": {"x": 1}}) == {"x": 1}
    assert fix(schema, {"whatever": {"x": 1, "y": 2}}) is None
    assert fix(schema, {"whatever": {"x": 1}, "more": 2}) is None
    assert fix(schema, {"action": "edit_file", "action_input": {"x": "1"}}) == {"x": 1}


def test_a_wrapper_that_is_a_text_of_the_tool_as_well() -> None:
    schema = {"properties": {"input": {"type": "string"}}, "required": ["input"]}
    assert fix(schema, {"input": {"input": "x"}}) == {"input": "x"}


def test_large_arguments_get_few_tries() -> None:
    checker = Schemas().of({"required": ["x"]}).checker
    assert checker is not None
    assert Search(checker, "t", 100).tries > Search(checker, "t", 1_000_000).tries > 0


def test_a_schema_told_back_is_no_wrapper() -> None:
    schema = {"properties": {"x": {"type": "object"}}, "required": ["x"]}
    assert fix(schema, {"type": "object", "properties": {"x": {"type": "object", "value": {"a": 1}}}}) is None
    assert fix(schema, {"type": "object", "properties": {"x": {"a": 1}}}) == {"x": {"a": 1}}
