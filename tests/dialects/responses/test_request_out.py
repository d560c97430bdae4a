"""Responses requests out: items in order, and what this API refuses left out and recorded."""

from __future__ import annotations

import json
import time
from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace

from tests.dialects.codec_harness import message_of
from toolwire.dialects import responses
from toolwire.dialects.responses.request_out import encode_request, without_proof, without_reasoning
from toolwire.profiles import OPENAI_RESPONSES, RESPONSES, Profile
from toolwire.types import (
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


def write(*messages: Message, **members: Any) -> tuple[dict[str, Any], list[str]]:
    encoded = encode_request(Request(model="m", messages=messages or (HI,), origin="messages", **members), RESPONSES)
    losses: tuple[Loss, ...] = encoded.losses
    return json.loads(encoded.body), [loss.feature for loss in losses]


def items_of(*messages: Message) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = write(*messages)[0]["input"]
    return found


def test_a_turn_with_calls_and_results() -> None:
    call = ToolCall(id="c", name="f", raw='{"a": 1}')
    found = items_of(message_of("system", Text(text="s")), HI, message_of("assistant", Text(text="a"), call, Text(text="b")), message_of("user", Text(text="go"), ToolResult(call_id="c", parts=(Text(text="r"),))))  # fmt: skip
    assert found == [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a", "annotations": []}]},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": '{"a": 1}'},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "b", "annotations": []}]},
        {"type": "function_call_output", "call_id": "c", "output": "r"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
    ]


def test_instructions_at_the_head_and_later() -> None:
    body, _ = write(
        message_of("system", Text(text="a")),
        message_of("developer", Text(text="b")),
        HI,
        message_of("developer", Text(text="c")),
    )
    assert body["instructions"] == "a\n\nb"
    assert [item["role"] for item in body["input"]] == ["user", "developer"]


def test_H094_a_failed_result_has_a_status_and_the_line_and_no_error_member() -> None:
    image = Media(kind="image", mime="image/png", data="aGk=")
    plain, shown = items_of(message_of("tool", ToolResult(call_id="c", parts=(Text(text="r"),), is_error=True)), message_of("tool", ToolResult(call_id="d", parts=(image,), is_error=True)))  # fmt: skip
    assert plain == {
        "type": "function_call_output",
        "call_id": "c",
        "output": "Error: the tool call failed.\nr",
        "status": "incomplete",
    }
    assert [part["type"] for part in shown["output"]] == ["input_text", "input_image"]


@pytest.mark.parametrize("kind", ["function", "custom"])
def test_a_call_and_its_result_are_of_one_kind(kind: Any) -> None:
    name = "call_1"
    call, result = items_of(
        message_of("assistant", ToolCall(id=name, name="f", raw="{}", kind=kind)),
        message_of("tool", ToolResult(call_id=name, parts=(), kind=kind)),
    )
    assert call["call_id"] == result["call_id"] == name
    assert call["type"] == ("custom_tool_call" if kind == "custom" else "function_call")
    assert result["type"] == call["type"] + "_output"


def test_H083_own_reasoning_goes_back_whole_and_others_is_a_loss() -> None:
    own = [
        Reasoning(text=text, item_id="rs", is_summary=True, encrypted=secret, extra={"responses": {}})
        for text, secret in (("a", None), ("b", "ZW5j"))
    ]
    body, losses = write(HI, message_of("assistant", *own, Reasoning(text="c", signature="s"), Text(text="t")))
    assert body["input"][1] == {
        "type": "reasoning",
        "id": "rs",
        "summary": [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}],
        "encrypted_content": "ZW5j",
    }
    assert len(body["input"]) == 3
    assert losses == ["reasoning"]


def test_H065_strict_is_always_sent() -> None:
    body, _ = write(tools=(Tool(name="f"), Tool(name="g", strict=True, schema={"type": "object"})))
    assert [tool["strict"] for tool in body["tools"]] == [False, True]
    assert body["tools"][0]["parameters"] == {"type": "object", "properties": {}}


def test_the_members_beside_the_input() -> None:
    body, losses = write(
        tools=(Tool(name="f"),),
        tool_choice=ToolChoice(mode="named", names=("f",)),
        parallel_calls=False,
        max_tokens=5,
        sampling=Sampling(
            temperature=Decimal("0.5"), top_k=4, seed=1, stop=("x",), choices=2, logprobs=True, top_logprobs=3
        ),
        thinking=Thinking(effort="high"),
        output=OutputFormat(format="schema", schema={}, name="n", strict=True, verbosity="low"),
        user="u",
        stream=True,
        extra={"chat": {"logit_bias": {"1": 1}, "store": False}},
    )
    assert body["store"] is False
    assert body["max_output_tokens"] == 16
    assert body["tool_choice"] == {"type": "function", "name": "f"}
    assert body["include"] == ["message.output_text.logprobs", "reasoning.encrypted_content"]
    assert body["text"] == {
        "format": {"type": "json_schema", "name": "n", "schema": {}, "strict": True},
        "verbosity": "low",
    }
    assert (body["reasoning"], body["user"], body["stream"], body["parallel_tool_calls"]) == (
        {"effort": "high"},
        "u",
        True,
        False,
    )
    assert losses == [
        "max_tokens",
        "sampling.top_k",
        "sampling.seed",
        "sampling.stop",
        "sampling.n",
        "request.logit_bias",
    ]


def test_no_tools_no_choice() -> None:
    assert {"tools", "tool_choice"}.isdisjoint(write(tool_choice=ToolChoice(mode="auto"))[0])


def test_media_and_foreign_parts() -> None:
    parts: list[Part] = [
        Media(kind="image", url="https://a", detail="low"),
        Media(kind="image", file_id="f"),
        Media(kind="file", url="https://b"),
        Media(kind="file", mime="application/pdf", data="aGk=", name="a"),
        Media(kind="file", file_id="g"),
        Media(kind="audio", mime="audio/wav", data="aGk="),
        Opaque(dialect="messages", value={"type": "search_result", "title": "T"}),
        Opaque(dialect="responses", value={"type": "input_new"}),
    ]  # fmt: skip
    body, losses = write(message_of("user", *parts), message_of("assistant", parts[0], Refusal(text="no")))
    assert [part["type"] for part in body["input"][0]["content"]] == [
        "input_image",
        "input_text",
        "input_file",
        "input_file",
        "input_text",
        "input_text",
        "input_text",
        "input_new",
    ]
    assert body["input"][0]["content"][3]["filename"] == "a.pdf"
    assert [part["type"] for part in body["input"][1]["content"]] == ["output_text", "refusal"]
    assert losses == ["media.image", "media.file", "media.audio", "part.search_result", "media.image"]


def test_own_instructions_as_items_are_not_sent_twice() -> None:
    body = {
        "model": "m",
        "instructions": [{"role": "developer", "content": "a"}],
        "input": [{"role": "user", "content": "hi"}],
    }
    request = responses.decode_request(json.dumps(body).encode(), {})
    assert json.loads(encode_request(request, RESPONSES).body) == body


def thought(item_id: str, encrypted: str | None = None) -> Reasoning:
    return Reasoning(text="t", item_id=item_id, is_summary=True, encrypted=encrypted, extra={"responses": {}})


def test_rounds_of_the_gateway_follow_an_input_that_is_a_string() -> None:
    request = responses.decode_request(b'{"model": "m", "input": "hi"}', {})
    assert json.loads(encode_request(request, RESPONSES).body)["input"] == "hi"
    call, result = ToolCall(id="c", name="f", raw="{}"), ToolResult(call_id="c", parts=(Text(text="r"),))
    rounds = (*request.messages, message_of("assistant", call), message_of("tool", result))
    sent = json.loads(encode_request(replace(request, messages=rounds), RESPONSES).body)["input"]
    assert [item["type"] for item in sent] == ["message", "function_call", "function_call_output"]


def test_unsigned_reasoning_is_left_out_for_openai() -> None:
    request = Request(
        model="m", messages=(HI, message_of("assistant", thought("rs_1"), thought("rs_2", "E"))), origin="messages"
    )
    encoded = encode_request(request, OPENAI_RESPONSES)
    assert [item.get("id") for item in json.loads(encoded.body)["input"]] == [None, "rs_2"]
    assert [loss.feature for loss in encoded.losses] == ["reasoning"]
    assert [item.get("id") for item in items_of(*request.messages)] == [None, "rs_1", "rs_2"]


def test_many_thoughts_take_no_more_time_each() -> None:
    begun = time.process_time()
    found = items_of(HI, message_of("assistant", *(thought(f"rs_{number // 2}") for number in range(20_000))))
    assert len(found) == 10_001
    assert time.process_time() - begun < 3


def test_a_schema_without_a_type_is_an_object() -> None:
    body, _ = write(tools=(Tool(name="f", schema={"required": ["a"]}),))
    assert body["tools"][0]["parameters"] == {"type": "object", "properties": {}, "required": ["a"]}


def test_what_only_tools_need_goes_with_them() -> None:
    body = {"model": "m", "input": "hi", "tools": [{"type": "web_search"}], "parallel_tool_calls": False}
    request = replace(responses.decode_request(json.dumps(body).encode(), {}), tools=(), has_new_tools=True)
    assert "parallel_tool_calls" not in json.loads(encode_request(request, RESPONSES).body)


@pytest.mark.parametrize(
    ("profile", "model", "effort", "is_asked"),
    [
        (RESPONSES, "m", "high", True),
        (RESPONSES, "m", None, False),
        (RESPONSES, "m", "none", False),
        (OPENAI_RESPONSES, "gpt-5.5", None, True),
        (OPENAI_RESPONSES, "o4-mini", None, True),
        (OPENAI_RESPONSES, "gpt-4.1", None, False),
        (OPENAI_RESPONSES, "gpt-5.5", "none", False),
    ],
)
def test_H083_encrypted_reasoning_is_requested_where_the_model_thinks(
    profile: Profile, model: str, effort: str | None, is_asked: bool
) -> None:
    thinking = None if effort is None else Thinking(effort=effort)
    request = Request(model=model, messages=(HI,), thinking=thinking, origin="chat")
    body = json.loads(encode_request(request, profile).body)
    assert ("reasoning.encrypted_content" in body.get("include", [])) is is_asked


USER = {"role": "user", "content": "Hi"}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
SAID = {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": '{"n": 1}'}
SHELL = {"type": "local_shell_call", "id": "lsh_1", "call_id": "call_2", "action": {"command": ["ls"]}}
RESULT = {"type": "function_call_output", "call_id": "call_1", "output": "r"}


def rest_of(*items: Any, **top: Any) -> Any:
    body = without_reasoning(json.dumps({"model": "m", "input": list(items), **top}).encode())
    return None if body is None else json.loads(body)


def test_H084_reasoning_goes_and_all_else_stays_without_its_ids() -> None:
    rest = rest_of(USER, THOUGHT, SAID, CALL, SHELL, RESULT, store=False)
    assert rest["input"] == [
        USER,
        *({k: v for k, v in one.items() if k != "id"} for one in (SAID, CALL, SHELL)),
        RESULT,
    ]
    assert (rest["model"], rest["store"]) == ("m", False)


def test_H166_a_reference_to_reasoning_is_reasoning_and_others_stay() -> None:
    references = [{"type": "item_reference", "id": "rs_1"}, {"id": "rs_2"}, {"type": "item_reference", "id": "msg_1"}]
    assert rest_of(USER, *references)["input"] == [USER, references[2]]


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"input":"hi"}', b'{"input":[{"type":"message"}]}', b'{"input":[1]}'])
def test_where_there_is_none_nothing_can_be_left_out(body: bytes) -> None:
    assert without_reasoning(body) is None


def test_numbers_keep_their_digits() -> None:
    wire = b'{"input":[{"type":"reasoning"},1],"n":12345678901234567890123,"x":1.10}'
    assert without_reasoning(wire) == b'{"input":[1],"n":12345678901234567890123,"x":1.10}'


def test_H083_signatures_are_not_requested_from_a_model_without_them() -> None:
    wire = b'{"input":"x","include":["a","reasoning.encrypted_content"]}'
    assert without_proof(wire) == b'{"input":"x","include":["a"]}'
    for other in (b'{"input":"x","include":["a"]}', b'{"include":null}', b"[]"):
        assert without_proof(other) is None
