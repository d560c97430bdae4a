"""What stands beside messages and tools: said in this dialect's words, or lost and recorded."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec
import pytest

from toolwire.dialects.messages.request_options import members
from toolwire.profiles import ANTHROPIC
from toolwire.types import (
    Json,
    Loss,
    Message,
    Output,
    Reasoning,
    Request,
    Sampling,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)

HI = Message(role="user", parts=(Text(text="hi"),))
TOOLS = (Tool(name="f"),)


def options(*messages: Message, profile: Any = ANTHROPIC, model: str = "m", **values: Any) -> tuple[Json, list[str]]:
    losses: list[Loss] = []
    body = members(Request(model=model, messages=messages or (HI,), **values), profile, losses)
    return body, [loss.feature for loss in losses]


def test_the_limit_is_always_there() -> None:
    assert options()[0]["max_tokens"] == ANTHROPIC.default_max_tokens
    assert options(max_tokens=5)[0]["max_tokens"] == 5


@pytest.mark.parametrize(
    ("choice", "value"),
    [
        (None, None),
        (ToolChoice(mode="auto"), {"type": "auto"}),
        (ToolChoice(mode="none"), {"type": "none"}),
        (ToolChoice(mode="required"), {"type": "any"}),
        (ToolChoice(mode="named", names=("f",)), {"type": "tool", "name": "f"}),
        (ToolChoice(mode="allowed", names=("f",)), {"type": "auto"}),
        (ToolChoice(mode="hosted"), None),
    ],
)
def test_H087_choices(choice: ToolChoice | None, value: Json) -> None:
    assert options(tool_choice=choice, tools=TOOLS)[0].get("tool_choice") == value


def test_H091_one_call_at_a_time() -> None:
    one = {"type": "auto", "disable_parallel_tool_use": True}
    assert options(tools=TOOLS, parallel_calls=False)[0]["tool_choice"] == one
    assert options(tools=TOOLS, parallel_calls=False, tool_choice=ToolChoice(mode="none"))[0]["tool_choice"] == {
        "type": "none"
    }
    assert "tool_choice" not in options(parallel_calls=False)[0]


def test_sampling_within_what_the_api_allows() -> None:
    sampling = Sampling(temperature=Decimal("1.5"), stop=("x", "\n"), seed=1, choices=2, logprobs=True)
    body, losses = options(sampling=sampling)
    assert (body["temperature"], body["stop_sequences"]) == (1, ["x"])
    assert losses == ["sampling.temperature", "sampling.stop", "sampling.seed", "sampling.n", "sampling.logprobs"]
    newer = msgspec.structs.replace(ANTHROPIC, api_version="2026-10-21")
    body, losses = options(sampling=Sampling(temperature=1), profile=newer)
    assert "temperature" not in body
    assert losses == ["sampling.temperature"]


@pytest.mark.parametrize(
    ("effort", "limit", "budget"),
    [("low", 50_000, 2048), ("high", 50_000, 16384), ("odd", 50_000, 8192), ("high", 4000, 2000), ("high", 5, 1024)],
)
def test_an_effort_becomes_a_budget_below_the_limit(effort: str, limit: int, budget: int) -> None:
    body, _ = options(thinking=Thinking(effort=effort), max_tokens=limit)
    assert body["thinking"] == {"type": "enabled", "budget_tokens": budget}
    assert body["max_tokens"] > budget


def test_thinking_forbids_sampling() -> None:
    body, losses = options(thinking=Thinking(effort="low"), sampling=Sampling(temperature=Decimal("0.5")))
    assert "temperature" not in body
    assert losses == ["sampling.temperature"]


def test_H085_H086_a_forced_call_forbids_thinking() -> None:
    body, losses = options(thinking=Thinking(effort="low"), tools=TOOLS, tool_choice=ToolChoice(mode="required"))
    assert "thinking" not in body
    assert losses == ["thinking"]


@pytest.mark.parametrize(("signature", "thinks"), [(None, False), ("s", True)])
def test_H075_an_open_turn_without_signed_thoughts_forbids_thinking(signature: str | None, thinks: bool) -> None:
    turn = Message(
        role="assistant", parts=(Reasoning(text="", signature=signature), ToolCall(id="c", name="f", raw="{}"))
    )
    result = Message(role="tool", parts=(ToolResult(call_id="c", parts=()),))
    assert ("thinking" in options(HI, turn, result, thinking=Thinking(effort="low"))[0]) is thinks
    assert "thinking" in options(HI, turn, result, HI, thinking=Thinking(effort="low"))[0]


@pytest.mark.parametrize("thinking", [None, Thinking(mode="off", effort="none"), Thinking(effort="none")])
def test_no_thinking(thinking: Thinking | None) -> None:
    assert "thinking" not in options(thinking=thinking)[0]


def test_outputs_and_users() -> None:
    body, losses = options(
        output=Output(format="schema", schema={"type": "object"}, verbosity="low"), user="u" * 300, stream=True
    )
    assert body["output_config"] == {"format": {"type": "json_schema", "schema": {"type": "object"}}}
    assert (len(body["metadata"]["user_id"]), body["stream"]) == (256, True)
    assert losses == ["output.verbosity", "user"]
    assert options(output=Output(format="json"))[1] == ["output.json"]


@pytest.mark.parametrize(
    "model", ["claude-opus-4-7", "claude-fable-5-1", "claude-sonnet-4-6-20260101", "claude-haiku-12"]
)
def test_newer_models_are_told_the_effort_and_think_as_they_see_fit(model: str) -> None:
    choice = ToolChoice(mode="required")
    body, losses = options(model=model, thinking=Thinking(effort="xhigh"), tool_choice=choice, tools=TOOLS)
    assert body["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert body["output_config"] == {"effort": "xhigh"}
    assert losses == []


@pytest.mark.parametrize(
    "model", ["claude-sonnet-4-5-20250929", "claude-opus-4-20250514", "claude-3-7-sonnet-latest", "m"]
)
def test_older_models_and_strangers_get_a_budget(model: str) -> None:
    assert options(model=model, thinking=Thinking(effort="low"))[0]["thinking"]["type"] == "enabled"


def test_the_temperature_goes_before_top_p() -> None:
    body, losses = options(sampling=Sampling(temperature=0, top_p=Decimal("0.95")))
    assert "top_p" not in body
    assert losses == ["sampling.top_p"]
    body, losses = options(sampling=Sampling(temperature=0, top_p=1))
    assert (body["temperature"], "top_p" in body, losses) == (0, False, [])


def test_what_thinking_allows_anyway_is_no_loss() -> None:
    body, losses = options(sampling=Sampling(temperature=1), thinking=Thinking(effort="low"))
    assert "temperature" not in body
    assert losses == []


@pytest.mark.parametrize(
    ("budget", "max_tokens", "sent", "losses"),
    [
        (4321, None, 4321, []),
        (4321, 9000, 4321, []),
        (4321, 5000, 2500, ["thinking.budget"]),
        (100, None, 1024, ["thinking.budget"]),
        (24576, None, 8192, ["thinking.budget"]),
    ],
)
def test_a_budget_of_another_dialect_is_a_budget_here(
    budget: int, max_tokens: int | None, sent: int, losses: list[str]
) -> None:
    body, lost = options(thinking=Thinking(mode="on", budget=budget), max_tokens=max_tokens)
    assert body["thinking"] == {"type": "enabled", "budget_tokens": sent}
    assert body["thinking"]["budget_tokens"] < body["max_tokens"]
    assert lost == losses


@pytest.mark.parametrize(("budget", "effort"), [(100, "low"), (4321, "medium"), (16384, "high"), (99999, "xhigh")])
def test_a_budget_is_an_effort_for_models_that_take_no_budget(budget: int, effort: str) -> None:
    body, losses = options(model="claude-opus-5", thinking=Thinking(mode="on", budget=budget))
    assert (body["thinking"]["type"], body["output_config"]) == ("adaptive", {"effort": effort})
    assert losses == ["thinking.budget"]


def test_thinking_as_the_model_sees_fit() -> None:
    assert options(model="claude-opus-5", thinking=Thinking(mode="adaptive"))[0]["thinking"]["type"] == "adaptive"
    body, losses = options(thinking=Thinking(mode="adaptive"))
    assert (body["thinking"], losses) == ({"type": "enabled", "budget_tokens": 8192}, [])


def test_who_wants_to_see_no_thinking_sees_none() -> None:
    hidden = Thinking(effort="low", summary="none")
    assert options(thinking=hidden)[0]["thinking"]["display"] == "omitted"
    assert options(model="claude-opus-5", thinking=hidden)[0]["thinking"]["display"] == "omitted"


def test_a_summary_of_thinking_that_is_not_asked_for_is_lost() -> None:
    body, losses = options(thinking=Thinking(summary="auto"))
    assert ("thinking" in body, losses) == (False, ["thinking.summary"])
