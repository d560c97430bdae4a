"""Messages requests out: roles that alternate, results first, ids and blocks that the API accepts."""

from __future__ import annotations

import json
import time
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from tests.dialects.codec_harness import message_of
from toolwire.dialects.messages.request_out import encode_request, members, without_thinking
from toolwire.profiles import ANTHROPIC
from toolwire.types import (
    Json,
    Loss,
    Media,
    Message,
    Opaque,
    OutputFormat,
    Part,
    Reasoning,
    Refusal,
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


def write(*messages: Message, **members: Any) -> tuple[dict[str, Any], list[Loss]]:
    encoded = encode_request(Request(model="m", messages=messages or (HI,), origin="chat", **members), ANTHROPIC)
    return json.loads(encoded.body), list(encoded.losses)


def messages_of(*messages: Message) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = write(*messages)[0]["messages"]
    return found


def test_instructions_at_the_head_become_the_system_member() -> None:
    body, _ = write(message_of("system", Text(text="a")), HI)
    assert body["system"] == "a"
    body, _ = write(message_of("system", Text(text="a")), message_of("developer", Text(text="b"), Text(text=" ")), HI)
    assert [block["text"] for block in body["system"]] == ["a", "b"]
    assert "system" not in write(message_of("system", Text(text="  ")), HI)[0]


def test_H141_instructions_later_stay_in_their_place_as_a_note() -> None:
    body, losses = write(HI, message_of("assistant", Text(text="a")), message_of("developer", Text(text="d")), HI)
    assert [one["role"] for one in body["messages"]] == ["user", "assistant", "user"]
    assert body["messages"][2]["content"][0]["text"] == "<system>\nd\n</system>"
    assert losses[0].feature == "role.system"


def test_H034_H042_calls_stand_last_and_results_first_in_one_message() -> None:
    calls = [ToolCall(id=name, name="f", raw="{}") for name in "ab"]
    results = [message_of("tool", ToolResult(call_id=name, parts=(Text(text=name),))) for name in "ab"]
    found = messages_of(
        HI, message_of("assistant", calls[0], Text(text="t"), calls[1]), message_of("user", Text(text="note")), *results
    )
    assert [block["type"] for block in found[1]["content"]] == ["text", "tool_use", "tool_use"]
    assert [block["type"] for block in found[2]["content"]] == ["tool_result", "tool_result", "text"]
    assert len(found) == 3


@pytest.mark.parametrize("text", ["", "  ", "\n\n"])
def test_H139_H140_empty_texts_are_no_blocks(text: str) -> None:
    found = messages_of(
        HI,
        message_of("assistant", Text(text=text), ToolCall(id="c", name="f", raw="")),
        message_of("tool", ToolResult(call_id="c", parts=(Text(text=text),))),
    )
    assert found[1]["content"] == [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]
    assert found[2]["content"] == [{"type": "tool_result", "tool_use_id": "c", "content": []}]


def test_H022_H024_arguments_that_are_no_object_are_kept_in_one_member() -> None:
    parts = [
        ToolCall(id="a", name="f", raw='{"a":'),
        ToolCall(id="b", name="f", raw="[1]"),
        ToolCall(id="c", name="f", raw="free", kind="custom"),
    ]
    body, _ = write(HI, message_of("assistant", *parts))
    assert [block["input"] for block in body["messages"][1]["content"]] == [
        {"_raw": '{"a":'},
        {"_raw": "[1]"},
        {"input": "free"},
    ]


def test_H095_a_failed_result_is_marked() -> None:
    found = messages_of(HI, message_of("tool", ToolResult(call_id="c", parts=(Text(text="r"),), is_error=True)))
    assert found[0]["content"][0] == {"type": "tool_result", "tool_use_id": "c", "content": "r", "is_error": True}


def test_H076_only_signed_thoughts_go_back() -> None:
    thoughts = [Reasoning(text="a", signature="s"), Reasoning(text="", redacted="r"), Reasoning(text="unsigned")]
    body, losses = write(HI, message_of("assistant", *thoughts, Refusal(text="no")))
    assert body["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "a", "signature": "s"},
        {"type": "redacted_thinking", "data": "r"},
        {"type": "text", "text": "no"},
    ]
    assert [loss.feature for loss in losses] == ["reasoning"]


def test_media_in_the_forms_that_messages_has() -> None:
    parts: list[Part] = [
        Media(kind="image", mime="image/png", data="aGk="),
        Media(kind="image", mime="image/tiff", data="aGk="),
        Media(kind="image", url="https://a"),
        Media(kind="file", mime="application/pdf", data="aGk=", name="T"),
        Media(kind="file", mime="text/csv", data="aGk="),
        Media(kind="file", mime="text/csv", data=""),
        Media(kind="file", mime="application/zip", data="/w=="),
        Media(kind="audio", mime="audio/wav", data="aGk="),
        Media(kind="file", file_id="f"),
        Opaque(dialect="chat", value={"type": "video_url"}),
    ]  # fmt: skip
    body, losses = write(message_of("user", *parts))
    kinds = [block["type"] for block in body["messages"][0]["content"]]
    assert kinds == ["image", "text", "image", "document", "document", "text", "text", "text", "text", "text"]
    assert body["messages"][0]["content"][3]["title"] == "T"
    assert body["messages"][0]["content"][4]["source"] == {"type": "text", "media_type": "text/plain", "data": "hi"}
    assert len(losses) == 6


def test_tools_and_the_choice_among_some_of_them() -> None:
    tools = (
        Tool(name="f", description="d", strict=True),
        Tool(name="g", schema={"properties": {}}),
    )
    body, _ = write(tools=tools, tool_choice=ToolChoice(mode="allowed", names=("f",), is_required=True))
    assert body["tools"] == [
        {"name": "f", "description": "d", "input_schema": {"type": "object", "properties": {}}, "strict": True}
    ]
    assert body["tool_choice"] == {"type": "any"}
    body, _ = write(tools=tools)
    assert body["tools"][1]["input_schema"] == {"type": "object", "properties": {}}
    assert "tool_choice" not in write(tools=(), tool_choice=ToolChoice(mode="auto"))[0]


def test_instructions_alone_become_a_user_message() -> None:
    body, losses = write(message_of("system", Text(text="a")), message_of("developer", Text(text="b")))
    assert body["system"] == "a"
    assert body["messages"] == [{"role": "user", "content": [{"type": "text", "text": "b"}]}]
    assert [loss.feature for loss in losses] == ["role.system"]


def test_an_empty_instruction_adds_no_note() -> None:
    assert len(messages_of(HI, message_of("assistant", Text(text="a")), message_of("developer", Text(text=" ")))) == 2


def test_a_choice_that_is_lost_is_reported_once() -> None:
    _, losses = write(tools=(Tool(name="f"),), tool_choice=ToolChoice(mode="hosted"))
    assert [loss.feature for loss in losses] == ["tool_choice"]


def test_many_messages_of_one_role_take_no_more_time_each() -> None:
    begun = time.process_time()
    [message] = messages_of(*[HI] * 20_000)
    assert len(message["content"]) == 20_000
    assert time.process_time() - begun < 5


def test_json_without_a_schema_is_requested_by_an_instruction() -> None:
    wanted = OutputFormat(format="json")
    body, losses = write(output=wanted)
    assert body["system"] == "Your answer must be one JSON object, and nothing else."
    assert [loss.feature for loss in losses] == ["output.json"]
    body, _ = write(message_of("system", Text(text="Be terse.")), HI, output=wanted, tools=(Tool(name="f"),))
    assert [block["text"] for block in body["system"]] == [
        "Be terse.",
        "An answer that calls no tool must be one JSON object, and nothing else.",
    ]


def test_a_schema_has_a_member_and_needs_no_instruction() -> None:
    body, losses = write(output=OutputFormat(format="schema", schema={"type": "object"}))
    assert body["output_config"] == {"format": {"type": "json_schema", "schema": {"type": "object"}}}
    assert ("system" in body, losses) == (False, [])


def test_H143_four_cache_hints_are_taken_and_the_last_messages_keep_theirs() -> None:
    def hinted(text: str) -> Text:
        return Text(text=text, extra={"messages": {"cache_control": {"type": "ephemeral"}}})

    result = ToolResult(call_id="c", parts=(hinted("r"),))
    body, losses = write(
        message_of("system", hinted("s")),
        message_of("user", hinted("one"), hinted("two")),
        message_of("assistant", ToolCall(id="c", name="f", raw="{}", args={})),
        message_of("tool", result),
        tools=(Tool(name="f", extra={"messages": {"cache_control": {"type": "ephemeral"}}}),),
    )
    asked, _, answered = body["messages"]
    assert "cache_control" in body["tools"][0]
    assert "cache_control" in body["system"][0]
    assert ["cache_control" in block for block in asked["content"]] == [False, True]
    assert "cache_control" in answered["content"][0]["content"][0]
    assert [loss.feature for loss in losses] == ["part.cache_control"]


THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "bad"}
REDACTED = {"type": "redacted_thinking", "data": "b3A="}
TEXT = {"type": "text", "text": "a"}
CALL = {"type": "tool_use", "id": "c", "name": "f", "input": {"n": 1}}
RESULT = {"type": "tool_result", "tool_use_id": "c", "content": "r"}
USER = {"role": "user", "content": "hi"}
ENABLED = {"type": "enabled", "budget_tokens": 1024}


def rest_of(*messages: Any, **top: Any) -> Any:
    body = without_thinking(json.dumps({"model": "m", "messages": list(messages), **top}).encode())
    return None if body is None else json.loads(body)


def test_H081_thoughts_of_a_closed_turn_go_and_thinking_stays() -> None:
    message = {"role": "assistant", "content": [THOUGHT, REDACTED, TEXT]}
    rest = rest_of(USER, message, USER, thinking=ENABLED)
    assert rest["messages"] == [USER, {"role": "assistant", "content": [TEXT]}, USER]
    assert rest["thinking"] == ENABLED


def test_H075_H081_thinking_is_off_where_a_turn_waits_for_its_results() -> None:
    edits = [{"type": "clear_thinking_20251015", "keep": "all"}, {"type": "clear_tool_uses_20250919"}]
    turn = ({"role": "assistant", "content": [THOUGHT, CALL]}, {"role": "user", "content": [RESULT]})
    rest = rest_of(USER, *turn, thinking=ENABLED, context_management={"edits": edits})
    assert rest["messages"] == [USER, {"role": "assistant", "content": [CALL]}, turn[1]]
    assert "thinking" not in rest
    assert rest["context_management"] == {"edits": edits[1:]}


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"messages":1}', b'{"messages":[1,{"role":"user","content":"x"}]}'])
def test_where_there_are_none_nothing_can_be_left_out(body: bytes) -> None:
    assert without_thinking(body) is None
    assert rest_of(USER, {"role": "assistant", "content": [TEXT]}) is None


HELLO = Message(role="user", parts=(Text(text="hi"),))
TOOLS = (Tool(name="f"),)


def options(*messages: Message, profile: Any = ANTHROPIC, model: str = "m", **values: Any) -> tuple[Json, list[str]]:
    losses: list[Loss] = []
    body = members(Request(model=model, messages=messages or (HELLO,), **values), profile, losses)
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
    assert ("thinking" in options(HELLO, turn, result, thinking=Thinking(effort="low"))[0]) is thinks
    assert "thinking" in options(HELLO, turn, result, HELLO, thinking=Thinking(effort="low"))[0]


@pytest.mark.parametrize("thinking", [None, Thinking(mode="off", effort="none"), Thinking(effort="none")])
def test_no_thinking(thinking: Thinking | None) -> None:
    assert "thinking" not in options(thinking=thinking)[0]


def test_outputs_and_users() -> None:
    body, losses = options(
        output=OutputFormat(format="schema", schema={"type": "object"}, verbosity="low"), user="u" * 300, stream=True
    )
    assert body["output_config"] == {"format": {"type": "json_schema", "schema": {"type": "object"}}}
    assert (len(body["metadata"]["user_id"]), body["stream"]) == (256, True)
    assert losses == ["output.verbosity", "user"]
    assert options(output=OutputFormat(format="json"))[1] == ["output.json"]


@pytest.mark.parametrize(
    "model", ["claude-opus-4-7", "claude-fable-5-1", "claude-sonnet-4-6-20260101", "claude-haiku-12"]
)
def test_newer_models_get_the_effort_and_think_adaptively(model: str) -> None:
    choice = ToolChoice(mode="required")
    body, losses = options(model=model, thinking=Thinking(effort="xhigh"), tool_choice=choice, tools=TOOLS)
    assert body["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert body["output_config"] == {"effort": "xhigh"}
    assert losses == (["tool_choice"] if model == "claude-fable-5-1" else [])  # it refuses forced calls


@pytest.mark.parametrize(
    "model", ["claude-opus-5-5", "claude-fable-5-1", "claude-mythos-5.2", "anthropic/claude-opus-6"]
)
def test_models_that_refuse_forced_calls_choose_themselves(model: str) -> None:
    forced = ToolChoice(mode="named", names=(TOOLS[0].name,))
    body, losses = options(model=model, tool_choice=forced, tools=TOOLS, parallel_calls=False)
    assert body["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}
    assert losses == ["tool_choice"]


@pytest.mark.parametrize("model", ["claude-opus-5", "claude-opus-5-20260101", "claude-haiku-5-5", "claude-fable-5"])
def test_other_models_are_forced(model: str) -> None:
    body, losses = options(model=model, tool_choice=ToolChoice(mode="required"), tools=TOOLS)
    assert (body["tool_choice"], losses) == ({"type": "any"}, [])


def test_an_allowed_subset_leaves_the_list_of_a_model_with_bound_thinking_alone() -> None:
    some = ToolChoice(mode="allowed", names=("f",))
    for model, offered, losses in (
        ("claude-opus-5", ["f"], []),
        ("claude-haiku-5-5", ["f", "g"], ["tool_choice.allowed"]),
    ):
        request = Request(model=model, messages=(HI,), origin="chat", tools=(*TOOLS, Tool(name="g")), tool_choice=some)
        encoded = encode_request(request, ANTHROPIC)
        assert [tool["name"] for tool in json.loads(encoded.body)["tools"]] == offered
        assert [loss.feature for loss in encoded.losses] == losses


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


def test_a_summary_of_thinking_that_is_not_requested_is_lost() -> None:
    body, losses = options(thinking=Thinking(summary="auto"))
    assert ("thinking" in body, losses) == (False, ["thinking.summary"])
