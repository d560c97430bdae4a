"""Gemini: errors and model lists."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolwire.dialects import DIALECTS
from toolwire.dialects.base import ModelLine
from toolwire.dialects.gemini.errors import (
    decode_error,
    decode_models,
    encode_error,
    encode_model,
    encode_models,
    stream_error,
)
from toolwire.errors import BadRequest, GatewayError, UpstreamError


def wire(code: int, status: str, message: str = "no", **more: Any) -> bytes:
    return json.dumps({"error": {"code": code, "message": message, "status": status, **more}}).encode()


def shown(error: GatewayError, dialect: str = "gemini") -> Any:
    return json.loads(DIALECTS[dialect].encode_error(error, "req_1"))["error"]


@pytest.mark.parametrize(
    ("status", "word"),
    [
        (400, "INVALID_ARGUMENT"), (401, "UNAUTHENTICATED"), (403, "PERMISSION_DENIED"), (404, "NOT_FOUND"),
        (429, "RESOURCE_EXHAUSTED"), (500, "INTERNAL"), (502, "UNAVAILABLE"), (503, "UNAVAILABLE"),
        (504, "DEADLINE_EXCEEDED"), (529, "UNAVAILABLE"), (422, "INVALID_ARGUMENT"), (599, "INTERNAL"),
    ],
)  # fmt: skip
def test_a_status_has_its_word(status: int, word: str) -> None:
    value = shown(GatewayError("it broke.", status=status))
    assert value == {"code": status, "message": "it broke.", "status": word}


def test_the_output_of_the_back_end_comes_back_unchanged() -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.QuotaFailure"}]
    error = decode_error(400, wire(400, "FAILED_PRECONDITION", "User location", details=details), {})
    assert shown(error) == {
        "code": 400,
        "message": "User location",
        "status": "FAILED_PRECONDITION",
        "details": details,
    }
    listed = decode_error(429, b"[" + wire(429, "RESOURCE_EXHAUSTED", "quota") + b"]", {})
    assert (listed.message, listed.code) == ("quota", "rate_limited")


@pytest.mark.parametrize("dialect", ["chat", "responses", "messages", "gemini"])
def test_an_error_is_encoded_and_decoded_in_every_dialect(dialect: str) -> None:
    error = decode_error(429, wire(429, "RESOURCE_EXHAUSTED", "Quota exceeded"), {})
    assert shown(error, dialect)["message"] == "Quota exceeded"
    body = DIALECTS[dialect].encode_error(BadRequest("wrong.", status=404), "r")
    back = DIALECTS[dialect].decode_error(404, body, {})
    assert shown(back) == {"code": 404, "message": "wrong.", "status": "NOT_FOUND"}


def test_a_key_that_is_wrong_is_no_fault_of_the_form() -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}, 5]
    error = decode_error(400, wire(400, "INVALID_ARGUMENT", "API key not valid.", details=details), {})
    assert (error.status, error.code) == (401, "authentication_failed")
    assert shown(error)["status"] == "UNAUTHENTICATED"
    assert shown(error, "messages")["type"] == "authentication_error"


def test_the_retry_delay_is_sent_where_clients_read_it() -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.07s"}]
    error = decode_error(429, wire(429, "RESOURCE_EXHAUSTED", details=details), {})
    assert error.headers["retry-after"] == "35"
    kept = decode_error(429, wire(429, "RESOURCE_EXHAUSTED", details=details), {"retry-after": "3"})
    assert kept.headers["retry-after"] == "3"


def test_H146_a_prompt_that_is_too_long_is_recognized_by_each_error_message() -> None:
    message = "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."
    error = decode_error(400, wire(400, "INVALID_ARGUMENT", message), {})
    assert error.code == "context_length_exceeded"
    assert "prompt is too long" in shown(error, "messages")["message"]
    other = UpstreamError("too much.", status=400, code="context_length_exceeded")
    assert "exceeds the maximum number of tokens" in shown(other)["message"]
    assert shown(error)["message"] == message


def test_an_error_in_a_stream_has_its_status() -> None:
    assert stream_error({"error": {"code": 503, "message": "later"}}, b"").status == 503
    assert stream_error({"error": {"message": "later", "status": "RESOURCE_EXHAUSTED"}}, b"").status == 429
    assert stream_error({"error": {"message": "later"}}, b"").status == 502


def test_model_lists_both_ways() -> None:
    lines = [ModelLine(id="gemini/gemini-3-pro", title="Gemini 3 Pro"), ModelLine(id="chat/gpt-5")]
    body = encode_models(lines)
    first = json.loads(body)["models"][0]
    assert (first["name"], first["displayName"]) == ("models/gemini/gemini-3-pro", "Gemini 3 Pro")
    assert json.loads(encode_model(lines[0])) == first
    assert [line.id for line in decode_models(body)] == ["gemini/gemini-3-pro", "chat/gpt-5"]
    listed = {
        "models": [
            {"name": "models/embedding-001", "supportedGenerationMethods": ["embedContent"]},
            {"name": "models/g", "displayName": "G", "supportedGenerationMethods": ["generateContent"]},
            {"displayName": "nameless"},
            7,
        ]
    }
    assert decode_models(json.dumps(listed).encode()) == [ModelLine(id="g", owner="google", title="G")]
    for odd in (b"", b"[]", b'{"models":{}}', b"<html>"):
        assert decode_models(odd) == []


def test_no_request_id_is_needed() -> None:
    assert json.loads(encode_error(BadRequest("x."), ""))["error"]["code"] == 400


def test_a_known_context_window_is_listed() -> None:
    body = encode_models([ModelLine(id="a", context=1048576), ModelLine(id="b")])
    assert [line.context for line in decode_models(body)] == [1048576, 0]
    assert "inputTokenLimit" not in json.loads(body)["models"][1]
