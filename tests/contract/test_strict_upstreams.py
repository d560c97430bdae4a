"""Tests of the strict upstreams: a correct request passes, and each of these faults is rejected."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from tests.contract.strict.proofs import encrypted_of, signature_of
from tests.contract.strict.refusals import Refused, anthropic_body, gemini_body, openai_body
from tests.contract.strict.upstream import CHECKS

SCHEMA = {"type": "object", "properties": {}}
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CHAT: dict[str, Any] = {
    "model": "m",
    "tools": [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}],
    "messages": [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": [CALL, CALL | {"id": "c2"}]},
        {"role": "tool", "tool_call_id": "c1", "content": "1"},
        {"role": "tool", "tool_call_id": "c2", "content": "2"},
    ],
}
MESSAGES: dict[str, Any] = {
    "model": "m",
    "max_tokens": 4096,
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "tools": [{"name": "f", "input_schema": SCHEMA}],
    "messages": [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": signature_of("hm")},
                {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
                {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
                {"type": "tool_use", "id": "a", "name": "f", "input": {}},
                {"type": "tool_use", "id": "b", "name": "f", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "1"},
                {"type": "tool_result", "tool_use_id": "b", "content": []},
            ],
        },
    ],
}
RESPONSES: dict[str, Any] = {
    "model": "m",
    "store": False,
    "tools": [{"type": "function", "name": "f", "parameters": SCHEMA, "strict": False}],
    "input": [
        {"role": "user", "content": "hi"},
        {"type": "reasoning", "id": "rs_r1x", "summary": [], "encrypted_content": encrypted_of("rs_r1x")},
        {"type": "function_call", "id": "fc_r1x2", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": "c2", "name": "g", "input": "x"},
        {"type": "function_call_output", "call_id": "c1", "output": "1"},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": "2"},
    ],
}
GEMINI: dict[str, Any] = {
    "systemInstruction": {"parts": [{"text": "Be brief."}]},
    "tools": [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": SCHEMA}]}],
    "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}},
    "contents": [
        {"role": "user", "parts": [{"text": "hi"}]},
        {
            "role": "model",
            "parts": [
                {"text": "hm", "thought": True, "thoughtSignature": "c2ln"},
                {"functionCall": {"id": "c1", "name": "f", "args": {}}},
                {"functionCall": {"id": "c2", "name": "g", "args": {}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"id": "c1", "name": "f", "response": {"output": "1"}}},
                {"functionResponse": {"id": "c2", "name": "g", "response": {"output": "2"}}},
            ],
        },
    ],
}
RIGHT = {"chat": CHAT, "messages": MESSAGES, "responses": RESPONSES, "gemini": GEMINI}

GONE = object()
# Dialect, the path of what is changed, what it becomes, and words of the refusal.
FAULTS: list[tuple[str, list[Any], Any, str]] = [
    ("chat", ["messages", 3], GONE, "did not have response messages: c2"),
    ("chat", ["messages", 1], GONE, "must be a response to a preceeding message"),
    ("chat", ["messages", 3, "tool_call_id"], "c1", "must be a response to a preceeding message"),
    ("chat", ["messages", 0], GONE, "No user query found"),
    ("chat", ["messages", 0, "content"], " ", "must not be empty"),
    ("chat", ["messages", 0, "role"], "latest", "unknown variant `latest`"),
    ("chat", ["messages", 0, "extra"], 1, "Additional properties"),
    ("chat", ["messages", 1, "tool_calls"], [], "empty array"),
    ("chat", ["messages", 1, "tool_calls", 1, "id"], "c1", "Duplicate value for 'tool_call_id'"),
    ("chat", ["messages", 1, "tool_calls", 1, "id"], "c" * 41, "maximum length 40"),
    ("chat", ["messages", 1, "tool_calls", 1, "id"], "", "empty string"),
    ("chat", ["messages", 1, "tool_calls", 0, "function", "arguments"], "{", "must be valid JSON"),
    ("chat", ["messages", 1, "tool_calls", 0, "function", "arguments"], "[]", "must be a JSON object"),
    ("chat", ["messages", 1, "tool_calls", 0, "function", "name"], "a b", "does not match pattern"),
    ("chat", ["messages", 2, "content"], [{"type": "image_url"}], "Supported values are"),
    ("chat", ["messages", 2, "content"], [], "empty array"),
    ("chat", ["messages", 2, "content"], None, "got null"),
    ("chat", ["tools"], [], "empty array"),
    ("chat", ["tools"], CHAT["tools"] * 2, "unique"),
    ("chat", ["tools"], CHAT["tools"] * 129, "maximum length 128"),
    ("chat", ["tools", 0, "function", "parameters"], {"type": "object"}, "missing properties"),
    ("chat", ["tools", 0, "function", "parameters"], {}, "got 'type: null'"),
    ("chat", ["tools", 0, "function", "strict"], True, "'additionalProperties' is required"),
    ("chat", ["tool_choice"], {"type": "function", "function": {"name": "g"}}, "not found in 'tools'"),
    ("chat", ["temperature"], 3, "decimal above maximum"),
    ("chat", ["max_output"], 3, "Unrecognized request argument"),
    ("messages", ["max_tokens"], GONE, "Field required"),
    ("messages", ["temperature"], 1.5, "range: 0..1"),
    ("messages", ["messages", 0], GONE, 'first message must use the "user" role'),
    ("messages", ["messages", 0, "content"], "", "user messages must have non-empty content"),
    ("messages", ["messages", 0, "content"], " ", "non-whitespace"),
    ("messages", ["messages", 0, "content"], [{"type": "text", "text": ""}], "must be non-empty"),
    ("messages", ["messages", 0, "role"], "system", 'Unexpected role "system"'),
    ("messages", ["messages", 0, "name"], "x", "Extra inputs"),
    ("messages", ["messages", 1, "content", 0], GONE, "Expected `thinking` or `redacted_thinking`"),
    ("messages", ["messages", 1, "content", 0, "signature"], "", "Field required"),
    ("messages", ["messages", 1, "content", 0, "thinking"], "other", "Invalid `signature`"),
    ("messages", ["messages", 1, "content", 1], GONE, "unexpected `tool_use_id` found in `web_search_tool_result`"),
    ("messages", ["messages", 1, "content", 4], GONE, "unexpected `tool_use_id` found in `tool_result`"),
    ("messages", ["messages", 1, "content", 4, "id"], "a", "`tool_use` ids must be unique"),
    ("messages", ["messages", 1, "content", 4, "id"], "x:1", "should match pattern"),
    ("messages", ["messages", 1, "content", 4, "input"], "x", "valid dictionary"),
    ("messages", ["messages", 1, "content", 2], {"type": "text", "text": ""}, "must be non-empty"),
    ("messages", ["messages", 1, "content", 4], {"type": "text", "text": "x"}, "cannot be followed by `text`"),
    ("messages", ["messages", 2], GONE, "without `tool_result` blocks immediately after: a, b"),
    ("messages", ["messages", 2, "content", 1], GONE, "immediately after: b"),
    ("messages", ["messages", 2, "content", 1, "tool_use_id"], "a", "each tool_use must have a single result"),
    ("messages", ["messages", 2, "content", 0], {"type": "text", "text": "x"}, "immediately after: a, b"),
    ("messages", ["messages", 2, "role"], "assistant", "can only be in `user` messages"),
    ("messages", ["tool_choice"], {"type": "any"}, "Thinking may not be enabled"),
    ("messages", ["tool_choice"], {"type": "tool", "name": "g"}, "Thinking may not be enabled"),
    ("messages", ["tools"], [], "must define tools"),
    ("messages", ["tools", 0, "input_schema"], {"type": "object", "anyOf": []}, "oneOf, allOf, or anyOf"),
    ("messages", ["tools", 0, "input_schema"], {}, "Field required"),
    ("messages", ["tools", 0, "name"], "a.b", "should match pattern"),
    ("messages", ["system"], " ", "non-whitespace"),
    ("responses", ["input", 2], GONE, "No tool call found for function call output with call_id c1"),
    ("responses", ["input", 4], GONE, "outputs must be in the order"),
    ("responses", ["input", 5], GONE, "No tool output found for custom tool call c2"),
    ("responses", ["input", 5, "type"], "function_call_output", "No tool call found for function call output"),
    ("responses", ["input", 1], GONE, "without its required 'reasoning' item"),
    ("responses", ["input", 1, "encrypted_content"], None, "not persisted"),
    ("responses", ["input", 1, "encrypted_content"], "x", "could not be verified"),
    ("responses", ["input", 2, "id"], "call_1", "begins with 'fc'"),
    ("responses", ["input", 2, "id"], "fc:1", "letters, numbers"),
    ("responses", ["input", 3, "call_id"], "c1", "Duplicate call_id"),
    ("responses", ["input", 3, "call_id"], "c" * 65, "maximum length 64"),
    ("responses", ["input", 3, "status_"], "x", "Unknown parameter"),
    ("responses", ["input", 3, "id"], "rs_r1x", "begins with 'ctc'"),
    ("responses", ["input", 2, "arguments"], "null", "must be a JSON object"),
    ("responses", ["input", 0, "content"], [], "must not be empty"),
    ("responses", ["input", 0, "content"], [{"type": "output_text", "text": "x"}], "Supported values"),
    ("responses", ["input"], [], "Missing required parameter: 'input'"),
    ("responses", ["max_output_tokens"], 5, "integer below minimum"),
    ("responses", ["tools", 0, "strict"], GONE, "'additionalProperties' is required"),
    ("gemini", ["contents"], [], "contents is not specified"),
    ("gemini", ["contents", 0], GONE, "comes immediately after a user turn"),
    ("gemini", ["contents", 0, "role"], "system", "use a valid role"),
    ("gemini", ["contents", 0, "parts"], [], "parts must not be empty"),
    ("gemini", ["contents", 0, "parts", 0], {"text": "a", "inlineData": {}}, "required oneof field 'data'"),
    ("gemini", ["contents", 0, "parts", 0], {"type": "text", "text": "a"}, 'Unknown name "type"'),
    ("gemini", ["contents", 1, "parts", 1, "functionCall", "args"], [1], "google.protobuf.Struct"),
    ("gemini", ["contents", 1, "parts", 1, "functionCall", "name"], "1f", "Must start with a letter"),
    ("gemini", ["contents", 1, "parts", 2], GONE, "the number of function response parts is equal"),
    ("gemini", ["contents", 1], GONE, "comes immediately after a function call turn"),
    ("gemini", ["contents", 1, "role"], "user", "only in a turn with role model"),
    ("gemini", ["contents", 2], GONE, "the number of function response parts is equal"),
    ("gemini", ["contents", 2, "role"], "model", "only in a turn with role user"),
    ("gemini", ["contents", 2, "parts", 0], {"text": "a"}, "the number of function response parts is equal"),
    ("gemini", ["contents", 2, "parts", 0, "functionResponse", "id"], "c2", "does not match the function call"),
    ("gemini", ["contents", 2, "parts", 0, "functionResponse", "name"], "g", "does not match the function call"),
    ("gemini", ["contents", 2, "parts", 0, "functionResponse", "name"], "", "Name cannot be empty"),
    ("gemini", ["contents", 2, "parts", 0, "functionResponse", "response"], "1", "google.protobuf.Struct"),
    ("gemini", ["generationConfig"], {"max_output": 1}, 'Unknown name "max_output"'),
    ("gemini", ["generationConfig"], {"temperature": 3}, "range [0.0, 2.0]"),
    (
        "gemini",
        ["toolConfig", "functionCallingConfig", "mode"],
        "AUTO",
        "only be set when function calling mode is ANY",
    ),
    ("gemini", ["toolConfig", "functionCallingConfig", "mode"], "any", "Invalid value"),
    ("gemini", ["toolConfig", "functionCallingConfig", "allowedFunctionNames"], ["x"], "not declared"),
    ("gemini", ["tools"], GONE, "without function_declarations"),
    ("gemini", ["tools"], GEMINI["tools"] * 2, "Duplicate function declaration"),
    ("gemini", ["tools", 0, "functionDeclarations", 0, "parameters"], SCHEMA, "mutually exclusive"),
    ("gemini", ["user"], "x", 'Unknown name "user"'),
]


def changed(body: dict[str, Any], path: list[Any], value: Any) -> dict[str, Any]:
    copy = deepcopy(body)
    place: Any = copy
    for step in path[:-1]:
        place = place[step]
    if value is GONE:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return copy


@pytest.mark.parametrize("dialect", RIGHT)
def test_a_right_request_passes(dialect: str) -> None:
    CHECKS[dialect](RIGHT[dialect])


@pytest.mark.parametrize(("dialect", "path", "value", "words"), FAULTS)
def test_a_fault_is_rejected_with_the_providers_message(dialect: str, path: list[Any], value: Any, words: str) -> None:
    with pytest.raises(Refused) as refusal:
        CHECKS[dialect](changed(RIGHT[dialect], path, value))
    assert words in refusal.value.words


@pytest.mark.parametrize(
    ("dialect", "more", "words"),
    [
        ("messages", [{"role": "assistant", "content": "Sure "}], "trailing whitespace"),
        ("messages", [{"role": "assistant", "content": []}, {"role": "user", "content": "x"}], "non-empty content"),
        ("messages", [{"role": "user", "content": "x"}, {"role": "assistant", "content": "a"}], "Expected `thinking`"),
        ("chat", [{"role": "assistant", "content": ""}], "must not be empty"),
        (
            "responses",
            [RESPONSES["input"][1] | {"id": "rs_1", "encrypted_content": encrypted_of("rs_1")}],
            "following item",
        ),
        ("responses", [{"type": "mcp_approval_response", "approval_request_id": "m", "approve": True}], "No approval"),
        ("responses", [{"role": "assistant", "id": "msg_1", "content": "a"}] * 2, "Duplicate item found with id msg_1"),
        ("responses", [{"type": "shell_call", "call_id": "s", "action": {}}], "No tool output found for shell call s"),
    ],
)
def test_an_invalid_end_is_rejected(dialect: str, more: list[Any], words: str) -> None:
    key = "input" if dialect == "responses" else "messages"
    with pytest.raises(Refused) as refusal:
        CHECKS[dialect]({**RIGHT[dialect], key: [*RIGHT[dialect][key], *more]})
    assert words in refusal.value.words


def test_more_than_four_cache_markers_are_rejected() -> None:
    marked = [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}] * 5
    with pytest.raises(Refused, match="A maximum of 4 blocks"):
        CHECKS["messages"]({**MESSAGES, "system": marked})


def test_ids_of_mistral_are_nine_letters_and_digits() -> None:
    with pytest.raises(Refused, match="must be a-z, A-Z, 0-9, with a length of 9"):
        CHECKS["chat"](CHAT, ids="mistral")


def test_a_refusal_has_the_providers_form() -> None:
    assert openai_body(Refused("No.", "messages", "bad")) == (
        b'{"error": {"message": "No.", "type": "invalid_request_error", "param": "messages", "code": "bad"}}'
    )
    assert b'"message": "messages.0: No."' in anthropic_body(Refused("No.", "messages.0"))
    assert b'"status": "INVALID_ARGUMENT"' in gemini_body(Refused("No."))
