"""One call, one verdict."""

from __future__ import annotations

import json
import time
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.thorough import examples
from toolwire.calls.arguments import Invalid, Repaired, Valid, judge
from toolwire.calls.schemas import Schemas
from toolwire.types import Tool, ToolCall
from toolwire.wire.exact_json import decode, object_of

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


def test_a_member_that_occurs_twice_is_sent_once_if_its_values_are_equal() -> None:
    found = verdict('{"command": "ls", "options": {"depth": 1, "depth": 1}, "command": "ls"}')
    assert isinstance(found, Repaired)
    assert (found.raw, found.repairs) == ('{"command":"ls","options":{"depth":1}}', ("twice",))


@pytest.mark.parametrize(
    "raw", ['{"command": "ls", "command": "pwd"}', '{"command": "a", "timeout": "5", "command": "b"}']
)
def test_a_member_with_two_values_makes_a_call_invalid(raw: str) -> None:
    for may_repair in (True, False):
        assert isinstance(verdict(raw, may_repair=may_repair), Invalid)
    found = verdict('{"command": "ls", "command": "pwd"}')
    assert isinstance(found, Invalid)
    assert [error.path for error in found.errors] == ["command"]


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


@pytest.mark.slow
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


@examples(400)
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


@examples(200)
@given(objects, st.text())
def test_any_text_at_all(schema: dict[str, Any], raw: str) -> None:
    verdict(raw, Tool(name="b", schema=schema))


@examples(200)
@given(st.dictionaries(st.text(), st.none() | st.text() | st.dictionaries(st.text(), st.integers())), st.text())
def test_any_schema_at_all(schema: dict[str, Any], raw: str) -> None:
    verdict(raw, Tool(name="b", schema={"properties": schema, **schema}))
