"""One call, one verdict."""

from __future__ import annotations

import json
import time
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolwire.calls.arguments import Invalid, Repaired, Valid, judge, tool_error, unknown_tool
from toolwire.calls.arguments.judge import MAX_BYTES, MOST, missing, near_names, place, problems, prune, render_value
from toolwire.calls.schemas import Schemas
from toolwire.types import Tool, ToolCall
from toolwire.wire.exact_json import decode, encode, object_of

pytestmark = pytest.mark.slow

SCHEMAS = Schemas()
TOOL = Tool(
    name="run",
    schema={
        "type": "object",
        "properties": {
            "command": {"type": "string"},
            "timeout": {"type": "integer"},
            "flags": {"type": "array", "items": {"type": "string"}},
            "dry": {"type": "boolean"},
            "options": {"type": "object", "properties": {"depth": {"type": "number"}}},
        },
        "required": ["command"],
    },
)
WRITE = Tool(
    name="write",
    schema={"properties": {"path": {"type": "string"}, "content": {"type": "string"}}, "required": ["path", "content"]},
)
EMPTY = Tool(name="now", schema={"type": "object", "properties": {}})


def verdict(raw: str, tool: Tool = TOOL, **options: bool) -> Valid | Repaired | Invalid:
    return judge(ToolCall(id="c", name=tool.name, raw=raw), tool, SCHEMAS, **options)


def test_a_valid_call_is_valid() -> None:
    assert verdict('{ "command" : "ls" }') == Valid(args={"command": "ls"})


def test_a_call_that_is_parsed_already_is_not_parsed_again() -> None:
    arguments = {"command": "ls"}
    found = judge(ToolCall(id="c", name="run", raw="", args=arguments), TOOL, SCHEMAS)
    assert isinstance(found, Valid)
    assert found.args is arguments


@pytest.mark.parametrize(
    "raw", ["{}", '{"timeout": 5}', '{"command": true}', '{"command": "x', "[]", "5", "null", "words", ""]
)
def test_H024_what_is_wrong_is_never_shown_as_something_else(raw: str) -> None:
    found = verdict(raw)
    assert isinstance(found, Invalid)
    assert found.errors


def test_missing_members_are_named() -> None:
    found = verdict("{}")
    assert isinstance(found, Invalid)
    assert found.missing == ("command",)
    assert found.received == {}


def test_H012_no_arguments_for_a_tool_without_any() -> None:
    assert verdict("", EMPTY) == Repaired(args={}, raw="{}", repairs=("empty",))
    assert isinstance(verdict("", EMPTY, is_cut=True), Invalid)
    assert isinstance(verdict("", Tool(name="t", schema={"properties": {"a": {}}})), Invalid)


def test_H130_single_quotes() -> None:
    found = verdict("{'command': \"echo 'it is'\", 'dry': True}")
    assert isinstance(found, Repaired)
    assert found.args == {"command": "echo 'it is'", "dry": True}
    assert found.raw == '{"command":"echo \'it is\'","dry":true}'


def test_H131_typed_fields_from_text() -> None:
    found = verdict('{"command": "30", "timeout": "30", "dry": "True", "options": "{\\"depth\\": \\"1.50\\"}"}')
    assert isinstance(found, Repaired)
    assert found.raw == '{"command":"30","timeout":30,"dry":true,"options":{"depth":1.50}}'
    assert set(found.repairs) == {"typed", "encoded"}


def test_H071_H073_numbers_keep_their_digits() -> None:
    tool = Tool(name="t", schema={"properties": {"id": {"type": "integer"}, "x": {"type": "number"}}})
    assert isinstance(verdict('{"id": 2512292042121000001, "x": 0.10}', tool), Valid)
    found = verdict("{'id': 2512292042121000001.0, 'x': 0.10, 'y': 1e400}", tool)
    assert isinstance(found, Repaired)
    assert found.raw == '{"id":2512292042121000001,"x":0.10,"y":1E+400}'
    assert found.args["x"] == Decimal("0.10")


def test_H015_the_same_object_twice() -> None:
    found = verdict('{"command": "x"}{"command": "x"}')
    assert isinstance(found, Repaired)
    assert found.args == {"command": "x"}
    assert isinstance(verdict('{"command": "x"}{"command": "y"}'), Invalid)


def test_H113_an_array_around_it_and_brackets_behind_it() -> None:
    for raw in ('[{"command": "x"}]', '{"command": "x"}]', '{"command": "x"}}]'):
        found = verdict(raw)
        assert isinstance(found, Repaired)
        assert found.args == {"command": "x"}


def test_repair_can_be_forbidden() -> None:
    for raw in ("{'command': 'ls'}", '{"command": "ls", "timeout": "5"}'):
        assert isinstance(verdict(raw, may_repair=False), Invalid)
    assert isinstance(verdict('{"command": "ls", "timeout": 5.0}', may_repair=False), Valid)


def test_H020_H031_a_call_cut_at_any_place_is_never_another_call() -> None:
    full = {
        "command": "printf '%s' \"{}\" [a]",
        "timeout": 120,
        "flags": ["-a", "b"],
        "dry": True,
        "options": {"depth": 1},
    }
    for tool, arguments in ((TOOL, full), (TOOL, {"command": "ls"}), (WRITE, {"path": "/a", "content": "x\n{y}"})):
        raw = json.dumps(arguments)
        for end in range(len(raw)):
            found = verdict(raw[:end], tool)
            assert isinstance(found, Invalid) or found.args == arguments
            assert isinstance(verdict(raw[:end], tool, is_cut=True), Invalid)


def test_a_brace_is_closed_only_where_nothing_can_be_missing() -> None:
    found = verdict('{"path": "a", "content": "b"', WRITE)
    assert isinstance(found, Repaired)
    assert found.repairs == ("syntax.closed",)
    assert isinstance(verdict('{"command": "ls"'), Invalid)
    assert isinstance(verdict('{"path": "a", "content": "b"', WRITE, is_cut=True), Invalid)


def test_what_is_complete_in_spite_of_a_cut_is_judged_as_it_stands() -> None:
    assert isinstance(verdict('{"command": "ls"}', is_cut=True), Valid)
    assert isinstance(verdict('{"command": "ls", "timeout": "5"}', is_cut=True), Repaired)


def test_a_schema_that_cannot_be_checked_makes_no_call_invalid() -> None:
    tool = Tool(name="t", schema={"properties": {"a": {"$ref": "http://127.0.0.1:9/x"}}})
    found = verdict('{"a": 1}', tool)
    assert isinstance(found, Valid)
    assert "never followed" in found.unchecked
    assert isinstance(verdict("{'a': 1}", tool), Invalid)


def test_freeform_tools_take_what_comes() -> None:
    patch = Tool(name="apply_patch", kind="custom")
    assert verdict("*** Begin Patch", patch) == Valid(args=None)
    assert verdict('{"input": ""}', patch) == Valid(args=None)
    for nothing in ("", " ", "{}"):
        judged = verdict(nothing, patch)
        assert isinstance(judged, Invalid)
        assert judged.missing == ("input",)
    assert judge(ToolCall(id="1", name="apply_patch", raw="", kind="custom"), patch, Schemas()) == Valid(args=None)


def test_hostile_arguments_cost_bounded_time() -> None:
    started = time.process_time()
    flags = json.dumps({"command": "x", "flags": ["f"] * 1_000_000})
    assert isinstance(verdict(flags), Valid)
    for raw in (
        json.dumps({"command": "x", "flags": list(range(500_000))}),
        json.dumps({"command": 5, "flags": "[" * 100_000}),
        "{'command': '" + "x" * 1_000_000 + "', 'flags': [" + "1," * 100_000 + "]}",
        '{"command": ' + "[" * 100_000,
        json.dumps({"arguments": {"arguments": {"arguments": {"arguments": {"flags": "x"}}}}}),
        json.dumps({f"Comm-{'_' * number}and": 1 for number in range(2000)}),
        "{" * 50_000,
        '{"timeout": ' + "9" * 4000 + "}",
        '{"command": "x", "timeout": "1e999999999"}',
    ):
        assert isinstance(verdict(raw), Invalid)
    assert time.process_time() - started < 20


names = st.sampled_from(["a", "b", "fileName", "file_name", "input", "arguments"])
schemas: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"]).map(
        lambda name: {"type": name}
    )
    | st.just({})
    | st.just({"enum": ["Red", "blue", 3]}),
    lambda inner: (
        st.builds(lambda item: {"type": "array", "items": item}, inner)
        | st.builds(lambda items: {"anyOf": items}, st.lists(inner, min_size=1, max_size=3))
        | st.builds(
            lambda items, need, is_closed: {
                "type": "object",
                "properties": items,
                "required": sorted(items)[:need],
                **({"additionalProperties": False} if is_closed else {}),
            },
            st.dictionaries(names, inner, max_size=3),
            st.integers(0, 2),
            st.booleans(),
        )
    ),
    max_leaves=8,
)
objects = schemas.filter(lambda schema: schema.get("type") == "object")
values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(["", "30", "true", "null", "[1]", '{"a": 1}', "['x']", "red", "1.0", "\ud800"])
    | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
damages = st.sampled_from(["", "'", ",", "}", "{", "\n", "```", "[", '"', "\\", ": "])


@settings(max_examples=400, deadline=None)
@given(objects, st.dictionaries(names, values, max_size=3), damages, st.integers(0, 60), st.booleans())
def test_it_never_raises_and_what_it_repairs_is_valid(
    schema: dict[str, Any], arguments: dict[str, Any], damage: str, place: int, is_cut: bool
) -> None:
    text = json.dumps(arguments)
    raw = text[:place] + damage + text[place:]
    tool = Tool(name="b", schema=schema)
    found = verdict(raw, tool, is_cut=is_cut)
    strict = object_of(raw)
    if isinstance(found, Repaired):
        assert isinstance(verdict(found.raw, tool, may_repair=False), Valid)
        assert decode(found.raw) == found.args
        again = verdict(found.raw, tool)
        assert isinstance(again, Valid)
    elif isinstance(found, Valid):
        assert strict is not None
        assert found.args == strict
    if strict is None and is_cut:
        assert isinstance(found, Invalid)


@settings(max_examples=200, deadline=None)
@given(objects, st.text())
def test_any_text_at_all(schema: dict[str, Any], raw: str) -> None:
    verdict(raw, Tool(name="b", schema=schema))


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.text(), st.none() | st.text() | st.dictionaries(st.text(), st.integers())), st.text())
def test_any_schema_at_all(schema: dict[str, Any], raw: str) -> None:
    verdict(raw, Tool(name="b", schema={"properties": schema, **schema}))


pytestmark = pytest.mark.slow


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


pytestmark = pytest.mark.slow

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
        "hint": "Call write_file again with a value for: path, content. The call was not made.",
    }


def test_no_object_at_all() -> None:
    found = told('{"path": "a", "content": "half')
    assert found["received"] == '{"path": "a", "content": "half'
    assert found["missing"] == []
    assert "one complete JSON object" in found["hint"]


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers() | st.text(), lambda v: st.lists(v) | st.dictionaries(st.text(), v), max_leaves=30
)


@settings(deadline=None, max_examples=20)
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
