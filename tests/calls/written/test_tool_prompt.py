"""The rules that a model is told: the same bytes for the same tools, every tool in exact JSON, an example that is one."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.calls.schemas import Schemas
from toolwire.calls.written.tool_prompt import _known, rules
from toolwire.types import Tool
from toolwire.wire.exact_json import decode

READ = Tool(name="read", description="Reads a file.", schema={"properties": {"path": {}}, "required": ["path"]})
NOW = Tool(name="now")


def tools_in(text: str) -> list[Any]:
    return [decode(line) for line in text.split("\n") if line.startswith('{"name":') and '"parameters":' in line]


def example_in(text: str) -> Any:
    blocks = re.findall(r"^<tool_call>\n(.*)\n</tool_call>$", text, re.MULTILINE)
    assert len(blocks) <= 2  # the first shows the form
    return decode(blocks[1]) if len(blocks) == 2 else None


def test_the_tools_stand_in_the_clients_order_in_exact_json() -> None:
    schema = {"type": "object", "properties": {"z": {"maximum": Decimal("1.50")}, "a": {"const": 10**30}}}
    text = rules((NOW, Tool(name="x", schema=schema), READ))
    assert tools_in(text) == [
        {"name": "now", "parameters": {"type": "object", "properties": {}}},
        {"name": "x", "parameters": schema},
        {"name": "read", "description": "Reads a file.", "parameters": READ.schema},
    ]
    assert '{"maximum":1.50}' in text


def test_the_rules_are_short_and_say_what_matters() -> None:
    text = rules((NOW,))
    assert text.index("The tools") < 1500
    assert len(text.splitlines()) < 18
    for word in (
        "<tool_call>",
        "<tool_result>",
        "code fence",
        "several",
        "stop and wait",
        "data",
        "plain text",
        "Never mention",
    ):
        assert word in text


def test_the_same_tools_are_the_same_bytes_known_or_not() -> None:
    text = rules((READ, NOW))
    _known.clear()
    again = rules((Tool(name="read", description="Reads a file.", schema=dict(READ.schema or {})), NOW))
    assert text == again
    assert rules((NOW, READ)) != text
    assert rules((READ, NOW)) is again


def test_a_few_sets_are_remembered_and_huge_ones_are_not() -> None:
    _known.clear()
    huge = Tool(name="huge", description="x" * (1 << 20))
    assert rules((huge,)) == rules((huge,))
    assert not _known
    for number in range(40):
        rules((Tool(name=f"t{number}"),))
    assert len(_known) == 16


def test_the_example_calls_the_first_tool_that_needs_arguments() -> None:
    assert example_in(rules((NOW, READ))) == {"name": "read", "arguments": {"path": "..."}}
    assert example_in(rules((NOW,))) is None


def test_a_tool_may_be_called_tool_call() -> None:
    tool = Tool(name="tool_call", schema={"type": "object", "properties": {"q": {}}, "required": ["q"]})
    text = rules((tool,))
    assert tools_in(text)[0]["name"] == "tool_call"
    assert example_in(text) == {"name": "tool_call", "arguments": {"q": "..."}}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"enum": ["b", "a"]}, "b"),
        ({"const": 7}, 7),
        ({"type": "integer", "minimum": 5}, 5),
        ({"type": "integer", "maximum": -2}, -2),
        ({"type": "number", "default": Decimal("0.5")}, Decimal("0.5")),
        ({"type": "string", "examples": ["a.txt"]}, "a.txt"),
        ({"type": "boolean"}, True),
        ({"type": ["null", "integer"]}, 1),
        ({"anyOf": [{"type": "null"}, {"type": "string"}]}, "..."),
        ({"type": "array", "items": {"type": "integer"}}, [1]),
        ({"$ref": "#/$defs/Point"}, {"x": 1}),
        ({"type": "object", "properties": {"y": {"type": "null"}}, "required": ["y"]}, {"y": None}),
    ],
)
def test_values_of_an_example_are_of_the_schema(schema: Any, value: Any) -> None:
    point = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
    whole = {"type": "object", "properties": {"v": schema}, "required": ["v"], "$defs": {"Point": point}}
    assert example_in(rules((Tool(name="t", schema=whole),))) == {"name": "t", "arguments": {"v": value}}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "minLength": 400},
        {"type": "string", "pattern": "^[a-z]{9}$"},
        {"type": "array", "minItems": 3},
        {"$ref": "#/nowhere"},
        {"not": {}},
        {"const": "x" * 3000},
        False,
    ],
)
def test_where_no_value_is_found_there_is_no_example(schema: Any) -> None:
    tool = Tool(name="t", schema={"type": "object", "properties": {"v": schema}, "required": ["v"]})
    assert example_in(rules((tool,))) is None
    assert example_in(rules((tool, READ)))["name"] == "read"


WORDS = st.sampled_from(["type", "object", "string", "a", "b", "#/properties/a", "null"])
SCHEMAS = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "properties", "required", "enum", "a", "items", "anyOf", "$ref", "default", "minimum"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(SCHEMAS, SCHEMAS | st.lists(st.sampled_from(["a", "b"]), min_size=1))
def test_no_schema_is_too_odd_and_no_example_is_wrong(inner: Any, required: Any) -> None:
    schema = {"type": "object", "properties": {"a": inner, "b": {"type": "string"}}, "required": required}
    found = example_in(rules((Tool(name="t", schema=schema),)))
    checker = Schemas().of(schema).checker
    if found is not None:
        assert checker is not None
        assert checker.fits(found["arguments"], 100)


@pytest.mark.parametrize(
    "token", ["<|im_end|>", "</tool_call>", "<tool_result>", "[INST]", "</s>", "<｜User｜>", "<TOOL_CALL>"]
)
def test_a_description_cannot_pose_as_more(token: str) -> None:
    tool = Tool(
        name="t", description=f"Says {token} and <b>bold</b>, [path].", schema={"required": ["v"], "default": token}
    )
    (line,) = [line for line in rules((tool,)).split("\n") if '"parameters":' in line]
    assert token not in line
    assert "and <b>bold</b>, [path]." in line
    assert json.loads(line)["description"] == tool.description
