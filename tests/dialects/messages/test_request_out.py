"""Messages requests out: roles that alternate, results first, ids and blocks that the API accepts."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from toolwire.dialects.messages.request_out import encode_request
from toolwire.profiles import ANTHROPIC
from toolwire.types import (
    Loss,
    Media,
    Message,
    Opaque,
    Output,
    Part,
    Reasoning,
    Refusal,
    Request,
    Role,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)

HI = Message(role="user", parts=(Text(text="hi"),))


def said(role: Role, *parts: Part) -> Message:
    return Message(role=role, parts=parts)


def write(*messages: Message, **members: Any) -> tuple[dict[str, Any], list[Loss]]:
    encoded = encode_request(Request(model="m", messages=messages or (HI,), origin="chat", **members), ANTHROPIC)
    return json.loads(encoded.body), list(encoded.losses)


def messages_of(*messages: Message) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = write(*messages)[0]["messages"]
    return found


def test_instructions_at_the_head_become_the_system_member() -> None:
    body, _ = write(said("system", Text(text="a")), HI)
    assert body["system"] == "a"
    body, _ = write(said("system", Text(text="a")), said("developer", Text(text="b"), Text(text=" ")), HI)
    assert [block["text"] for block in body["system"]] == ["a", "b"]
    assert "system" not in write(said("system", Text(text="  ")), HI)[0]


def test_H141_instructions_later_stay_in_their_place_as_a_note() -> None:
    body, losses = write(HI, said("assistant", Text(text="a")), said("developer", Text(text="d")), HI)
    assert [one["role"] for one in body["messages"]] == ["user", "assistant", "user"]
    assert body["messages"][2]["content"][0]["text"] == "<system>\nd\n</system>"
    assert losses[0].feature == "role.system"


def test_H034_H042_calls_stand_last_and_results_first_in_one_message() -> None:
    calls = [ToolCall(id=name, name="f", raw="{}") for name in "ab"]
    results = [said("tool", ToolResult(call_id=name, parts=(Text(text=name),))) for name in "ab"]
    found = messages_of(
        HI, said("assistant", calls[0], Text(text="t"), calls[1]), said("user", Text(text="note")), *results
    )
    assert [block["type"] for block in found[1]["content"]] == ["text", "tool_use", "tool_use"]
    assert [block["type"] for block in found[2]["content"]] == ["tool_result", "tool_result", "text"]
    assert len(found) == 3


@pytest.mark.parametrize("text", ["", "  ", "\n\n"])
def test_H139_H140_empty_texts_are_no_blocks(text: str) -> None:
    found = messages_of(
        HI,
        said("assistant", Text(text=text), ToolCall(id="c", name="f", raw="")),
        said("tool", ToolResult(call_id="c", parts=(Text(text=text),))),
    )
    assert found[1]["content"] == [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]
    assert found[2]["content"] == [{"type": "tool_result", "tool_use_id": "c", "content": []}]


def test_H022_H024_arguments_that_are_no_object_are_kept_in_one_member() -> None:
    parts = [
        ToolCall(id="a", name="f", raw='{"a":'),
        ToolCall(id="b", name="f", raw="[1]"),
        ToolCall(id="c", name="f", raw="free", kind="custom"),
    ]
    body, _ = write(HI, said("assistant", *parts))
    assert [block["input"] for block in body["messages"][1]["content"]] == [
        {"_raw": '{"a":'},
        {"_raw": "[1]"},
        {"input": "free"},
    ]


def test_H095_a_failed_result_says_so() -> None:
    found = messages_of(HI, said("tool", ToolResult(call_id="c", parts=(Text(text="r"),), is_error=True)))
    assert found[0]["content"][0] == {"type": "tool_result", "tool_use_id": "c", "content": "r", "is_error": True}


def test_H076_only_signed_thoughts_go_back() -> None:
    thoughts = [Reasoning(text="a", signature="s"), Reasoning(text="", redacted="r"), Reasoning(text="unsigned")]
    body, losses = write(HI, said("assistant", *thoughts, Refusal(text="no")))
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
    body, losses = write(said("user", *parts))
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


def test_instructions_alone_are_said_by_the_user() -> None:
    body, losses = write(said("system", Text(text="a")), said("developer", Text(text="b")))
    assert body["system"] == "a"
    assert body["messages"] == [{"role": "user", "content": [{"type": "text", "text": "b"}]}]
    assert [loss.feature for loss in losses] == ["role.system"]


def test_an_empty_instruction_leaves_no_note() -> None:
    assert len(messages_of(HI, said("assistant", Text(text="a")), said("developer", Text(text=" ")))) == 2


def test_a_choice_that_is_lost_is_told_once() -> None:
    _, losses = write(tools=(Tool(name="f"),), tool_choice=ToolChoice(mode="hosted"))
    assert [loss.feature for loss in losses] == ["tool_choice"]


def test_many_messages_of_one_role_take_no_more_time_each() -> None:
    begun = time.process_time()
    [message] = messages_of(*[HI] * 20_000)
    assert len(message["content"]) == 20_000
    assert time.process_time() - begun < 5


def test_json_without_a_schema_is_asked_for_by_an_instruction() -> None:
    wanted = Output(format="json")
    body, losses = write(output=wanted)
    assert body["system"] == "Your answer must be one JSON object, and nothing else."
    assert [loss.feature for loss in losses] == ["output.json"]
    body, _ = write(said("system", Text(text="Be terse.")), HI, output=wanted, tools=(Tool(name="f"),))
    assert [block["text"] for block in body["system"]] == [
        "Be terse.",
        "An answer that calls no tool must be one JSON object, and nothing else.",
    ]


def test_a_schema_has_a_member_and_needs_no_instruction() -> None:
    body, losses = write(output=Output(format="schema", schema={"type": "object"}))
    assert body["output_config"] == {"format": {"type": "json_schema", "schema": {"type": "object"}}}
    assert ("system" in body, losses) == (False, [])


def test_H143_four_cache_hints_are_taken_and_the_last_messages_keep_theirs() -> None:
    def hinted(text: str) -> Text:
        return Text(text=text, extra={"messages": {"cache_control": {"type": "ephemeral"}}})

    result = ToolResult(call_id="c", parts=(hinted("r"),))
    body, losses = write(
        said("system", hinted("s")),
        said("user", hinted("one"), hinted("two")),
        said("assistant", ToolCall(id="c", name="f", raw="{}", args={})),
        said("tool", result),
        tools=(Tool(name="f", extra={"messages": {"cache_control": {"type": "ephemeral"}}}),),
    )
    asked, _, answered = body["messages"]
    assert "cache_control" in body["tools"][0]
    assert "cache_control" in body["system"][0]
    assert ["cache_control" in block for block in asked["content"]] == [False, True]
    assert "cache_control" in answered["content"][0]["content"][0]
    assert [loss.feature for loss in losses] == ["part.cache_control"]
