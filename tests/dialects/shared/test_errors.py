"""Errors in any wrapping, and model lists in any shape."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.dialects.codec_harness import NAMES
from toolwire.dialects import DIALECTS
from toolwire.dialects.base import ModelLine
from toolwire.dialects.shared.errors import decode_error, decode_models, encode_error, encode_model, encode_models
from toolwire.errors import BadRequest, GatewayError, UpstreamError


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": {"message": "no", "code": "x"}}, "no"),
        ({"error": "no"}, "no"),
        ({"message": "no"}, "no"),
        ({"detail": "no"}, "no"),
        ({"detail": [{"msg": "no"}]}, '[{"msg":"no"}]'),
        ([{"error": {"message": "no"}}], "no"),
        ({"error": {"code": 5}}, 'the back end answered 418 with "{"error": {"code": 5}}".'),
        ({}, 'the back end answered 418 with "{}".'),
        (
            {"error": {"message": {"odd": 1}}},
            'the back end answered 418 with "{"error": {"message": {"odd": 1}}}".',
        ),
    ],
)
def test_the_message_of_the_back_end_whatever_wraps_it(body: Any, message: str) -> None:
    error = decode_error(418, json.dumps(body).encode(), {})
    assert (error.status, error.message) == (418, message)


def test_no_text_at_all() -> None:
    assert decode_error(502, b"", {}).message == "the back end answered 502."
    html = decode_error(502, b"<html>" + b"x" * 9999, {}).message
    assert len(html) < 300


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (401, {"error": {"message": "x"}}, "authentication_failed"),
        (404, {"error": {"message": "x"}}, "not_found"),
        (429, {"error": {"message": "x"}}, "rate_limited"),
        (529, {"error": {"message": "x"}}, "overloaded"),
        (500, {"error": {"message": "x"}}, "upstream_error"),
        (400, {"error": {"message": "x", "code": "context_length_exceeded"}}, "context_length_exceeded"),
        (400, {"error": {"message": "This model's maximum context length is 8"}}, "context_length_exceeded"),
        (400, {"error": {"message": "prompt is too long: 9 tokens > 8 maximum"}}, "context_length_exceeded"),
        (400, {"error": {"message": "x", "code": ["odd"]}}, "upstream_error"),
    ],
)
def test_H146_codes(status: int, body: Any, code: str) -> None:
    assert decode_error(status, json.dumps(body).encode(), {}).code == code


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (BadRequest("no.", where="model", hint="Try m."), {"message": "model: no. Try m.", "type": "invalid_request_error", "param": "model", "code": "invalid_request"}),
        (UpstreamError("x", status=429), {"message": "x", "type": "rate_limit_error", "param": None, "code": "upstream_error"}),
        (UpstreamError("x", details={"code": "c", "type": "t", "param": "p"}), {"message": "x", "type": "t", "param": "p", "code": "c"}),
        (UpstreamError("x", details={"code": 5, "type": 5, "param": 5}), {"message": "x", "type": "server_error", "param": None, "code": "upstream_error"}),
    ],
)  # fmt: skip
def test_the_error_object(error: GatewayError, expected: dict[str, Any]) -> None:
    assert json.loads(encode_error(error, "req_1")) == {"error": expected}


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ({"object": "list", "data": [{"id": "a", "created": 5, "owned_by": "o"}]}, ["a"]),
        ({"models": [{"name": "b"}]}, ["b"]),
        ([{"id": "c"}, 5, {"id": 5}, {}], ["c"]),
        ({"data": None}, []),
        ({"data": "x"}, []),
        ("x", []),
        (5, []),
    ],
)
def test_lists_of_models_in_any_shape(body: Any, names: list[str]) -> None:
    assert [line.id for line in decode_models(json.dumps(body).encode())] == names


def test_lists_of_models_both_ways() -> None:
    assert decode_models(b"<html>") == []
    lines = [ModelLine(id="a", owner="o", created=5)]
    assert decode_models(encode_models(lines)) == lines
    assert json.loads(encode_model(lines[0])) == {"id": "a", "object": "model", "created": 5, "owned_by": "o"}


POLICY = (
    "This credential is only authorized for use with Claude Code and cannot be used for other API requests.",
    "Third-party apps now draw from your extra usage, not your plan limits.",
)


@pytest.mark.parametrize("words", POLICY)
@pytest.mark.parametrize("dialect", NAMES)
def test_H169_a_subscription_reserved_for_the_providers_programs_is_a_403_with_advice(dialect: str, words: str) -> None:
    body = json.dumps({"type": "error", "error": {"type": "invalid_request_error", "message": words}}).encode()
    error = DIALECTS[dialect].decode_error(400, body, {"request-id": "r"})
    assert (error.status, error.code, error.message) == (403, "credential_refused", words)
    assert error.headers == {"request-id": "r"}
    for asker in NAMES:
        told = json.loads(DIALECTS[asker].encode_error(error, "req_1"))["error"]
        assert told["type"] == "permission_error"
        assert told["message"].startswith(words)
        assert "API key" in told["message"]


def test_H169_other_refusals_keep_their_status() -> None:
    body = json.dumps({"error": {"message": "Your third-party apps list is empty."}}).encode()
    assert decode_error(400, body, {}).status == 400


@pytest.mark.parametrize(
    ("row", "context"),
    [
        ({"context_length": 131072}, 131072),
        ({"max_model_len": 32768}, 32768),
        ({"context_window": 8192}, 8192),
        ({"meta": {"n_ctx": 4096, "n_ctx_train": 131072}}, 4096),
        ({"meta": {"n_ctx_train": 131072}}, 131072),
        ({"meta": 5, "context_length": None, "max_input_tokens": 200000}, 200000),
        ({"context_length": "131072"}, 0),
        ({"context_length": True}, 0),
        ({"context_length": -1}, 0),
        ({"context_length": 10**12}, 0),
        ({}, 0),
    ],
)
def test_a_context_window_under_the_names_of_servers(row: dict[str, Any], context: int) -> None:
    lines = decode_models(json.dumps({"data": [{"id": "a", **row}]}).encode())
    assert [line.context for line in lines] == [context]


def test_a_known_context_window_is_listed() -> None:
    lines = [ModelLine(id="a", owner="o", context=32768)]
    assert decode_models(encode_models(lines)) == lines
    assert json.loads(encode_model(lines[0]))["context_length"] == 32768
