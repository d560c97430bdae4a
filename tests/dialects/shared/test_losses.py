"""Losses in the same words everywhere."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire.dialects.shared.losses import foreign_members, is_idle, lose_thinking, shared_members, whole_schema
from toolwire.profiles import ANTHROPIC, OPENAI_RESPONSES, PLAIN_CHAT
from toolwire.types import Loss, Message, Reasoning, Request, Text, Tool, ToolCall, ToolResult


def test_only_members_that_mean_something_are_lost() -> None:
    losses: list[Loss] = []
    members = {"logit_bias": {"1": 1}, "store": False, "modalities": None, "functions": [], "audio": {}, "x" * 99: 1}
    request = Request(model="m", messages=(), extra={"chat": members, "messages": {"container": "own"}})
    foreign_members(request, "messages", losses)
    assert losses == [
        Loss("request.logit_bias", "logit_bias", "messages has no such member"),
        Loss("request." + "x" * 60, "x" * 60, "messages has no such member"),
    ]


def test_H076_thoughts_of_others_are_never_rewritten() -> None:
    losses: list[Loss] = []
    lose_thinking(Reasoning(text="hm"), "messages[3]", losses)
    assert losses == [Loss("reasoning", "messages[3]", "reasoning of another dialect cannot be handed on")]


def test_a_schema_says_that_it_is_an_object() -> None:
    assert whole_schema(None) == whole_schema({}) == {"type": "object", "properties": {}}
    assert whole_schema({"required": ["a"]}) == {"type": "object", "properties": {}, "required": ["a"]}
    kept = {"type": "object"}
    assert whole_schema(kept) is kept


def test_members_of_messages_parts_and_tools_are_lost_by_name_and_once() -> None:
    parts = (Text(text="hi", extra={"messages": {"citations": [1]}}),) * 2
    result = ToolResult(call_id="c", parts=(parts[0],), extra={"messages": {"toolset_name": "t"}})
    messages = (
        Message(role="user", parts=parts, extra={"messages": {"output_config": {"effort": "low"}}}),
        Message(
            role="assistant",
            parts=(ToolCall(id="c", name="f", raw="{}", extra={"messages": {"caller": {"type": "x"}}}),),
        ),
        Message(role="tool", parts=(result,)),
    )
    tools = (Tool(name="f", extra={"messages": {"input_examples": [{}], "allowed_callers": ["direct"]}}),)
    losses: list[Loss] = []
    foreign_members(Request(model="m", messages=messages, tools=tools, origin="messages"), "chat", losses)
    assert [(loss.feature, loss.where) for loss in losses] == [
        ("message.output_config.effort", "messages[0].output_config.effort"),
        ("part.citations", "messages[0].citations"),
        ("call.caller", "messages[1].caller"),
        ("result.toolset_name", "messages[2].toolset_name"),
        ("tool.input_examples", 'tools "f".input_examples'),
    ]


def test_however_many_names_a_client_invents_the_list_of_losses_is_bounded() -> None:
    losses: list[Loss] = []
    members = {f"x_{number}": 1 for number in range(1000)}
    foreign_members(Request(model="m", messages=(), origin="chat", extra={"chat": members}), "messages", losses)
    assert len(losses) == 100


def test_members_that_are_read_in_part_are_lost_one_by_one() -> None:
    losses: list[Loss] = []
    extra = {"responses": {"reasoning": {"context": "all_turns", "mode": None}, "text": {"x": 1}}}
    foreign_members(Request(model="m", messages=(), origin="responses", extra=extra), "chat", losses)
    assert [loss.feature for loss in losses] == ["request.reasoning.context", "request.text.x"]


@pytest.mark.parametrize(
    ("dialect", "name", "value", "expected"),
    [
        ("chat", "store", False, True),
        ("chat", "store", True, False),
        ("chat", "service_tier", "default", True),
        ("chat", "service_tier", "flex", False),
        ("responses", "include", ["reasoning.encrypted_content"], True),
        ("responses", "include", ["file_search_call.results"], False),
        ("responses", "include", [{}], False),
        ("responses", "truncation", "auto", False),
        ("gemini", "safetySettings", [{"category": "x", "threshold": "BLOCK_NONE"}], True),
        ("gemini", "safetySettings", [{"category": "x", "threshold": ["BLOCK_NONE"]}], False),
        ("gemini", "safetySettings", [5], False),
        ("messages", "caller", {"type": "direct"}, True),
    ],
)
def test_a_value_that_asks_for_what_happens_anyway_is_idle(dialect: str, name: str, value: Any, expected: bool) -> None:
    assert is_idle(dialect, name, value) is expected


def test_members_that_two_dialects_share_go_where_the_back_end_takes_them() -> None:
    members = {"prompt_cache_key": "k", "service_tier": "flex", "logit_bias": {"1": 1}, "safety_identifier": None}
    request = Request(model="m", messages=(), origin="chat", extra={"chat": members})
    assert shared_members(request, "responses", OPENAI_RESPONSES) == {"prompt_cache_key": "k", "service_tier": "flex"}
    assert shared_members(request, "messages", ANTHROPIC) == {}
    back = Request(model="m", messages=(), origin="responses", extra={"responses": members})
    assert shared_members(back, "chat", PLAIN_CHAT) == {}
    losses: list[Loss] = []
    foreign_members(request, "responses", losses, shared_members(request, "responses", OPENAI_RESPONSES))
    assert [loss.feature for loss in losses] == ["request.logit_bias"]


def test_metadata_is_lost_by_its_name() -> None:
    losses: list[Loss] = []
    request = Request(model="m", messages=(), origin="responses", metadata={"a": "b"})
    foreign_members(request, "chat", losses)
    foreign_members(request, "chat", losses, {"metadata": {}})
    assert [loss.feature for loss in losses] == ["request.metadata"]
