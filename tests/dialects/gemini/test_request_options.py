"""Gemini: members beside contents and tools, for requests of other dialects."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire.dialects.gemini.request_options import choice_out, members
from toolwire.profiles import GEMINI, GEMINI_SUBSET, Profile
from toolwire.types import Loss, Output, Request, Sampling, Thinking, Tool, ToolChoice


def write(model: str = "gemini-2.5-flash", profile: Profile = GEMINI, **given: Any) -> tuple[Any, list[str]]:
    losses: list[Loss] = []
    body = members(Request(model=model, messages=(), origin="chat", **given), profile, losses)
    return body.get("generationConfig", {}), [loss.feature for loss in losses]


def test_sampling() -> None:
    sampling = Sampling(
        temperature=1, top_p=0, top_k=5, seed=-3, frequency_penalty=1, presence_penalty=2, stop=("a",), choices=3,
        logprobs=True, top_logprobs=50,
    )  # fmt: skip
    config, losses = write(sampling=sampling, max_tokens=9)
    assert config == {
        "temperature": 1, "topP": 0, "topK": 5, "frequencyPenalty": 1, "presencePenalty": 2, "seed": -3,
        "stopSequences": ["a"], "candidateCount": 3, "responseLogprobs": True, "logprobs": 20, "maxOutputTokens": 9,
    }  # fmt: skip
    assert losses == []
    assert write() == ({}, [])


def test_what_does_not_fit_is_told() -> None:
    config, losses = write(
        sampling=Sampling(seed=1 << 40, stop=tuple("abcdefg")),
        output=Output(verbosity="low"),
        parallel_calls=False,
        tools=(Tool(name="f"),),
    )
    assert config == {"stopSequences": ["a", "b", "c", "d", "e"]}
    assert losses == ["sampling.seed", "sampling.stop", "output.verbosity", "parallel_calls"]


def test_structured_output() -> None:
    schema = {"type": "object", "additionalProperties": False}
    assert write(output=Output(format="json"))[0] == {"responseMimeType": "application/json"}
    asked = Output(format="schema", schema=schema)
    assert write(output=asked)[0] == {"responseMimeType": "application/json", "responseJsonSchema": schema}
    assert write(profile=GEMINI_SUBSET, output=asked) == ({"responseMimeType": "application/json"}, ["output.schema"])


@pytest.mark.parametrize(
    ("model", "thinking", "expected"),
    [
        ("gemini-2.5-flash", Thinking(mode="off"), {"thinkingBudget": 0}),
        ("gemini-2.5-flash", Thinking(effort="none"), {"thinkingBudget": 0}),
        ("gemini-2.5-flash", Thinking(effort="low"), {"includeThoughts": True, "thinkingBudget": 1024}),
        ("gemini-2.5-flash", Thinking(effort="xhigh"), {"includeThoughts": True, "thinkingBudget": 24576}),
        ("gemini-2.5-flash", Thinking(mode="on", budget=777), {"includeThoughts": True, "thinkingBudget": 777}),
        ("gemini-2.5-flash", Thinking(mode="adaptive"), {"includeThoughts": True}),
        ("gemini-3-pro-preview", Thinking(effort="medium"), {"includeThoughts": True, "thinkingLevel": "medium"}),
        ("gemini-3.5-flash", Thinking(effort="xhigh"), {"includeThoughts": True, "thinkingLevel": "high"}),
        ("gemini-3-flash", Thinking(mode="off"), {"thinkingLevel": "minimal"}),
        ("gemini-3-flash", Thinking(mode="on", budget=777), {"includeThoughts": True, "thinkingLevel": "low"}),
        ("gemini-3-flash", Thinking(mode="on", budget=30000), {"includeThoughts": True, "thinkingLevel": "high"}),
        ("gemini-3-flash", Thinking(effort="low", summary="none"), {"includeThoughts": False, "thinkingLevel": "low"}),
        ("gemini-12-pro", Thinking(effort="low"), {"includeThoughts": True, "thinkingLevel": "low"}),
        ("gemini-2.0-flash", Thinking(effort="high"), None),
        ("gemma-3-27b", Thinking(effort="high"), None),
    ],
)
def test_thinking_by_level_or_by_budget(model: str, thinking: Thinking, expected: Any) -> None:
    config, losses = write(model, thinking=thinking)
    assert config.get("thinkingConfig") == expected
    is_told = thinking.budget is None or "thinkingBudget" in (expected or {})
    assert losses == ([] if is_told and expected else ["thinking"] if is_told else ["thinking.budget"])


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (None, None),
        (ToolChoice(mode="auto"), {"mode": "AUTO"}),
        (ToolChoice(mode="none"), {"mode": "NONE"}),
        (ToolChoice(mode="required"), {"mode": "ANY"}),
        (ToolChoice(mode="named", names=("3d",)), {"mode": "ANY", "allowedFunctionNames": ["_3d"]}),
        (ToolChoice(mode="allowed", names=("a", "b")), {"mode": "AUTO"}),
        (
            ToolChoice(mode="allowed", names=("a", "b"), is_required=True),
            {"mode": "ANY", "allowedFunctionNames": ["a", "b"]},
        ),
        (ToolChoice(mode="hosted"), None),
    ],
)
def test_the_choice_among_tools(choice: ToolChoice | None, expected: Any) -> None:
    assert choice_out(choice, []) == expected


def test_members_of_its_own_are_put_where_they_belong() -> None:
    extra = {"gemini": {"safetySettings": [1], "generationConfig": {"mediaResolution": "LOW"}}}
    body = members(Request(model="m", messages=(), max_tokens=5, extra=extra), GEMINI, [])
    config = {"mediaResolution": "LOW", "maxOutputTokens": 5}
    assert body == {"contents": [], "safetySettings": [1], "generationConfig": config}
