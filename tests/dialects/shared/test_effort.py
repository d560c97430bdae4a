"""An effort from a model's name, as if the client had asked for it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from tests.dialects.playing import NAMES, asking
from toolwire.dialects import DIALECTS
from toolwire.dialects.shared.effort import lose_amount, lose_summary, with_effort
from toolwire.types import Loss, Request, Thinking

SAID: dict[str, dict[str, Any]] = {
    "chat": {"reasoning_effort": "high"},
    "messages": {"output_config": {"effort": "high"}},
    "responses": {"reasoning": {"effort": "high"}},
}


@pytest.mark.parametrize("dialect", NAMES)
def test_it_is_as_if_the_client_had_said_it(dialect: str) -> None:
    given = with_effort(asking(dialect), "high")
    said = asking(dialect, **SAID[dialect])
    assert given.thinking == said.thinking == Thinking(effort="high")
    assert given.source == said.source
    assert json.loads(given.wire) == json.loads(said.wire)
    again = DIALECTS[dialect].decode_request(given.wire, {})
    assert again.thinking == given.thinking


@pytest.mark.parametrize(
    ("dialect", "members"),
    [
        ("chat", {"reasoning_effort": "low"}),
        ("chat", {"reasoning_effort": "none"}),
        ("responses", {"reasoning": {"effort": "low", "summary": "auto"}}),
        ("messages", {"output_config": {"effort": "low"}}),
        ("messages", {"thinking": {"type": "enabled", "budget_tokens": 2000}}),
        ("messages", {"thinking": {"type": "disabled"}}),
    ],
)
def test_the_clients_own_word_stands(dialect: str, members: dict[str, Any]) -> None:
    request = asking(dialect, **members)
    assert with_effort(request, "high") is request


def test_what_stands_beside_it_stays() -> None:
    request = with_effort(asking("responses", reasoning={"summary": "auto"}, temperature=0.10), "xhigh")
    assert request.source["reasoning"] == {"summary": "auto", "effort": "xhigh"}
    assert request.thinking == Thinking(effort="xhigh", summary="auto")
    assert with_effort(asking("responses", reasoning=None), "low").source["reasoning"] == {"effort": "low"}
    adaptive = with_effort(asking("messages", thinking={"type": "adaptive"}), "medium")
    assert adaptive.source["thinking"] == {"type": "adaptive"}
    assert adaptive.source["output_config"] == {"effort": "medium"}


def test_messages_has_no_least_effort() -> None:
    assert with_effort(asking("messages"), "minimal").source["output_config"] == {"effort": "low"}
    assert with_effort(asking("chat"), "minimal").source["reasoning_effort"] == "minimal"


def test_without_an_effort_or_a_dialect() -> None:
    request = asking("chat")
    assert with_effort(request, "") is request
    bare = Request(model="m", messages=())
    assert with_effort(bare, "high") == msgspec.structs.replace(bare, thinking=Thinking(effort="high"))


def test_gemini_says_it_by_a_level_and_has_no_highest_but_one() -> None:
    given = with_effort(asking("gemini", generationConfig={"temperature": 1}), "xhigh")
    assert given.thinking == Thinking(effort="xhigh")
    config = {"temperature": 1, "thinkingConfig": {"thinkingLevel": "high"}}
    assert given.source["generationConfig"] == json.loads(given.wire)["generationConfig"] == config
    said = asking("gemini", generationConfig={"thinkingConfig": {"thinkingBudget": 5}})
    assert with_effort(said, "high") is said


@pytest.mark.parametrize(
    ("thinking", "features"),
    [
        (Thinking(budget=5, mode="on"), ["thinking.budget"]),
        (Thinking(mode="off"), ["thinking"]),
        (Thinking(mode="adaptive"), ["thinking"]),
        (Thinking(), []),
        (Thinking(summary="auto"), ["thinking.summary"]),
        (Thinking(summary="none"), []),
    ],
)
def test_what_an_effort_cannot_say_is_lost(thinking: Thinking, features: list[str]) -> None:
    losses: list[Loss] = []
    lose_amount(thinking, losses)
    lose_summary(thinking, losses)
    assert [loss.feature for loss in losses] == features
