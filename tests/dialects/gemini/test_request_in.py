"""Gemini requests in."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from tests.dialects.refused_bodies import NOT_OBJECTS, assert_noted, refusal
from toolwire.dialects.gemini import decode_call, decode_count_request, decode_request
from toolwire.dialects.gemini.request_in import choice_in, schema_of, tools_in
from toolwire.dialects.shared.sealed_reasoning import sealed_out
from toolwire.errors import BadRequest
from toolwire.types import OutputFormat, Reasoning, Request, Sampling, Text, Thinking

HI = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}


def read(config: Any = None, **members: Any) -> Request:
    body = {**HI, **({"generationConfig": config} if config is not None else {}), **members}
    return decode_call(json.dumps(body).encode(), {"x": "y"}, model="gemini-2.5-flash", is_stream=True)


def test_the_path_names_the_model_and_the_bytes_stay_as_they_came() -> None:
    body = json.dumps(HI, indent=1).encode()
    request = decode_call(body, {"a": "b"}, model="m", is_stream=False)
    assert (request.model, request.stream, request.wire, request.origin) == ("m", False, body, "gemini")
    assert (request.source, request.headers) == (HI, {"a": "b"})
    assert request.messages[0].parts == (Text(text="hi"),)


def test_a_body_may_name_them_itself_and_they_do_not_travel_on() -> None:
    request = decode_request(json.dumps({**HI, "model": "models/m", "stream": True}).encode(), {})
    assert (request.model, request.stream) == ("m", True)
    assert json.loads(request.wire) == request.source == HI
    asked = decode_call(json.dumps({**HI, "model": "models/x"}).encode(), {}, model="m", is_stream=False)
    assert (asked.model, json.loads(asked.wire)) == ("m", HI)


def test_instructions_come_first() -> None:
    for key in ("systemInstruction", "system_instruction"):
        request = read(**{key: {"parts": [{"text": "s"}]}})
        assert [(one.role, one.is_head) for one in request.messages] == [("system", True), ("user", False)]


def test_sampling() -> None:
    config = {
        "temperature": 0.10, "topP": 1, "topK": 40, "candidateCount": 2, "stopSequences": ["x"], "seed": 7,
        "presencePenalty": 0.5, "frequency_penalty": -1, "responseLogprobs": True, "logprobs": 3, "maxOutputTokens": 99,
    }  # fmt: skip
    request = read(config)
    assert request.sampling == Sampling(
        temperature=Decimal("0.1"), top_p=1, top_k=40, choices=2, stop=("x",), seed=7,
        presence_penalty=Decimal("0.5"), frequency_penalty=-1, logprobs=True, top_logprobs=3,
    )  # fmt: skip
    assert request.max_tokens == 99


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"includeThoughts": True}, Thinking(summary="auto")),
        ({"include_thoughts": False, "thinkingBudget": 5}, Thinking(mode="on", budget=5, summary="none")),
        ({"thinkingBudget": 0}, Thinking(mode="off")),
        ({"thinkingBudget": -1}, Thinking(mode="adaptive")),
        ({"thinking_budget": 2048}, Thinking(mode="on", budget=2048)),
        ({"thinkingLevel": "HIGH"}, Thinking(effort="high")),
        ({"thinkingLevel": "THINKING_LEVEL_UNSPECIFIED"}, Thinking()),
    ],
)
def test_thinking(config: Any, expected: Thinking) -> None:
    assert read({"thinkingConfig": config}).thinking == expected
    assert read().thinking is None


def test_structured_output() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    assert read({"responseMimeType": "application/json"}).output == OutputFormat(format="json")
    by_schema = OutputFormat(format="schema", name="answer", schema=schema)
    assert read({"responseMimeType": "application/json", "responseJsonSchema": schema}).output == by_schema
    own = {"type": "OBJECT", "properties": {"n": {"type": "INTEGER"}}}
    assert read({"response_mime_type": "application/json", "response_schema": own}).output == by_schema
    assert read({"responseMimeType": "text/plain"}).output == OutputFormat()


def test_unknown_members_ride_along() -> None:
    request = read(
        {"mediaResolution": "LOW"},
        safetySettings=[{"category": "c"}],
        cachedContent="cachedContents/1",
        toolConfig={"retrievalConfig": {"languageCode": "de"}},
        labels={"team": "x"},
    )
    assert request.extra == {
        "gemini": {
            "safetySettings": [{"category": "c"}],
            "cachedContent": "cachedContents/1",
            "generationConfig": {"mediaResolution": "LOW"},
            "toolConfig": {"retrievalConfig": {"languageCode": "de"}},
        }
    }
    assert request.metadata == {"team": "x"}


def test_a_request_with_a_seal_is_encoded_again() -> None:
    seal = sealed_out(Reasoning(text="", redacted="b3BhcXVl", extra={"messages": {}}))
    content = {"role": "model", "parts": [{"text": "", "thought": True, "thoughtSignature": seal}, {"text": "x"}]}
    body = {"contents": [*HI["contents"], content]}
    assert decode_call(json.dumps(body).encode(), {}, model="m", is_stream=False).wire == b""


def test_a_token_count_is_requested_with_contents_alone_or_all() -> None:
    plain = decode_count_request(json.dumps(HI).encode(), {}, model="m")
    assert json.loads(plain.wire) == HI
    inner = {"generateContentRequest": {**HI, "model": "models/alias", "tools": [{"googleSearch": {}}]}}
    assert json.loads(decode_count_request(json.dumps(inner).encode(), {}, model="m").wire) == HI


@pytest.mark.parametrize("body", NOT_OBJECTS)
def test_H153_what_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(BadRequest):
        decode_call(body, {}, model="m", is_stream=False)


@pytest.mark.parametrize(
    ("members", "where"),
    [
        ({"contents": None}, "contents"),
        ({"generationConfig": []}, "generationConfig"),
        ({"generationConfig": {"temperature": "hot"}}, "generationConfig.temperature"),
        ({"generationConfig": {"stopSequences": [1]}}, "generationConfig.stopSequences"),
        ({"generationConfig": {"maxOutputTokens": 0}}, "generationConfig.maxOutputTokens"),
        ({"generationConfig": {"candidateCount": 0}}, "generationConfig.candidateCount"),
        (
            {"generationConfig": {"thinkingConfig": {"thinkingBudget": "x"}}},
            "generationConfig.thinkingConfig.thinkingBudget",
        ),
        ({"generationConfig": {"responseJsonSchema": []}}, "generationConfig.responseJsonSchema"),
        ({"toolConfig": 1}, "toolConfig"),
        ({"tools": "x"}, "tools"),
        ({"contents": []}, "contents"),
    ],
)
def test_mistakes_are_named_by_their_place(members: Any, where: str) -> None:
    error = refusal("gemini", {"model": "m", **HI, **members})
    assert error.where == where


def test_instructions_in_another_form_are_sent_as_text() -> None:
    assert_noted("gemini", {"model": "m", **HI, "systemInstruction": 5}, "systemInstruction")


def test_a_model_and_contents_are_needed() -> None:
    assert refusal("gemini", HI).where == "model"
    assert refusal("gemini", {"model": "m"}).where == "contents"
    with pytest.raises(BadRequest):
        decode_call(json.dumps(HI).encode(), {}, model="", is_stream=False)


def test_H063_a_list_of_no_functions_goes_no_further() -> None:
    empty = read(tools=[{"functionDeclarations": []}])
    assert (empty.tools, json.loads(empty.wire)) == ((), HI)
    mixed = read(tools=[{"function_declarations": []}, {"googleSearch": {}}])
    assert json.loads(mixed.wire)["tools"] == mixed.source["tools"] == [{"googleSearch": {}}]


SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}


def one(declared: Any) -> Any:
    (tool,) = tools_in({"tools": [{"functionDeclarations": [declared]}]})
    return tool


def test_functions_by_json_schema() -> None:
    tool = one({"name": "weather", "description": "d", "parametersJsonSchema": SCHEMA, "behavior": "BLOCKING"})
    assert (tool.name, tool.description, tool.schema, tool.kind) == ("weather", "d", SCHEMA, "function")
    assert tool.extra == {"gemini": {"behavior": "BLOCKING"}}


def test_a_schema_of_the_older_form_is_read_as_json_schema() -> None:
    own = {
        "type": "OBJECT",
        "properties": {
            "property_ordering": {"type": "STRING", "nullable": True, "enum": ["a"]},
            "list": {"type": "ARRAY", "items": {"type": "INTEGER"}, "min_items": "2", "maxItems": 3},
            "any": {"any_of": [{"type": "NUMBER"}, {"type": "BOOLEAN"}], "nullable": True, "example": 1},
        },
        "required": ["list"],
        "propertyOrdering": ["list"],
    }
    assert one({"name": "f", "parameters": own}).schema == {
        "type": "object",
        "properties": {
            "property_ordering": {"type": ["string", "null"], "enum": ["a", None]},
            "list": {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 3},
            "any": {"anyOf": [{"anyOf": [{"type": "number"}, {"type": "boolean"}], "examples": [1]}, {"type": "null"}]},
        },
        "required": ["list"],
    }


def test_an_unreadable_schema_is_refused() -> None:
    deep: Any = {"type": "OBJECT"}
    for _ in range(5000):
        deep = {"type": "ARRAY", "items": deep}
    with pytest.raises(BadRequest, match="nests too deep"):
        schema_of(deep, "x")


def test_without_parameters_a_function_takes_nothing() -> None:
    assert one({"name": "now"}).schema == {"type": "object", "properties": {}}


def test_tools_of_the_provider_and_functions_in_one_entry_and_either_spelling() -> None:
    found = tools_in(
        {"tools": [{"function_declarations": [{"name": "f"}], "google_search": {}}, {"codeExecution": {}}]}
    )
    assert [(tool.name, tool.kind) for tool in found] == [
        ("f", "function"), ("googleSearch", "hosted"), ("codeExecution", "hosted"),
    ]  # fmt: skip
    assert found[1].source is not None
    assert found[1].source.value == {"googleSearch": {}}
    assert tools_in({"tools": {"functionDeclarations": [{"name": "f"}]}})[0].name == "f"
    assert tools_in({}) == ()


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"mode": "AUTO"}, ("auto", (), False)),
        ({}, ("auto", (), False)),
        ({"mode": "none"}, ("none", (), False)),
        ({"mode": "ANY"}, ("required", (), False)),
        ({"mode": "ANY", "allowedFunctionNames": ["f"]}, ("named", ("f",), False)),
        ({"mode": "ANY", "allowed_function_names": ["f", "g"]}, ("allowed", ("f", "g"), True)),
        ({"mode": "VALIDATED"}, ("auto", (), False)),
        ({"mode": "VALIDATED", "allowedFunctionNames": ["f"]}, ("allowed", ("f",), False)),
    ],
)
def test_the_choice_among_them(config: Any, expected: Any) -> None:
    choice = choice_in({"functionCallingConfig": config})
    assert choice is not None
    assert (choice.mode, choice.names, choice.is_required) == expected


def test_no_choice() -> None:
    assert choice_in(None) is None
    assert choice_in({"retrievalConfig": {}}) is None


@pytest.mark.parametrize(
    ("top", "where"),
    [
        ({"tools": 1}, "tools"),
        ({"tools": [1]}, "tools[0]"),
        ({"tools": [{"functionDeclarations": [{}]}]}, "tools[0].functionDeclarations[0].name"),
        ({"tools": [{"functionDeclarations": [{"name": "f", "parameters": []}]}]}, "tools[0].functionDeclarations[0]"),
    ],
)
def test_mistakes_in_tools_are_named_by_their_place(top: Any, where: str) -> None:
    with pytest.raises(BadRequest) as caught:
        tools_in(top)
    assert caught.value.where.startswith(where)


@pytest.mark.parametrize("config", [{"mode": "MAYBE"}, {"mode": "ANY", "allowedFunctionNames": [1]}, {"mode": 1}])
def test_a_choice_that_is_none_is_refused(config: Any) -> None:
    with pytest.raises(BadRequest):
        choice_in({"functionCallingConfig": config})
