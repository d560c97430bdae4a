"""What counts as a conversation that came back as it was told."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.backends.event_contract import assistant, result, user
from toolwire.backends.scripted.judge import altered, tool_called, unpaired
from toolwire.types import Message, Tool, ToolCall


def call(call_id: str, raw: str = "{}", name: str = "look", kind: str = "function") -> ToolCall:
    if kind == "custom":
        return ToolCall(id=call_id, name=name, raw=raw, kind="custom")
    return ToolCall(id=call_id, name=name, raw=raw, args=json.loads(raw))


def calling(*calls: ToolCall) -> Message:
    return Message(role="assistant", parts=calls)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("look", "look"),
        ("a.look", "look"),
        ("c.look", "c__look"),
        ("b__write", "a__write"),
        ("write", "a__write"),
        ("read", None),
        ("two", None),
    ],
)
def test_a_tool_is_found_by_its_name_or_the_end_of_it(name: str, found: str | None) -> None:
    tools = [Tool(name=offered) for offered in ("look", "c__look", "a__write", "a__two", "b__two", "rewrite")]
    tool = tool_called(name, tools)
    assert (tool.name if tool else None) == found


def test_pairs_are_in_order() -> None:
    told = [calling(call("1"), call("2")), result("2", "b"), user("by the way"), result("1", "a"), assistant("done")]
    assert unpaired(told) == ""
    assert unpaired([]) == ""


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([calling(call("1"))], "no result for the call of look"),
        ([calling(call("1")), result("1", "a"), result("1", "b")], "answers no call that waits"),
        ([result("1", "a"), calling(call("1"))], "answers no call that waits"),
        ([calling(call("1"), call("1"))], "expected one of its own"),
        ([calling(call(""))], "expected one of its own"),
    ],
)
def test_what_does_not_pair_is_named(messages: list[Message], words: str) -> None:
    assert words in unpaired(messages)


def test_ids_and_print_of_arguments_may_change() -> None:
    told = [[call("1", '{"a": 1, "b": [true]}')], []]
    assert altered([calling(call("9", '{"b":[true],"a":1}')), result("9", "r"), assistant("done")], told) == ""


def test_free_text_is_the_same_in_a_function() -> None:
    assert altered([calling(call("1", "x", kind="custom"))], [[call("1", '{"input":"x"}')]]) == ""


@pytest.mark.parametrize(
    "kept",
    [
        [call("1", '{"a": 2}')],
        [call("1", '{"a": 1}', name="Look")],
        [call("1", '{"a": 1}'), call("2")],
        [],
        [call("1", "a", kind="custom")],
        [ToolCall(id="1", name="look", raw='{"a": 1')],
    ],
)
def test_a_changed_call_is_seen(kept: list[ToolCall]) -> None:
    assert altered([calling(*kept)], [[call("1", '{"a": 1}')]]).startswith("answer 0 has")


@given(st.dictionaries(st.text(), st.integers() | st.text(), max_size=3))
def test_any_arguments_come_back_in_any_print(arguments: dict[str, int | str]) -> None:
    printed = (json.dumps(arguments, indent=2), json.dumps(arguments, ensure_ascii=False))
    assert altered([calling(call("1", printed[0]))], [[call("2", printed[1])]]) == ""
