"""Error messages for models."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.thorough import examples
from toolwire.calls.arguments import Invalid, judge, tool_error, unknown_tool
from toolwire.calls.arguments.feedback import (
    MAX_BYTES,
    MOST,
    evident,
    missing,
    near_names,
    place,
    problems,
    prune,
    render_value,
    smallest_example,
)
from toolwire.calls.schemas import Schemas
from toolwire.types import Tool, ToolCall
from toolwire.wire.exact_json import encode


def said(schema: dict[str, Any], value: Any) -> list[tuple[str, str]]:
    checker = Schemas().of({"properties": {"p": schema}}).checker
    assert checker is not None
    arguments = {"p": value}
    return [(problem.path, problem.message) for problem in problems(checker.faults(arguments, 1000), arguments)]


@pytest.mark.parametrize(
    ("schema", "value", "path", "message"),
    [
        ({"type": "integer"}, "x", "p", 'found string "x"; expected integer.'),
        ({"type": ["integer", "null"]}, [], "p", "found array []; expected null or integer."),
        ({"type": "string"}, None, "p", "found null; expected string."),
        ({"items": {"required": ["id"]}}, [{}], "p[0]", '"id" is missing; it is required.'),
        (
            {"properties": {}, "additionalProperties": False},
            {"x": 1},
            "p",
            'found "x", which this object does not have.',
        ),
        ({"enum": ["a", "b"]}, "c", "p", 'found "c"; expected one of "a", "b".'),
        ({"const": 5}, 6, "p", "found 6; expected 5."),
        ({"pattern": "^a"}, "b", "p", 'found "b"; expected a text that matches ^a.'),
        ({"minimum": 5}, 3, "p", "found 3; expected minimum 5."),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "x", "p", 'found "x"; expected integer or null.'),
        (
            {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
            {},
            "p",
            'found {}; expected one of 2 forms (with "a", "b").',
        ),
        ({"oneOf": [{}, {}]}, 5, "p", "found 5, which fits more than one of the forms allowed; expected just one."),
    ],
)
def test_sentences(schema: dict[str, Any], value: Any, path: str, message: str) -> None:
    assert said(schema, value) == [(path, message)]


def test_everything_is_bounded() -> None:
    long = said({"type": "integer"}, "x" * 100_000)
    assert len(long[0][1]) < 300
    many = said({"items": {"type": "integer"}}, ["x"] * 100)
    assert len(many) == MOST
    assert len(said({"enum": [str(number) * 50 for number in range(500)]}, "x")[0][1]) < 300


def test_missing_names_are_whole_paths() -> None:
    checker = Schemas().of({"required": ["a"], "properties": {"b": {"items": {"required": ["c"]}}}}).checker
    assert checker is not None
    assert set(missing(checker.faults({"b": [{}]}, 20))) == {"a", "b[0].c"}


def test_values_are_shown_short() -> None:
    assert render_value({"a": [1, Decimal("1.50")]}) == '{"a":[1,1.50]}'
    assert prune(["x"] * 30, 10, 2)[-1] == "... (30 items)"
    assert prune({"a": {"b": {"c": 1}}}, 10, 2) == {"a": {"b": "... (1 members)"}}
    assert prune({str(number): 1 for number in range(30)}, 10, 2)["..."] == "(30 members)"
    assert prune("x" * 30, 10, 2) == "xxxxxxxxxx... (30 characters)"
    assert prune(10**1000, 10, 2) == "a very long number"
    assert place(("a", 0, "b", 1)) == "a[0].b[1]"
    assert place((0,)) == "[0]"


WRITE_FILE = Tool(
    name="write_file",
    schema={
        "type": "object",
        "properties": {"path": {"type": "string"}, "content": {"type": "string"}, "mode": {"type": "integer"}},
        "required": ["path", "content"],
    },
)


def told(raw: str) -> dict[str, Any]:
    verdict = judge(ToolCall(id="c", name="write_file", raw=raw), WRITE_FILE, Schemas())
    assert isinstance(verdict, Invalid)
    return tool_error(WRITE_FILE, verdict)


def test_the_structure_says_what_is_wrong_what_came_and_what_to_do() -> None:
    assert told('{"mode": "high"}') == {
        "error": "invalid_arguments",
        "tool": "write_file",
        "validation_errors": [
            {"path": "", "message": '"path" is missing; it is required.'},
            {"path": "", "message": '"content" is missing; it is required.'},
            {"path": "mode", "message": 'found string "high"; expected integer.'},
        ],
        "missing": ["path", "content"],
        "received": {"mode": "high"},
        "hint": "Call write_file again with a value for: path, content, and the other faults corrected. The call was not made. "
        "The example shows only the form.",
        "example": {"path": "...", "content": "..."},
    }


def test_a_near_miss_reports_the_faults_of_its_loose_reading() -> None:
    found = told("{'path': 'a.txt', 'mode': 'high'}")
    assert found["validation_errors"][0]["message"].startswith("found no JSON: ")
    assert found["validation_errors"][1:] == [
        {"path": "", "message": '"content" is missing; it is required.'},
        {"path": "mode", "message": 'found string "high"; expected integer.'},
    ]
    assert found["missing"] == ["content"]
    assert found["received"] == {"path": "a.txt", "mode": "high"}
    assert "a value for: content, and the other faults corrected" in found["hint"]


def test_a_near_miss_inside_a_wrapper_reports_the_inner_faults() -> None:
    found = told('{"arguments": {"path": "a.txt"}}')
    assert "inside another object" in found["validation_errors"][0]["message"]
    assert found["missing"] == ["content"]
    assert found["received"] == {"path": "a.txt"}


def test_empty_arguments_report_what_is_required() -> None:
    found = told("")
    assert found["missing"] == ["path", "content"]
    assert found["validation_errors"][0]["message"] == "found no JSON: it is empty; expected one object."


def test_a_missing_member_in_another_spelling_is_named() -> None:
    found = told('{"Path": "a.txt"}')
    assert found["validation_errors"][0]["message"] == '"path" is missing; it is required, and found only as "Path".'


UNION = {
    "anyOf": [
        {"type": "string"},
        {"properties": {"kind": {"const": "line"}, "at": {"type": "integer"}}, "required": ["kind", "at"]},
        {"properties": {"kind": {"const": "text"}, "old": {"type": "string"}}, "required": ["kind", "old"]},
    ]
}


def test_a_union_reports_the_faults_of_the_form_that_was_meant() -> None:
    checker = Schemas().of({"properties": {"edits": {"items": UNION}}}).checker
    assert checker is not None
    arguments = {"edits": [{"kind": "text"}, {"kind": "line", "at": "x"}, {"kind": "other"}]}
    faults = evident(checker.faults(arguments, 1000))
    assert [(problem.path, problem.message) for problem in problems(faults, arguments)] == [
        ("edits[0]", '"old" is missing; it is required.'),
        ("edits[1].at", 'found string "x"; expected integer.'),
        ("edits[2]", 'found {"kind":"other"}; expected one of 3 forms (with "at", "old").'),
    ]
    assert missing(faults) == ("edits[0].old",)


def test_the_example_is_valid_small_or_absent() -> None:
    unit = {"enum": ["celsius", "fahrenheit"]}
    schema = {"properties": {"city": {"type": "string"}, "unit": unit, "days": {}}, "required": ["city", "unit"]}
    assert smallest_example(schema) == {"city": "...", "unit": "celsius"}
    assert smallest_example({"properties": {"a": {"minLength": 5000}}, "required": ["a"]}) is None
    assert smallest_example({"not": {}}) is None
    assert smallest_example(None) is None
    assert smallest_example({"properties": {"a": {"description": "x" * 100_000}}, "required": ["a"]}) is None


def test_no_object_at_all() -> None:
    found = told('{"path": "a", "content": "half')
    assert found["received"] == '{"path": "a", "content": "half'
    assert found["missing"] == []
    assert "one complete JSON object" in found["hint"]


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers() | st.text(), lambda v: st.lists(v) | st.dictionaries(st.text(), v), max_leaves=30
)


@pytest.mark.slow
@examples(20)
@given(st.dictionaries(st.text(), json_values, max_size=50))
def test_it_is_bounded(arguments: dict[str, Any]) -> None:
    arguments.pop("path", None)
    raw = encode({**arguments, "x": "long " * 20_000, "y": [["z" * 500] * 50] * 50}).decode("utf-8", "replace")
    assert len(encode(told(raw))) <= MAX_BYTES


def test_H126_an_unknown_tool_is_answered_with_the_valid_ones() -> None:
    tools = [Tool(name="read_file"), WRITE_FILE, Tool(name="later", is_deferred=True)]
    found = unknown_tool("Skill", tools)
    assert found["error"] == "unknown_tool"
    assert found["valid_tools"] == ["read_file", "write_file"]
    assert "near" not in found
    near = unknown_tool("writeFile", tools)
    assert near["near"] == ["write_file"]
    assert "write_file" in near["hint"]
    assert "no tools" in unknown_tool("x", [])["hint"]
    many = unknown_tool("x", [Tool(name=f"tool_{number}") for number in range(100)])
    assert many["more_tools"] == 40


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("functions.read_file", ["read_file"]),
        ("read_fil", ["read_file"]),
        ("READ-FILE", ["read_file"]),
        ("file_read", []),
        ("", []),
    ],
)
def test_near_names(name: str, near: list[str]) -> None:
    assert near_names(name, ["read_file", "bash", "grep"]) == near
