"""Flat names: legal, one for each tool, and the way back from whatever the model makes of them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.calls.tools.names import ToolNames, fit_name, is_legal, without_prefix
from toolwire.types import Tool, ToolCall


def tool(name: str, namespace: str = "") -> Tool:
    return Tool(name=name, namespace=namespace, label=f"{namespace}__{name}" if namespace else name)


@given(st.text(max_size=200))
def test_a_fitted_name_is_legal_and_stays_so(name: str) -> None:
    assert is_legal(fit_name(name))
    assert fit_name(fit_name(name)) == fit_name(name)


@pytest.mark.parametrize(
    ("name", "fitted"),
    [
        ("read_file", "read_file"),
        ("x" * 64, "x" * 64),
        ("files.read/all", "files_read_all"),
        ("mcp__a server__look-up", "mcp__a_server__look-up"),
    ],
)
def test_what_a_name_becomes(name: str, fitted: str) -> None:
    assert fit_name(name) == fitted


def test_the_tools_own_name_outlasts_its_namespace() -> None:
    one, two = (fit_name(f"mcp__{'long_server_name_' * 5}{end}__close_agent") for end in "ab")
    assert one.endswith("__close_agent")
    assert one != two
    assert fit_name("工具") != fit_name("工人")


@given(st.lists(st.tuples(st.sampled_from(["", "a", "a.b", "n" * 70]), st.sampled_from(["t", "t.", "t_", "é", "中"]))))
def test_each_tool_has_a_label_of_its_own_that_leads_back(pairs: list[tuple[str, str]]) -> None:
    names = ToolNames()
    tools = [tool(name, namespace) for namespace, name in dict.fromkeys(pairs)]
    labels = [names.add(one) for one in tools]
    assert len(set(labels)) == len(tools)
    assert all(map(is_legal, labels))
    assert [names.tool(label) for label in labels] == tools
    calls = [ToolCall(id="c", name=one.name, namespace=one.namespace, raw="{}") for one in tools]
    assert [names.label(call) for call in calls] == labels
    assert [names.chosen(one.label, is_typed=False) for one in tools] == labels


def test_a_back_end_of_the_clients_dialect_gets_plain_names_as_they_are() -> None:
    names = ToolNames(0)
    assert names.add(tool("files.read")) == "files.read"
    assert names.add(tool("read", "a.b")) == "a_b__read"
    assert names.label(ToolCall(id="c", name="gone.tool", raw="{}")) == "gone.tool"
    assert ToolNames().label(ToolCall(id="c", name="gone.tool", raw="{}")) == "gone_tool"


def test_a_tool_by_type_and_a_function_of_its_name_are_two() -> None:
    names = ToolNames()
    function, typed = Tool(name="shell"), Tool(name="shell", kind="typed")
    assert [names.add(function), names.add(typed)] == ["shell", "shell_2"]
    assert names.label(ToolCall(id="c", name="shell", raw="{}")) == "shell"
    assert names.label(ToolCall(id="c", name="shell", raw="{}", kind="typed")) == "shell_2"
    assert names.chosen("shell", is_typed=True) == "shell_2"


@pytest.mark.parametrize(
    "spelled", ["Agents__Close", "agents.close ", "close", "functions.agents/close", "AGENTS-CLOSE"]
)
def test_odd_spellings_are_understood(spelled: str) -> None:
    names = ToolNames()
    close = tool("close", "agents")
    names.add(close)
    names.add(tool("open"))
    assert names.tool(spelled) is close


@pytest.mark.parametrize(
    "spelled",
    [
        "getWeather",
        "GetWeather",
        "get_weather<|channel|>commentary",
        "assistant<|channel|>commentary to=functions.get_weather",
        "functions.get_weather:0",
        "get_weather:12",
    ],
)
def test_H116_H119_other_cases_and_remains_of_templates_are_understood(spelled: str) -> None:
    names = ToolNames()
    tool = Tool(name="get_weather", schema={})
    names.add(tool)
    names.add(Tool(name="get_weather_map", schema={}))
    assert names.tool(spelled) is tool
    names.add(Tool(name="getweather", schema={}))
    assert names.tool("getWeather") is not tool


def test_an_ambiguous_choice_matches_nothing() -> None:
    names = ToolNames()
    names.add(tool("close", "agents"))
    names.add(tool("close", "files"))
    assert names.chosen("close", is_typed=False) == "close"


def test_many_tools_of_one_name_take_no_more_time_each() -> None:
    names, begun = ToolNames(), time.process_time()
    assert len({names.add(tool("same")) for _ in range(20_000)}) == 20_000
    assert time.process_time() - begun < 3


@pytest.mark.parametrize(
    ("name", "bare"),
    [("functions.read", "read"), ("tool_read", "read"), ("default_api:read", "read"), ("toolbox", "toolbox")],
)
def test_what_models_put_before_a_name_comes_off(name: str, bare: str) -> None:
    assert without_prefix(name) == bare
