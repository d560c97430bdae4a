"""What a model is told."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolwire.calls.arguments import Invalid, judge, tool_error, unknown_tool
from toolwire.calls.arguments.feedback import MAX_BYTES, near_names
from toolwire.calls.schemas import Schemas
from toolwire.types import Tool, ToolCall
from toolwire.wire.exact_json import encode

pytestmark = pytest.mark.slow

WRITE = Tool(
    name="write_file",
    schema={
        "type": "object",
        "properties": {"path": {"type": "string"}, "content": {"type": "string"}, "mode": {"type": "integer"}},
        "required": ["path", "content"],
    },
)


def told(raw: str) -> dict[str, Any]:
    verdict = judge(ToolCall(id="c", name="write_file", raw=raw), WRITE, Schemas())
    assert isinstance(verdict, Invalid)
    return tool_error(WRITE, verdict)


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


values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers() | st.text(), lambda v: st.lists(v) | st.dictionaries(st.text(), v), max_leaves=30
)


@settings(deadline=None, max_examples=20)
@given(st.dictionaries(st.text(), values, max_size=50))
def test_it_is_bounded(arguments: dict[str, Any]) -> None:
    arguments.pop("path", None)
    raw = encode({**arguments, "x": "long " * 20_000, "y": [["z" * 500] * 50] * 50}).decode("utf-8", "replace")
    assert len(encode(told(raw))) <= MAX_BYTES


def test_H126_an_unknown_tool_is_answered_with_the_valid_ones() -> None:
    tools = [Tool(name="read_file"), WRITE, Tool(name="later", is_deferred=True)]
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
