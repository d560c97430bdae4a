"""Gemini requests in."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from tests.dialects.refusing import NOT_OBJECTS, refusal
from toolwire.dialects.gemini import decode_asked, decode_count_request, decode_request
from toolwire.dialects.gemini.shapes import sealed_out
from toolwire.errors import BadRequest
from toolwire.types import Output, Reasoning, Request, Sampling, Text, Thinking

HI = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}


def read(config: Any = None, **members: Any) -> Request:
    body = {**HI, **({"generationConfig": config} if config is not None else {}), **members}
    return decode_asked(json.dumps(body).encode(), {"x": "y"}, model="gemini-2.5-flash", is_stream=True)


def test_the_path_names_the_model_and_the_bytes_stay_as_they_came() -> None:
    body = json.dumps(HI, indent=1).encode()
    request = decode_asked(body, {"a": "b"}, model="m", is_stream=False)
    assert (request.model, request.stream, request.wire, request.origin) == ("m", False, body, "gemini")
    assert (request.source, request.headers) == (HI, {"a": "b"})
    assert request.messages[0].parts == (Text(text="hi"),)


def test_a_body_may_name_them_itself_and_they_do_not_travel_on() -> None:
    request = decode_request(json.dumps({**HI, "model": "models/m", "stream": True}).encode(), {})
    assert (request.model, request.stream) == ("m", True)
    assert json.loads(request.wire) == request.source == HI
    asked = decode_asked(json.dumps({**HI, "model": "models/x"}).encode(), {}, model="m", is_stream=False)
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
    assert read({"responseMimeType": "application/json"}).output == Output(format="json")
    by_schema = Output(format="schema", name="answer", schema=schema)
    assert read({"responseMimeType": "application/json", "responseJsonSchema": schema}).output == by_schema
    own = {"type": "OBJECT", "properties": {"n": {"type": "INTEGER"}}}
    assert read({"response_mime_type": "application/json", "response_schema": own}).output == by_schema
    assert read({"responseMimeType": "text/plain"}).output == Output()


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


def test_a_request_with_a_seal_is_written_anew() -> None:
    seal = sealed_out(Reasoning(text="", redacted="b3BhcXVl", extra={"messages": {}}))
    content = {"role": "model", "parts": [{"text": "", "thought": True, "thoughtSignature": seal}, {"text": "x"}]}
    body = {"contents": [*HI["contents"], content]}
    assert decode_asked(json.dumps(body).encode(), {}, model="m", is_stream=False).wire == b""


def test_a_count_is_asked_for_with_contents_alone_or_all() -> None:
    plain = decode_count_request(json.dumps(HI).encode(), {}, model="m")
    assert json.loads(plain.wire) == HI
    inner = {"generateContentRequest": {**HI, "model": "models/alias", "tools": [{"googleSearch": {}}]}}
    assert json.loads(decode_count_request(json.dumps(inner).encode(), {}, model="m").wire) == HI


@pytest.mark.parametrize("body", NOT_OBJECTS)
def test_H153_what_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(BadRequest):
        decode_asked(body, {}, model="m", is_stream=False)


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
        ({"systemInstruction": 5}, "systemInstruction.parts"),
    ],
)
def test_mistakes_are_named_by_their_place(members: Any, where: str) -> None:
    error = refusal("gemini", {"model": "m", **HI, **members})
    assert error.where == where


def test_a_model_and_contents_are_needed() -> None:
    assert refusal("gemini", HI).where == "model"
    assert refusal("gemini", {"model": "m"}).where == "contents"
    with pytest.raises(BadRequest):
        decode_asked(json.dumps(HI).encode(), {}, model="", is_stream=False)


def test_H063_a_list_of_no_functions_goes_no_further() -> None:
    empty = read(tools=[{"functionDeclarations": []}])
    assert (empty.tools, json.loads(empty.wire)) == ((), HI)
    mixed = read(tools=[{"function_declarations": []}, {"googleSearch": {}}])
    assert json.loads(mixed.wire)["tools"] == mixed.source["tools"] == [{"googleSearch": {}}]
