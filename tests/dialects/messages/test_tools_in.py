"""Messages: tools in, deferred, loaded, added and removed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.dialects.codec_harness import make_request
from toolwire.dialects.messages.tools_in import tools_in
from toolwire.errors import BadRequest
from toolwire.types import Tool

FETCH = {"name": "WebFetch", "input_schema": {"type": "object"}, "defer_loading": True}
READ = {"name": "Read", "input_schema": {"type": "object"}}


def found(*tools: Any, messages: Any = ()) -> dict[str, Tool]:
    return {tool.name: tool for tool in tools_in({"tools": list(tools), "messages": list(messages)})}


def result(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": list(content)}]}


def test_U5_a_deferred_tool_is_hidden_until_a_reference_loads_it() -> None:
    assert found(READ, FETCH)["WebFetch"].is_deferred
    assert not found(READ, FETCH)["Read"].is_deferred
    loaded = found(READ, FETCH, messages=[result({"type": "tool_reference", "tool_name": "WebFetch"})])
    assert not loaded["WebFetch"].is_deferred
    assert loaded["WebFetch"].source is not None
    assert loaded["WebFetch"].source.value == FETCH


def test_where_the_provider_would_search_all_are_shown() -> None:
    search = {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}
    assert not found(search, FETCH)["WebFetch"].is_deferred


def test_typed_tools_have_a_schema_and_hosted_ones_none() -> None:
    tools = found({"type": "bash_20250124", "name": "bash"}, {"type": "web_search_20250305", "name": "web_search"})
    assert (tools["bash"].kind, tools["web_search"].kind) == ("typed", "hosted")
    assert tools["bash"].schema is not None


def test_H106_a_server_tool_without_a_name_or_schema_is_no_crash() -> None:
    assert found({"type": "code_execution_20260521"})["code_execution_20260521"].kind == "hosted"


def test_tools_are_added_and_removed_in_mid_conversation() -> None:
    def change(kind: str, tool: Any) -> dict[str, Any]:
        return {"role": "system", "content": [{"type": kind, "tool": tool}]}

    new = {"name": "New", "input_schema": {"type": "object"}}
    messages = [
        change("tool_addition", {"type": "tool_reference", "name": "WebFetch"}),
        change("tool_addition", {"type": "tool_definition", "definition": new}),
        change("tool_removal", {"type": "tool_reference", "name": "Read"}),
        change("tool_removal", {"type": "tool_reference", "name": "Nobody"}),
    ]
    tools = found(READ, FETCH, messages=messages)
    assert list(tools) == ["WebFetch", "New"]
    assert not any(tool.is_deferred for tool in tools.values())


def test_a_change_of_tools_says_nothing() -> None:
    change = {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "Read"}}
    request = make_request(
        "messages", messages=[{"role": "user", "content": "hi"}, {"role": "system", "content": [change]}], tools=[READ]
    )
    assert request.messages[1].parts == ()


@pytest.mark.parametrize(
    ("tool", "where"),
    [(5, "tools[0]"), ({"name": "a"}, "tools[0].input_schema"), ({"input_schema": {}}, "tools[0].name")],
)
def test_what_is_wrong_is_named_by_its_place(tool: Any, where: str) -> None:
    with pytest.raises(BadRequest) as caught:
        found(tool)
    assert caught.value.where == where


@pytest.mark.parametrize("messages", [5, [5], [{"content": 5}], [{"content": [5]}], [result(5)]])
def test_hostile_conversations_change_nothing(messages: Any) -> None:
    assert list(tools_in({"tools": [READ], "messages": messages})) == list(found(READ).values())
