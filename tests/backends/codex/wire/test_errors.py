"""Faults of Codex: the recorded ones and what else its words mean."""

from __future__ import annotations

from typing import Any

import pytest

from tests.backends.codex.wire.recorded import records
from toolwire.backends.codex.wire.errors import error_of, gone, incomplete_reason, refused, unreached


def told(version: str, case: str) -> dict[str, Any]:
    """The error that ended the recorded turn."""
    ends = [
        record["msg"]["params"]["turn"]
        for record in records(version, case)
        if record["msg"].get("method") == "turn/completed"
    ]
    error: dict[str, Any] = ends[-1]["error"]
    return error


TABLE = [
    # case, version, status, code, is retryable, words that must be there
    ("10_error_500", "0.89.0", 500, "upstream_error", True, "high demand"),
    ("10_error_500", "0.166.0", 500, "upstream_error", True, "high demand"),
    ("11_error_429", "0.89.0", 429, "rate_limited", True, "429 Too Many Requests"),
    ("11_error_429", "0.166.0", 429, "rate_limited", True, "429 Too Many Requests"),
    ("12_error_429_quota", "0.89.0", 429, "rate_limited", True, "429"),
    ("12_error_429_quota", "0.166.0", 429, "insufficient_quota", False, "Quota exceeded"),
    ("13_error_401", "0.89.0", 401, "authentication_failed", False, "401 Unauthorized"),
    ("13_error_401", "0.166.0", 401, "authentication_failed", False, "Incorrect API key provided"),
    ("14_error_400", "0.89.0", 400, "upstream_error", False, "Unsupported parameter"),
    ("14_error_400", "0.166.0", 400, "upstream_error", False, "Unsupported parameter"),
    ("15_stream_cut", "0.89.0", 502, "upstream_cut", True, "stream closed"),
    ("15_stream_cut", "0.166.0", 502, "upstream_cut", True, "stream closed"),
    ("16_response_failed", "0.89.0", 502, "upstream_error", True, "model failed inside stream"),
    ("16_response_failed", "0.166.0", 502, "upstream_error", True, "model failed inside stream"),
    ("17_rate_limit_in_stream", "0.89.0", 429, "rate_limited", True, "try again in 1s"),
    ("17_rate_limit_in_stream", "0.166.0", 429, "rate_limited", True, "try again in 1s"),
    ("18_context_exceeded", "0.89.0", 400, "context_length_exceeded", False, "context window"),
    ("18_context_exceeded", "0.166.0", 400, "context_length_exceeded", False, "context window"),
    ("21_missing_key", "0.89.0", 401, "authentication_failed", False, "Missing environment variable"),
    ("21_missing_key", "0.166.0", 401, "authentication_failed", False, "Missing environment variable"),
]


@pytest.mark.parametrize(("case", "version", "status", "code", "is_retryable", "words"), TABLE)
def test_a_recorded_fault(case: str, version: str, status: int, code: str, is_retryable: bool, words: str) -> None:
    error = error_of(told(version, case))
    assert (error.status, error.code, error.retryable) == (status, code, is_retryable)
    assert words in error.message


def test_the_providers_own_words_are_dug_out_of_a_raw_body() -> None:
    error = error_of(told("0.166.0", "14_error_400"))
    assert error.message == "Unsupported parameter"
    assert error.details["type"] == "invalid_request_error"


def test_a_raw_body_about_the_context_is_known_as_such() -> None:
    body = '{"error":{"message":"too long","code":"context_length_exceeded"}}'
    error = error_of({"message": body, "codexErrorInfo": "other"})
    assert (error.status, error.code) == (400, "context_length_exceeded")


def test_addresses_of_the_owners_are_not_shown_to_clients() -> None:
    error = error_of(told("0.166.0", "13_error_401"))
    assert "url" not in error.message
    assert "127.0.0.1" not in error.message
    assert "codex login" in error.hint
    sending = error_of({"message": "error sending request for url (http://10.0.0.7:8000/v1/responses)"})
    assert sending.message == "error sending request"
    assert "10.0.0.7" not in refused({"message": "no answer for url (http://10.0.0.7/)"}).message


def test_a_provider_that_codex_waits_for_is_not_reached() -> None:
    details = "stream disconnected before completion: error sending request for url (http://10.0.0.7/v1/responses)"
    error = unreached({"message": "Reconnecting... waiting for network", "additionalDetails": details})
    assert error is not None
    assert error.message == "the provider of Codex cannot be reached: error sending request."
    assert (error.status, error.code, error.retryable) == (502, "upstream_unreachable", True)
    assert unreached({"message": "Reconnecting... 1/5", "additionalDetails": details}) is None


@pytest.mark.parametrize("version", ["0.89.0", "0.166.0"])
def test_a_hint_when_to_try_again_is_a_header(version: str) -> None:
    assert error_of(told(version, "17_rate_limit_in_stream")).headers == {"retry-after": "1"}


@pytest.mark.parametrize(("words", "seconds"), [("1.2s", "2"), ("350ms", "1"), ("2m", "120"), ("20 s", "20")])
def test_waits_are_whole_seconds(words: str, seconds: str) -> None:
    error = error_of({"message": f"Please try again in {words}.", "codexErrorInfo": "rateLimitExceeded"})
    assert error.headers == {"retry-after": seconds}


@pytest.mark.parametrize(
    ("info", "message", "status", "code"),
    [
        ("serverOverloaded", "busy", 503, "overloaded"),
        ("unauthorized", "no", 401, "authentication_failed"),
        ("badRequest", "no", 400, "upstream_error"),
        ("modelNotFound", "no", 404, "model_not_found"),
        ("flexUnavailable", "no", 503, "overloaded"),
        ("policyCapacityUnavailable", "no", 503, "overloaded"),
        ("misalignmentPolicyViolation", "no", 400, "refused_by_policy"),
        ("tooManyDenials", "no", 502, "interrupted"),
        ("other", "stream disconnected before completion: error sending request", 502, "upstream_unreachable"),
        ({"responseStreamDisconnected": {"httpStatusCode": None}}, "gone", 502, "upstream_cut"),
        ({"responseStreamConnectionFailed": {"httpStatusCode": 503}}, "gone", 503, "upstream_error"),
        ({"httpConnectionFailed": {"httpStatusCode": 404}}, "no", 404, "not_found"),
        ({"httpConnectionFailed": {"httpStatusCode": 200}}, "no", 502, "upstream_error"),
        ({"somethingNew": {"httpStatusCode": 418}}, "tea", 418, "upstream_error"),
        ("somethingNew", "unexpected status 403 Forbidden: no", 403, "upstream_error"),
        (None, "last status: 429 Too Many Requests", 429, "rate_limited"),
        (None, "", 502, "upstream_error"),
        ("other", "idle timeout waiting for SSE", 502, "upstream_cut"),
    ],
)
def test_words_and_statuses_that_no_recording_has(info: object, message: str, status: int, code: str) -> None:
    error = error_of({"message": message, "codexErrorInfo": info, "additionalDetails": None})
    assert (error.status, error.code) == (status, code)
    assert error.message


def test_only_what_may_pass_is_tried_again() -> None:
    assert not error_of({"message": "x", "codexErrorInfo": {"httpConnectionFailed": {"httpStatusCode": 404}}}).retryable
    assert error_of({"message": "x", "codexErrorInfo": {"httpConnectionFailed": {"httpStatusCode": None}}}).retryable


@pytest.mark.parametrize("value", [None, 7, [], {"a": 1, "b": 2}, {"a": []}, True])
def test_any_shape_is_some_error(value: object) -> None:
    error = error_of({"message": value, "codexErrorInfo": value, "additionalDetails": value})
    assert error.status == 502


def test_long_words_are_bounded() -> None:
    assert len(error_of({"message": "x" * 100_000}).message) <= 4000


def test_an_answer_that_was_only_cut_short_is_no_fault() -> None:
    assert incomplete_reason(told("0.166.0", "19_incomplete")) == "max_output_tokens"
    assert incomplete_reason(told("0.89.0", "19_incomplete")) == ""
    filtered = "stream disconnected before completion: Incomplete response returned, reason: content_filter"
    assert incomplete_reason({"message": filtered}) == "content_filter"


def test_a_refused_request_and_a_program_that_ended_say_so() -> None:
    assert "duplicate dynamic tool" in refused({"code": -32600, "message": "duplicate dynamic tool name: f"}).message
    assert refused({}).status == 502
    assert (gone().code, gone("killed").message) == ("upstream_cut", "Codex ended in the middle of the answer: killed.")
    assert gone().retryable
