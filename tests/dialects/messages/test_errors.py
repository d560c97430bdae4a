"""Errors and model lists of the messages dialect."""

from __future__ import annotations

import json

import pytest

from toolwire.dialects.base import ModelLine
from toolwire.dialects.messages import errors as faults
from toolwire.errors import BadRequest, GatewayError, UpstreamError


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (BadRequest("x"), "invalid_request_error"),
        (UpstreamError("x", status=401), "authentication_error"),
        (UpstreamError("x", status=404), "not_found_error"),
        (UpstreamError("x", status=413), "request_too_large"),
        (UpstreamError("x", status=422), "invalid_request_error"),
        (UpstreamError("x", status=429), "rate_limit_error"),
        (UpstreamError("x", status=529), "overloaded_error"),
        (UpstreamError("x"), "api_error"),
        (UpstreamError("x", status=503, details={"type": "overloaded_error"}), "overloaded_error"),
        (UpstreamError("x", status=503, details={"type": "server_error"}), "api_error"),
        (UpstreamError("x", status=429, details={"type": ["odd"]}), "rate_limit_error"),
    ],
)
def test_types_of_errors(error: GatewayError, kind: str) -> None:
    value = json.loads(faults.encode_error(error, "req_1"))
    assert value == {"type": "error", "error": {"type": kind, "message": "x"}, "request_id": "req_1"}


def test_H146_an_overflow_has_the_message_that_clients_recognize() -> None:
    error = UpstreamError("maximum context length is 8", status=400, code="context_length_exceeded")
    assert faults.error_object(error)["message"].startswith("prompt is too long: ")
    own = UpstreamError("prompt is too long: 9 > 8", status=400, code="context_length_exceeded")
    assert faults.error_object(own)["message"] == "prompt is too long: 9 > 8"


def test_details_for_clients_that_read_them() -> None:
    error = BadRequest("x", details={"details": {"error_code": "y"}})
    assert faults.error_object(error)["details"] == {"error_code": "y"}


def test_the_status_of_an_error_in_a_stream_follows_from_its_type() -> None:
    value = {"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}}
    error = faults.stream_error(value, b"")
    assert (error.status, error.code, error.message) == (429, "rate_limited", "slow")


def test_errors_that_are_no_json() -> None:
    error = faults.decode_error(503, b"<html>busy</html>", {"retry-after": "5"})
    assert "<html>" in error.message
    assert error.headers == {"retry-after": "5"}


@pytest.mark.parametrize("created", [0, 1700000000, -5, 10**20, 253402300799, 253402300800])
def test_any_creation_time_of_a_model_can_be_encoded(created: int) -> None:
    value = json.loads(faults.encode_model(ModelLine(id="a", created=created)))
    assert value["created_at"].endswith("Z")
    assert value["display_name"] == "a"


def test_lists_of_models_both_ways() -> None:
    lines = [ModelLine(id="a", title="A"), ModelLine(id="b")]
    value = json.loads(faults.encode_models(lines))
    assert (value["first_id"], value["last_id"], value["has_more"]) == ("a", "b", False)
    assert [line.title for line in faults.decode_models(faults.encode_models(lines))] == ["A", "b"]
    assert json.loads(faults.encode_models([]))["first_id"] is None


def test_a_known_context_window_is_listed() -> None:
    body = faults.encode_models([ModelLine(id="a", context=200000), ModelLine(id="b")])
    assert [line.context for line in faults.decode_models(body)] == [200000, 0]
    assert "max_input_tokens" not in json.loads(body)["data"][1]
