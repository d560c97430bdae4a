"""Gemini requests out: one content for the responses of a turn, names and signatures that the API accepts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from tests.dialects.codec_harness import message_of
from toolwire.dialects import DIALECTS
from toolwire.dialects.gemini import decode_call, encode_request
from toolwire.dialects.gemini.request_out import choice_out, members, without_signatures
from toolwire.profiles import ANTHROPIC, GEMINI, GEMINI_API, GEMINI_SUBSET, RESPONSES, Profile
from toolwire.types import (
    Loss,
    Media,
    Message,
    Opaque,
    OutputFormat,
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
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}


def call(call_id: str, name: str = "f", raw: str = "{}", **members: Any) -> ToolCall:
    return ToolCall(id=call_id, name=name, raw=raw, **members)


def result(call_id: str, *parts: Any, **members: Any) -> ToolResult:
    return ToolResult(call_id=call_id, parts=parts or (Text(text="ok"),), **members)


def write(
    *messages: Message, profile: Profile = GEMINI, model: str = "m", **members: Any
) -> tuple[dict[str, Any], list[Loss]]:
    request = Request(model=model, messages=messages or (HI,), origin="chat", **members)
    encoded = encode_request(request, profile)
    return json.loads(encoded.body), list(encoded.losses)


def contents_of(*messages: Message, **members: Any) -> list[Any]:
    found: list[Any] = write(*messages, **members)[0]["contents"]
    return found


def test_the_path_is_reported_with_the_body() -> None:
    encoded = encode_request(Request(model="m", messages=(HI,), stream=True), GEMINI)
    assert encoded.path == "/v1beta/models/m:streamGenerateContent?alt=sse"
    assert "model" not in json.loads(encoded.body)


def test_instructions_at_the_head_and_later() -> None:
    body, losses = write(
        message_of("system", Text(text="a")),
        message_of("developer", Text(text="b")),
        HI,
        message_of("system", Text(text="c")),
    )
    assert body["systemInstruction"] == {"parts": [{"text": "a"}, {"text": "b"}]}
    assert body["contents"] == [{"role": "user", "parts": [{"text": "hi"}, {"text": "<system>\nc\n</system>"}]}]
    assert [loss.feature for loss in losses] == ["role.system"]


def test_H042_the_responses_of_a_turn_are_one_content_in_order_and_number() -> None:
    contents = contents_of(
        HI,
        message_of("assistant", Text(text="I look."), call("x", "a"), call("y", "b"), call("z", "a")),
        message_of("tool", result("x")),
        message_of("tool", result("y", is_error=True)),
        message_of("user", Text(text="and hurry")),
        message_of("tool", result("z")),
    )
    assert [content["role"] for content in contents] == ["user", "model", "user"]
    assert [part["functionCall"]["name"] for part in contents[1]["parts"][1:]] == ["a", "b", "a"]
    assert contents[2]["parts"] == [
        {"functionResponse": {"name": "a", "response": {"output": "ok"}}},
        {"functionResponse": {"name": "b", "response": {"error": "ok"}}},
        {"functionResponse": {"name": "a", "response": {"output": "ok"}}},
        {"text": "and hurry"},
    ]


def test_ids_travel_only_where_they_are_taken() -> None:
    messages = (HI, message_of("assistant", call("x")), message_of("tool", result("x")))
    plain = contents_of(*messages)
    assert "id" not in plain[1]["parts"][0]["functionCall"]
    known = contents_of(*messages, profile=GEMINI_API)
    assert known[1]["parts"][0]["functionCall"]["id"] == known[2]["parts"][0]["functionResponse"]["id"] == "x"


def test_H054_names_begin_with_a_letter_everywhere() -> None:
    body, _ = write(
        HI,
        message_of("assistant", call("x", "3d")),
        message_of("tool", result("x")),
        tools=(Tool(name="3d", schema=SCHEMA),),
        tool_choice=ToolChoice(mode="named", names=("3d",)),
    )
    assert body["tools"][0]["functionDeclarations"][0]["name"] == "_3d"
    assert body["contents"][1]["parts"][0]["functionCall"]["name"] == "_3d"
    assert body["contents"][2]["parts"][0]["functionResponse"]["name"] == "_3d"
    assert body["toolConfig"]["functionCallingConfig"]["allowedFunctionNames"] == ["_3d"]


def test_H060_H062_any_schema_goes_as_json_schema_where_it_is_taken() -> None:
    schema = {
        "$schema": "x", "type": "object", "additionalProperties": False, "$defs": {"n": {"const": 1}},
        "properties": {"a": {"$ref": "#/$defs/n"}, "m": {"type": "array", "items": {"anyOf": [{"type": "array"}]}}},
    }  # fmt: skip
    tools = (Tool(name="f", description="d", schema=schema),)
    (declared,) = write(tools=tools)[0]["tools"][0]["functionDeclarations"]
    assert declared == {"name": "f", "description": "d", "parametersJsonSchema": schema}
    (older,) = write(tools=tools, profile=GEMINI_SUBSET)[0]["tools"][0]["functionDeclarations"]
    assert "parameters" in older


def test_H063_without_tools_neither_list_nor_choice_is_sent() -> None:
    body, _ = write(tools=(), tool_choice=ToolChoice(mode="auto"))
    assert not {"tools", "toolConfig"} & body.keys()
    only = ToolChoice(mode="allowed", names=("other",))
    assert "tools" not in write(tools=(Tool(name="f"),), tool_choice=only)[0]


@pytest.mark.parametrize("schema", [None, {}, {"type": "object"}, {"type": "object", "properties": {}, "required": []}])
def test_H067_a_function_that_takes_nothing_has_no_schema(schema: Any) -> None:
    for profile in (GEMINI, GEMINI_SUBSET):
        body, _ = write(tools=(Tool(name="now", schema=schema),), profile=profile)
        assert body["tools"] == [{"functionDeclarations": [{"name": "now"}]}]


def test_an_open_object_keeps_its_schema() -> None:
    schema = {"type": "object", "additionalProperties": {"type": "string"}}
    (declared,) = write(tools=(Tool(name="f", schema=schema),))[0]["tools"][0]["functionDeclarations"]
    assert declared["parametersJsonSchema"] == schema


def test_a_choice_among_some_offers_only_those_or_names_them() -> None:
    tools = (Tool(name="a", schema=SCHEMA), Tool(name="b", schema=SCHEMA))
    free = write(tools=tools, tool_choice=ToolChoice(mode="allowed", names=("b",)))[0]
    assert [one["name"] for one in free["tools"][0]["functionDeclarations"]] == ["b"]
    assert free["toolConfig"] == {"functionCallingConfig": {"mode": "AUTO"}}
    forced = write(tools=tools, tool_choice=ToolChoice(mode="allowed", names=("b",), is_required=True))[0]
    assert len(forced["tools"][0]["functionDeclarations"]) == 2
    assert forced["toolConfig"]["functionCallingConfig"] == {"mode": "ANY", "allowedFunctionNames": ["b"]}


def test_H072_numbers_keep_their_digits_and_long_ones_are_reported() -> None:
    raw = '{"n":12345678901234567890123,"f":1.10}'
    request = Request(
        model="m", messages=(HI, message_of("assistant", call("x", raw=raw)), message_of("tool", result("x")))
    )
    encoded = encode_request(request, GEMINI)
    assert b'"args":{"n":12345678901234567890123,"f":1.10}' in encoded.body
    assert [loss.feature for loss in encoded.losses] == ["number"]
    assert write(HI, message_of("assistant", call("x", raw=f'{{"n":{"9" * 5000}}}')))[1]
    assert not write(HI, message_of("assistant", call("x", raw='{"n":9007199254740992,"s":0.12345678901234567}')))[1]


def test_H072_a_result_is_text_and_loses_no_digit() -> None:
    said_so = '{"id":12345678901234567890123}'
    contents = contents_of(HI, message_of("assistant", call("x")), message_of("tool", result("x", Text(text=said_so))))
    assert contents[2]["parts"][0]["functionResponse"]["response"] == {"output": said_so}


def test_H024_broken_arguments_are_kept_in_one_member() -> None:
    contents = contents_of(HI, message_of("assistant", call("x", raw='{"a":')))
    assert contents[1]["parts"][0]["functionCall"]["args"] == {"_raw": '{"a":'}


def test_H074_signatures_go_back_on_their_own_parts() -> None:
    signed = {"gemini": {"thoughtSignature": "Yw=="}}
    contents = contents_of(
        HI,
        message_of(
            "assistant",
            Reasoning(text="hm", encrypted="YQ==", extra={"gemini": {}}),
            Text(text="so", extra={"gemini": {"thoughtSignature": "Yg=="}}),
            Reasoning(text="", encrypted="ZA==", extra={"gemini": {}}),
            call("x", extra=signed),
            call("y"),
        ),
        profile=GEMINI_API,
        model="gemini-3-pro",
    )
    assert contents[1]["parts"] == [
        {"text": "hm", "thought": True, "thoughtSignature": "YQ=="},
        {"text": "so", "thoughtSignature": "Yg=="},
        {"text": "", "thoughtSignature": "ZA=="},
        {"functionCall": {"id": "x", "name": "f", "args": {}}, "thoughtSignature": "Yw=="},
        {"functionCall": {"id": "y", "name": "f", "args": {}}},
    ]


def test_H074_H076_a_call_of_another_model_gets_no_signature_but_the_word_for_none() -> None:
    messages = (
        HI,
        message_of("assistant", call("x"), call("y")),
        message_of("tool", result("x")),
        message_of("tool", result("y")),
    )
    body, losses = write(*messages, profile=GEMINI_API, model="gemini-3-pro")
    signatures = [part.get("thoughtSignature") for part in body["contents"][1]["parts"]]
    assert signatures == ["skip_thought_signature_validator", None]
    assert [loss.feature for loss in losses] == ["signature"]
    for profile, model in ((GEMINI, "gemini-3-pro"), (GEMINI_API, "gemini-2.5-flash")):
        assert "thoughtSignature" not in json.dumps(contents_of(*messages, profile=profile, model=model))


@pytest.mark.parametrize(
    "thought",
    [
        Reasoning(text="t", signature="c2ln"),
        Reasoning(text="t", encrypted="ZW5j", extra={"responses": {}}),
        Reasoning(text="", redacted="x"),
        Reasoning(text="t", extra={"chat": {}}),
    ],
)
def test_H076_thoughts_of_others_stay_out(thought: Reasoning) -> None:
    body, losses = write(HI, message_of("assistant", thought, Text(text="x")))
    assert body["contents"][1]["parts"] == [{"text": "x"}]
    assert [loss.feature for loss in losses] == ["reasoning"]


@pytest.mark.parametrize("client", ["messages", "responses"])
def test_H076_thoughts_of_gemini_stay_out_of_others(client: str) -> None:
    thought = Reasoning(text="hm", encrypted="YQ==", extra={"gemini": {}})
    request = Request(model="m", messages=(HI, message_of("assistant", thought, Text(text="x"))), origin="gemini")
    encoded = DIALECTS[client].encode_request(request, {"messages": ANTHROPIC, "responses": RESPONSES}[client])
    assert b"YQ==" not in encoded.body
    assert [loss.feature for loss in encoded.losses] == ["reasoning"]


def test_media_in_every_form() -> None:
    png, pdf = "iVBORw0KGgo=", "JVBERi0xLjc="
    parts = contents_of(
        message_of(
            "user",
            Media(kind="image", mime="image/png", data=png),
            Media(kind="file", mime="application/pdf", data=pdf, name="a.pdf"),
            Media(kind="image", url="https://a.example/x.png"),
            Media(kind="file", mime="text/markdown", data="IyBI"),
            Media(kind="audio", mime="audio/wav", data="UklGRgAAAABXQVZF"),
        )
    )[0]["parts"]
    assert parts == [
        {"inlineData": {"mimeType": "image/png", "data": png}},
        {"inlineData": {"mimeType": "application/pdf", "data": pdf}},
        {"fileData": {"fileUri": "https://a.example/x.png", "mimeType": "image/png"}},
        {"inlineData": {"mimeType": "text/plain", "data": "IyBI"}},
        {"inlineData": {"mimeType": "audio/wav", "data": "UklGRgAAAABXQVZF"}},
    ]


def test_media_that_it_does_not_take_are_named() -> None:
    body, losses = write(
        message_of("user", Media(kind="image", mime="image/gif", data="R0lGODlh"), Media(kind="file", file_id="file-1"))
    )
    assert all("not shown" in part["text"] for part in body["contents"][0]["parts"])
    assert [loss.feature for loss in losses] == ["media.image", "media.file"]


def test_H101_media_of_results_stand_behind_all_responses() -> None:
    image = Media(kind="image", mime="image/png", data="iVBORw0KGgo=")
    contents = contents_of(
        HI,
        message_of("assistant", call("x"), call("y")),
        message_of("tool", result("x", Text(text="see"), image)),
        message_of("tool", result("y")),
    )
    kinds = [next(iter(part)) for part in contents[2]["parts"]]
    assert kinds == ["functionResponse", "functionResponse", "text", "inlineData"]


def test_foreign_parts_are_text() -> None:
    body, losses = write(message_of("user", Opaque(dialect="messages", value={"type": "x", "text": "words"})))
    assert body["contents"][0]["parts"] == [{"text": "words"}]
    assert losses[0].feature == "part.x"


def test_its_own_requests_keep_every_member() -> None:
    body = {
        "contents": [
            {"role": "user", "parts": [{"text": "hi", "x_new": 1}]},
            {
                "role": "model",
                "parts": [{"function_call": {"name": "f", "args": {"a": 1.0}}, "thought_signature": "YQ=="}],
            },
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"any": [1]}}}]},
        ],
        "tools": [{"functionDeclarations": [{"name": "f"}]}, {"googleSearch": {}}],
        "safetySettings": [],
        "generationConfig": {"unknown": True},
        "systemInstruction": {"parts": [{"text": "s"}]},
    }
    request = decode_call(json.dumps(body).encode(), {}, model="m", is_stream=False)
    encoded = encode_request(request, GEMINI_API)
    assert json.loads(encoded.body) == body
    assert encoded.losses == ()


def test_translated_tools_are_encoded_again_beside_those_of_the_provider() -> None:
    tools = [{"functionDeclarations": [{"name": "a.b.c", "parameters": {"type": "OBJECT"}}]}, {"googleSearch": {}}]
    config = {"retrievalConfig": {}, "functionCallingConfig": {"mode": "ANY"}}
    body = {"contents": [{"parts": [{"text": "x"}]}], "tools": tools, "toolConfig": config}
    request = decode_call(json.dumps(body).encode(), {}, model="m", is_stream=False)
    lowered = (Tool(name="a_b_c", schema=SCHEMA), request.tools[1])
    written = json.loads(encode_request(replace(request, tools=lowered, has_new_tools=True), GEMINI).body)
    assert written["tools"] == [
        {"functionDeclarations": [{"name": "a_b_c", "parametersJsonSchema": SCHEMA}]}, {"googleSearch": {}},
    ]  # fmt: skip
    assert written["toolConfig"] == {"retrievalConfig": {}, "functionCallingConfig": {"mode": "ANY"}}


def test_a_schema_of_the_answer_is_an_instruction_where_it_has_no_member() -> None:
    wanted = OutputFormat(format="schema", schema={"type": "object"})
    instruction = 'Your answer must be JSON, and nothing else, by this schema: {"type":"object"}'
    body, losses = write(profile=GEMINI_SUBSET, output=wanted)
    assert body["systemInstruction"] == {"parts": [{"text": instruction}]}
    assert [loss.feature for loss in losses] == ["output.schema"]
    body, losses = write(output=wanted)
    assert ("systemInstruction" in body, losses) == (False, [])


def write_members(model: str = "gemini-2.5-flash", profile: Profile = GEMINI, **given: Any) -> tuple[Any, list[str]]:
    losses: list[Loss] = []
    body = members(Request(model=model, messages=(), origin="chat", **given), profile, losses)
    return body.get("generationConfig", {}), [loss.feature for loss in losses]


def test_sampling() -> None:
    sampling = Sampling(
        temperature=1, top_p=0, top_k=5, seed=-3, frequency_penalty=1, presence_penalty=2, stop=("a",), choices=3,
        logprobs=True, top_logprobs=50,
    )  # fmt: skip
    config, losses = write_members(sampling=sampling, max_tokens=9)
    assert config == {
        "temperature": 1, "topP": 0, "topK": 5, "frequencyPenalty": 1, "presencePenalty": 2, "seed": -3,
        "stopSequences": ["a"], "candidateCount": 3, "responseLogprobs": True, "logprobs": 20, "maxOutputTokens": 9,
    }  # fmt: skip
    assert losses == []
    assert write_members() == ({}, [])


def test_what_does_not_fit_is_reported() -> None:
    config, losses = write_members(
        sampling=Sampling(seed=1 << 40, stop=tuple("abcdefg")),
        output=OutputFormat(verbosity="low"),
        parallel_calls=False,
        tools=(Tool(name="f"),),
    )
    assert config == {"stopSequences": ["a", "b", "c", "d", "e"]}
    assert losses == ["sampling.seed", "sampling.stop", "output.verbosity", "parallel_calls"]


def test_structured_output() -> None:
    schema = {"type": "object", "additionalProperties": False}
    assert write_members(output=OutputFormat(format="json"))[0] == {"responseMimeType": "application/json"}
    asked = OutputFormat(format="schema", schema=schema)
    assert write_members(output=asked)[0] == {"responseMimeType": "application/json", "responseJsonSchema": schema}
    assert write_members(profile=GEMINI_SUBSET, output=asked) == (
        {"responseMimeType": "application/json"},
        ["output.schema"],
    )


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
    config, losses = write_members(model, thinking=thinking)
    assert config.get("thinkingConfig") == expected
    is_instructed = thinking.budget is None or "thinkingBudget" in (expected or {})
    assert losses == ([] if is_instructed and expected else ["thinking"] if is_instructed else ["thinking.budget"])


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


HELLO = {"role": "user", "parts": [{"text": "hi"}]}


def changed(*contents: Any, **members: Any) -> Any:
    body = without_signatures(json.dumps({"contents": list(contents), **members}).encode())
    return None if body is None else json.loads(body)


def test_H074_H076_the_first_call_is_marked_and_nothing_else_is_signed() -> None:
    parts = [
        {"text": "hm", "thought": True, "thoughtSignature": "QQ=="},
        {"text": "", "thought_signature": "Qg=="},
        {"functionCall": {"name": "f", "args": {"thoughtSignature": "an argument"}}, "thoughtSignature": "Qw=="},
        {"functionCall": {"name": "g"}},
    ]
    found = changed(HELLO, {"role": "model", "parts": parts}, tools=[1])
    assert found == {
        "contents": [
            HELLO,
            {
                "role": "model",
                "parts": [
                    {"text": "hm", "thought": True},
                    {
                        "functionCall": {"name": "f", "args": {"thoughtSignature": "an argument"}},
                        "thoughtSignature": "skip_thought_signature_validator",
                    },
                    {"functionCall": {"name": "g"}},
                ],
            },
        ],
        "tools": [1],
    }
    assert without_signatures(json.dumps(found).encode()) is None


def test_a_call_that_lacks_one_is_marked() -> None:
    found = changed(HELLO, {"role": "model", "parts": [{"functionCall": {"name": "f"}}]})
    assert found["contents"][1]["parts"][0]["thoughtSignature"] == "skip_thought_signature_validator"


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"contents":1}', b'{"contents":[1,{"parts":2},{"parts":[3]}]}'])
def test_what_has_none_stays(body: bytes) -> None:
    assert without_signatures(body) is None
