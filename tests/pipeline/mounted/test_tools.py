"""Calls of mounted tools within one request: whose they are, and how they end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.pipeline.mounted.fakes import FakeTool, call, config, offer_of
from toolwire.calls.schemas import Schemas
from toolwire.calls.validation import ToolOffer
from toolwire.config.values import McpServerConfig
from toolwire.pipeline.gateway_tools import ToolOutcome
from toolwire.pipeline.mounted.offer import CallRate
from toolwire.pipeline.mounted.tools import CallRunner, MountedTools
from toolwire.tools.base import Output
from toolwire.types import JsonObject, Message, Request, Text, Tool, ToolCall, ToolChoice

OWN = Tool(name="weather")
REQUEST = Request(model="m", messages=(Message(role="user", parts=(Text(text="hi"),)),))


def mounted(
    *tools: FakeTool, server: McpServerConfig | None = None, is_returned: bool = False, **choice: Any
) -> MountedTools:
    offer = offer_of(*tools, server=server, is_returned=is_returned)
    chosen = ToolChoice(**choice) if choice else None
    runner = CallRunner(Schemas(), CallRate(lambda: 0.0), "ann")
    return MountedTools(offer, ToolOffer((OWN, *offer.listed)), runner, chosen, None, may_repair=True)


def run(tools: MountedTools, made: ToolCall) -> tuple[str, ToolOutcome]:
    outcome = asyncio.run(tools.start(made, lambda: 0).outcome)
    return "".join(part.text for part in outcome.parts if isinstance(part, Text)), outcome


def test_the_gateway_owns_calls_of_mounted_tools_alone() -> None:
    tools = mounted(FakeTool("box__echo"))
    assert tools.owns(call())
    assert tools.owns(call("functions.box__echo"))
    assert not tools.owns(call("weather"))
    assert not tools.owns(call("nothing"))


@pytest.mark.parametrize("choice", [{"mode": "none"}, {"mode": "allowed", "names": ("weather",)}])
def test_a_choice_of_the_client_applies(choice: dict[str, Any]) -> None:
    assert not mounted(FakeTool("box__echo"), **choice).owns(call())


def test_a_call_that_needs_approval_is_not_run() -> None:
    assert not mounted(FakeTool("box__echo"), is_returned=True).owns(call())


def test_arguments_are_repaired_or_refused() -> None:
    tool = FakeTool("box__echo")
    assert run(mounted(tool), call(raw='{"n": "2"}', args={"n": "2"}))[0] == "got 2"
    text, outcome = run(mounted(tool), call(raw='{"m": 1}', args={"m": 1}))
    assert outcome.is_error
    assert "missing" in text
    assert tool.calls == [{"n": 2}]


def test_a_truncated_call_is_not_completed() -> None:
    tool = FakeTool("box__echo")
    _, outcome = run(mounted(tool), call(raw='{"n": 1', args=None))
    assert outcome.is_error
    assert tool.calls == []


def test_a_failure_is_reported_as_a_loss() -> None:
    async def fail(arguments: JsonObject) -> Output:
        raise ValueError("broken")

    text, outcome = run(mounted(FakeTool("box__echo", fail)), call())
    assert text == "ValueError: broken"
    assert outcome.show is not None
    [event] = outcome.show()
    assert event.note.feature == "mcp.call"  # type: ignore[union-attr]  # a note


def test_the_last_permitted_call_ends_the_offer() -> None:
    tools = mounted(FakeTool("box__echo"), server=config(max_calls=1))
    request = tools.begin(Request(model="m", messages=REQUEST.messages, tools=(OWN, Tool(name="box__echo"))))
    assert run(tools, call())[0] == "got 1"
    assert [tool.name for tool in tools.resume(request).tools] == ["weather"]
    text, outcome = run(tools, call())
    assert outcome.is_refused
    assert "No more than 1 calls" in text


def test_the_only_tools_stay_in_the_list_without_being_callable() -> None:
    tools = mounted(FakeTool("box__echo"), server=config(max_calls=1))
    run(tools, call())
    again = tools.resume(Request(model="m", messages=REQUEST.messages, tools=(Tool(name="box__echo"),)))
    assert [tool.name for tool in again.tools] == ["box__echo"]
    assert again.tool_choice == ToolChoice(mode="none")


def test_calls_per_minute_are_bounded() -> None:
    tools = mounted(FakeTool("box__echo"), server=config(calls_per_minute=1))
    assert run(tools, call())[0] == "got 1"
    assert "in one minute" in run(tools, call())[0]


def test_long_results_are_shortened() -> None:
    async def flood(arguments: JsonObject) -> Output:
        return Output.of_text("x" * 100_000)

    text, _ = run(mounted(FakeTool("box__echo", flood), server=config(max_output=100)), call())
    assert len(text) < 200
    assert "characters left out" in text
