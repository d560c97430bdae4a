"""The one valid reading of arguments that do not fit."""

from __future__ import annotations

import time
from decimal import Decimal
from typing import Any

import pytest

from toolwire.calls.arguments.members import same_name
from toolwire.calls.arguments.repair_search import Fixed, RepairSearch, is_doubtful, preferred_form
from toolwire.calls.schemas import Schemas
from toolwire.wire.exact_json import encode

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
    found = RepairSearch(checker, name, 200).fix(arguments)
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
    assert RepairSearch(checker, "t", 50).fix({"arguments": {"a": "x"}}, ("syntax.quotes",)) is None


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
    assert RepairSearch(checker, "t", 100).tries > RepairSearch(checker, "t", 1_000_000).tries > 0


def test_a_schema_that_is_echoed_is_no_wrapper() -> None:
    schema = {"properties": {"x": {"type": "object"}}, "required": ["x"]}
    assert fix(schema, {"type": "object", "properties": {"x": {"type": "object", "value": {"a": 1}}}}) is None
    assert fix(schema, {"type": "object", "properties": {"x": {"a": 1}}}) == {"x": {"a": 1}}


SCHEMA = {"properties": {"n": {"type": "number"}, "any": {}, "text": {"type": "string"}, "kind": {"enum": ["1", 2]}}}


@pytest.mark.parametrize("value", ["0.1", "True", "null", "-3e5", '{"a": 1}', "[1]"])
def test_a_literal_where_anything_goes_is_in_doubt(value: str) -> None:
    assert is_doubtful(Fixed({"n": 3, "any": value}, ("typed",)), SCHEMA)
    assert is_doubtful(Fixed({"n": 3, "any": [{"x": value}]}, ("typed",)), SCHEMA)
    assert not is_doubtful(Fixed({"n": 3, "any": value}, ("renamed",)), SCHEMA)
    assert not is_doubtful(Fixed({"n": 3, "text": value, "any": 5}, ("typed",)), SCHEMA)


def test_other_values_are_not() -> None:
    assert not is_doubtful(Fixed({"n": 3, "any": "words", "kind": "1"}, ("typed",)), SCHEMA)
    assert not is_doubtful(Fixed({"n": 3, "any": None}, ("typed",)), SCHEMA)
    assert is_doubtful(Fixed({"any": None}, ("null",)), SCHEMA)


def test_a_known_name_in_other_spelling_is_in_doubt_whatever_was_repaired() -> None:
    schema = {"properties": {"user_id": {}, "list": {"items": {"properties": {"maxLines": {}}}}}}
    assert is_doubtful(Fixed({"userId": 1}, ("syntax.quotes",)), schema)
    assert is_doubtful(Fixed({"list": [{"max-lines": 1}]}, ("fence",)), schema)
    assert not is_doubtful(Fixed({"user_id": 1, "more": 2}, ("fence",)), schema)
    assert not is_doubtful(Fixed({"other": {"user-id": 1}}, ("fence",)), schema)
    assert same_name("File-Path_x") == same_name("filePathX")


def test_among_texts_without_quotes_a_number_may_be_one() -> None:
    schema = {"properties": {"a": {"type": "string"}, "any": {}, "n": {"type": "integer"}}}
    assert is_doubtful(Fixed({"a": "x", "any": 5}, ("syntax.bare",)), schema)
    assert is_doubtful(Fixed({"a": "x"}, ("syntax.bare", "null")), schema)
    assert not is_doubtful(Fixed({"a": "x", "n": 5}, ("syntax.bare",)), schema)


def test_where_brackets_were_mended_an_unknown_key_may_belong_elsewhere() -> None:
    schema = {"properties": {"a": {"type": "string"}}}
    assert is_doubtful(Fixed({"a": "x", "b": 1}, ("syntax.bracket",)), schema)
    assert is_doubtful(Fixed({"a": ["x"]}, ("syntax.closers", "listed")), schema)
    assert not is_doubtful(Fixed({"a": "x", "b": 1}, ("syntax.quotes",)), schema)
    assert not is_doubtful(Fixed({"a": "x", "b": 1}, ("syntax.bracket",)), {**schema, "additionalProperties": True})


def test_an_object_found_inside_other_text_has_only_members_that_the_tool_knows() -> None:
    schema = {"properties": {"a": {"type": "string"}}}
    for repair in ("junk", "unlisted", "wrapped"):
        assert is_doubtful(Fixed({"ok": True}, (repair,)), schema)
        assert not is_doubtful(Fixed({"a": "x"}, (repair,)), schema)


def better(schema: dict[str, Any], arguments: dict[str, Any]) -> Any:
    checker = Schemas().of({"properties": schema}).checker
    assert checker is not None
    found = preferred_form(arguments, encode(arguments).decode(), checker)
    return None if found is None else found.arguments


def test_H073_whole_decimals_are_integers_where_the_schema_says_so() -> None:
    schema = {
        "limit": {"type": "integer"},
        "ratio": {"type": "number"},
        "list": {"items": {"type": ["integer", "null"]}},
    }
    given = {"limit": Decimal("10.0"), "ratio": Decimal("10.0"), "list": [Decimal("1e3"), 5, None]}
    found = better(schema, given)
    assert encode(found) == b'{"limit":10,"ratio":10.0,"list":[1000,5,null]}'
    assert better(schema, {"limit": 10, "ratio": Decimal("10.0")}) is None
    assert better({"a": {"type": ["integer", "number"]}}, {"a": Decimal("10.0")}) is None
    assert better({"a": {"type": "integer"}}, {"a": Decimal("1e999999")}) is None


UNION = {
    "to": {
        "anyOf": [{"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}, {"type": "string"}]
    }
}


def test_H027_an_object_written_as_text_is_the_object_that_the_union_describes() -> None:
    assert better(UNION, {"to": '{"id": 5}'}) == {"to": {"id": 5}}
    lists = {
        "edits": {
            "anyOf": [{"type": "array", "items": {"type": "object", "properties": {"id": {}}}}, {"type": "string"}]
        }
    }
    assert better(lists, {"edits": '[{"id": 5}]'}) == {"edits": [{"id": 5}]}


@pytest.mark.parametrize("text", ['{"id": "x"}', '{"id": 5, "more": 1}', "{}", "{id", "plain", '{"other": 1}', "[5]"])
def test_H027_other_text_is_text(text: str) -> None:
    assert better(UNION, {"to": text}) is None


@pytest.mark.parametrize(
    "schema",
    [
        {"anyOf": [{"type": "object"}, {"type": "string"}]},
        {"type": ["object", "string"]},
        {"type": "string"},
        {},
        {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "string"}]},
    ],
)
def test_H027_a_member_that_takes_any_object_describes_nothing(schema: dict[str, Any]) -> None:
    assert better({"to": schema}, {"to": '{"id": 5}'}) is None
    assert better({"to": schema}, {"to": "[5]"}) is None


def test_large_arguments_cost_bounded_time() -> None:
    started = time.process_time()
    better({"a": {"items": {"type": "integer"}}, **UNION}, {"a": [Decimal("1.0")] * 200_000})
    assert time.process_time() - started < 5
