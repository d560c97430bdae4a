"""Faults of Cursor: the name decides, then the words, then the code; nothing hostile breaks it, and no secret is said again."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.thorough import examples
from toolwire.backends.cursor.wire import agent
from toolwire.backends.cursor.wire.errors import BY_NAME, KINDS, error_of, error_of_status
from toolwire.errors import UpstreamError
from toolwire.wire.connect import ConnectDecoder, ConnectFault, Detail, end
from toolwire.wire.exact_json import encode

KIND = "aiserver.v1.ErrorDetails"


def fault_in_message(
    code: str, number: int, title: str = "", detail: str = "", is_retryable: bool | None = None
) -> ConnectFault:
    """As a message alone, without the JSON beside it."""
    inside = agent.CustomErrorDetails(title=title, detail=detail, is_retryable=is_retryable)
    value = agent.ErrorDetails(error=number, details=inside).SerializeToString()
    return ConnectFault(code, "Error", (Detail(KIND, value),))


def fault_in_debug(code: str, name: str, title: str = "", detail: str = "", is_retryable: Any = None) -> ConnectFault:
    inside = {"title": title, "detail": detail, "isRetryable": is_retryable}
    return ConnectFault(code, "Error", (Detail(KIND, b"\xff", {"error": name, "details": inside, "isExpected": True}),))


def facts(error: UpstreamError) -> tuple[int, str, bool]:
    return error.status, error.code, error.retryable


TABLE = [
    # code, number of the details, title, status, code, is retryable
    ("unauthenticated", 38, "Unauthorized", 401, "authentication_failed", False),
    ("unauthenticated", 2, "", 401, "authentication_failed", False),
    ("unauthenticated", 12, "", 401, "authentication_failed", False),
    ("resource_exhausted", 42, "", 401, "authentication_failed", False),
    ("resource_exhausted", 28, "Update Required", 426, "client_outdated", False),
    ("resource_exhausted", 28, "", 426, "client_outdated", False),
    ("failed_precondition", 30, "", 426, "client_outdated", False),
    ("resource_exhausted", 50, "Rate limited", 429, "rate_limited", True),
    ("resource_exhausted", 51, "", 429, "rate_limited", True),
    ("resource_exhausted", 7, "", 429, "rate_limited", True),
    ("resource_exhausted", 22, "", 429, "rate_limited", True),
    ("resource_exhausted", 41, "High Load", 429, "rate_limited", True),
    ("resource_exhausted", 63, "", 429, "rate_limited", True),
    ("resource_exhausted", 9, "", 429, "insufficient_quota", False),
    ("resource_exhausted", 10, "", 429, "insufficient_quota", False),
    ("resource_exhausted", 44, "", 429, "insufficient_quota", False),
    ("resource_exhausted", 43, "", 400, "context_length_exceeded", False),
    ("not_found", 5, "AI Model Not Found", 404, "model_not_found", False),
    ("permission_denied", 58, "", 403, "model_blocked", False),
    ("invalid_argument", 60, "", 400, "max_mode_required", False),
    ("permission_denied", 64, "", 403, "unsupported_region", False),
    ("internal", 57, "", 502, "upstream_error", True),
    ("internal", 25, "", 504, "upstream_timeout", True),
    ("canceled", 21, "", 502, "upstream_cut", False),
]


@pytest.mark.parametrize(("code", "number", "title", "status", "expected", "is_retryable"), TABLE)
def test_a_name_decides(code: str, number: int, title: str, status: int, expected: str, is_retryable: bool) -> None:
    name = agent.ErrorDetails_Error.Name(number)
    for fault in (
        fault_in_message(code, number, title, "Some words."),
        fault_in_debug(code, name, title, "Some words."),
    ):
        error = error_of(fault, has_seen_output=False)
        assert facts(error) == (status, expected, is_retryable)
        assert "Some words" in error.message
        assert not error_of(fault, has_seen_output=True).retryable


def test_an_outdated_client_is_never_a_rate_limit() -> None:
    """Whatever name it comes under, or none."""
    for fault in (
        fault_in_message("resource_exhausted", 28, "Update Required", "", is_retryable=True),
        fault_in_debug("resource_exhausted", "ERROR_RATE_LIMITED", "Update Required", "Please update.", True),
        fault_in_debug("resource_exhausted", "ERROR_NEVER_SEEN", "Update Required"),
        ConnectFault("resource_exhausted", "Update Required"),
    ):
        error = error_of(fault, has_seen_output=False)
        assert facts(error) == (426, "client_outdated", False)
        assert "client_version" in error.hint
        assert not error.headers


@pytest.mark.parametrize("message", ["", "Error", "resource_exhausted", " error "])
def test_a_bare_resource_exhausted_is_explained_and_no_quota(message: str) -> None:
    error = error_of(ConnectFault("resource_exhausted", message), has_seen_output=False)
    assert facts(error) == (502, "unexplained_refusal", True)
    assert "not a quota" in error.message
    for cause in ("conversation id", "context", "effort", "call ids"):
        assert cause in error.hint


@pytest.mark.parametrize(
    ("code", "message", "status", "expected", "is_retryable"),
    [
        ("unauthenticated", "no", 401, "authentication_failed", False),
        ("permission_denied", "no", 403, "permission_denied", False),
        ("resource_exhausted", "slow down", 429, "rate_limited", True),
        ("invalid_argument", "Conversation state is required", 400, "upstream_error", False),
        ("failed_precondition", "x", 400, "upstream_error", False),
        ("not_found", "x", 404, "not_found", False),
        ("internal", "x", 502, "upstream_error", True),
        ("unavailable", "x", 503, "overloaded", True),
        ("canceled", "x", 502, "upstream_cut", False),
        ("deadline_exceeded", "x", 504, "upstream_timeout", True),
        ("a_code_of_next_year", "x", 502, "upstream_error", False),
        ("", "", 502, "upstream_error", False),
        ("internal", "Blob not found: 7f", 502, "blob_not_found", True),
        ("internal", "No exec result", 502, "upstream_cut", True),
        ("internal", "the prompt is too long", 400, "context_length_exceeded", False),
        ("invalid_argument", "--system-prompt is not allowed", 400, "upstream_error", False),
        (
            "invalid_argument",
            "Workspace context exclusion is not allowed for this user, team, or selected model",
            400,
            "workspace_exclusion_refused",
            False,
        ),
    ],
)
def test_words_and_codes_where_there_is_no_name(
    code: str, message: str, status: int, expected: str, is_retryable: bool
) -> None:
    assert facts(error_of(ConnectFault(code, message), has_seen_output=False)) == (status, expected, is_retryable)


def test_H157_a_stream_that_broke_off_is_an_error_that_may_be_tried_again_if_nothing_was_seen() -> None:
    (item,) = ConnectDecoder().close()
    assert item.fault is not None
    error = error_of(item.fault, has_seen_output=False)
    assert facts(error) == (502, "upstream_cut", True)
    assert "without its end frame" in error.message
    assert not error_of(item.fault, has_seen_output=True).retryable


def test_the_servers_word_on_trying_again_counts_unless_it_cannot_help() -> None:
    assert not error_of(fault_in_message("resource_exhausted", 50, is_retryable=False), has_seen_output=False).retryable
    assert error_of(fault_in_debug("weird", "ERROR_CUSTOM", is_retryable=True), has_seen_output=False).retryable
    assert not error_of(fault_in_message("unauthenticated", 38, is_retryable=True), has_seen_output=False).retryable
    assert not error_of(fault_in_debug("weird", "ERROR_CUSTOM", is_retryable=True), has_seen_output=True).retryable


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("Please try again in 20 seconds.", "20"),
        ("retry after 1.2s", "2"),
        ("try again in 300ms", "1"),
        ("Try again in 2 minutes", "120"),
        ("resets in 3 hours", "10800"),
        ("resets in 3 months", None),
        ("try again later", None),
    ],
)
def test_a_wait_that_is_reported_is_passed_on(words: str, seconds: str | None) -> None:
    error = error_of(fault_in_message("resource_exhausted", 50, "Limit", words), has_seen_output=False)
    assert error.headers.get("retry-after") == seconds


@pytest.mark.parametrize(
    ("status", "body", "expected_status", "code", "is_retryable"),
    [
        (464, b"", 502, "http2_required", False),
        (415, b"", 502, "upstream_refused", False),
        (401, b"", 401, "authentication_failed", False),
        (403, b'{"error":"invalid"}', 401, "authentication_failed", False),
        (403, b'{"error":{"code":"sign_in_policy_violation"}}', 403, "sign_in_policy_violation", False),
        (404, b"<html>nope", 502, "upstream_refused", False),
        (429, b"", 429, "rate_limited", True),
        (400, b"bad", 400, "upstream_error", False),
        (426, b"", 426, "client_outdated", False),
        (400, b"Update Required", 426, "client_outdated", False),
        (500, b"", 500, "upstream_error", True),
        (502, b"", 502, "upstream_error", True),
        (503, b"", 503, "overloaded", True),
        (504, b"", 504, "upstream_timeout", True),
        (501, b"", 501, "upstream_error", False),
        (302, b"", 502, "upstream_error", False),
        (101, b"\xff" * 99, 502, "upstream_error", False),
    ],
)
def test_a_refusal_before_any_stream(
    status: int, body: bytes, expected_status: int, code: str, is_retryable: bool
) -> None:
    error = error_of_status(status, body)
    assert facts(error) == (expected_status, code, is_retryable)
    assert len(error.sentence()) < 900


def test_a_refusal_with_a_fault_as_its_body_is_read_like_one() -> None:
    row = {"type": KIND, "value": "", "debug": {"error": "ERROR_BAD_MODEL_NAME", "details": {"title": "No such model"}}}
    body = encode({"code": "not_found", "message": "Error", "details": [row]})
    error = error_of_status(404, body)
    assert facts(error) == (404, "model_not_found", False)
    assert "No such model" in error.message


def test_hints_say_what_to_do() -> None:
    assert 'transport = "sse"' in error_of_status(464, b"").hint
    assert "trying again does not help" in error_of_status(403, b"sign_in_policy_violation").hint
    assert "token" in error_of(ConnectFault("unauthenticated"), has_seen_output=False).hint


def test_a_header_has_the_wait_of_a_limit_and_of_nothing_else() -> None:
    assert error_of_status(429, b"", {"retry-after": "30"}).headers == {"retry-after": "30"}
    assert error_of_status(429, b"", {"retry-after": "Wed, 21 Oct"}).headers == {}
    assert error_of_status(401, b"", {"retry-after": "30"}).headers == {}


@pytest.mark.parametrize(
    "secret",
    [
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl",
        "key_0123456789abcdef0123456789abcdef",
        "user_01ABCDEFGHJKLMNP%3A%3AeyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl",
        "Bearer abcdefgh",
    ],
)
def test_a_secret_that_is_said_again_goes_no_further(secret: str) -> None:
    words = f"the token {secret} is not valid"
    for error in (
        error_of(ConnectFault("unauthenticated", words), has_seen_output=False),
        error_of(fault_in_message("unauthenticated", 38, words, words), has_seen_output=False),
        error_of_status(401, words.encode()),
        error_of_status(401, encode({"error": words})),
    ):
        assert secret not in error.sentence()
        assert secret.split(".")[-1] not in error.sentence()
        assert "[secret]" in error.sentence()


def test_words_are_quoted_and_bounded() -> None:
    error = error_of(fault_in_message("internal", 59, "a\nb\x1b[31m", "x" * 100_000), has_seen_output=False)
    assert "\n" not in error.message
    assert "\x1b" not in error.message
    assert len(error.message) < 400
    started = time.process_time()
    error_of(ConnectFault("x" * 10_000_000, "try again in " * 1_000_000), has_seen_output=False)
    assert time.process_time() - started < 0.5


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=8,
)
DEBUG = JSON | st.fixed_dictionaries(
    {"error": JSON, "details": st.fixed_dictionaries({"title": JSON, "detail": JSON, "isRetryable": JSON}) | JSON}
)


@examples(80)
@given(st.text(max_size=20), st.text(max_size=40), st.binary(max_size=40), DEBUG)
def test_hostile_details_never_raise(code: str, message: str, value: bytes, debug: Any) -> None:
    fault = ConnectFault(code, message, (Detail(KIND, value, debug), Detail("x", value)))
    error = error_of(fault, has_seen_output=False)
    assert 400 <= error.status < 600
    assert len(error.sentence()) < 1200


@examples(60)
@given(st.integers(0, 999), st.binary(max_size=60) | JSON.map(encode))
def test_hostile_bodies_never_raise(status: int, body: bytes) -> None:
    assert 400 <= error_of_status(status, body).status < 600


def test_a_fault_is_the_same_after_the_wire() -> None:
    fault = fault_in_message("resource_exhausted", 50, "Limit", "Try again in 5 s")
    (item,) = ConnectDecoder().feed(end(fault))
    assert item.fault == fault
    assert error_of(item.fault, has_seen_output=False).headers == {"retry-after": "5"}


def test_every_name_is_one_of_the_schema() -> None:
    assert set(BY_NAME) <= set(agent.ErrorDetails_Error.keys())


def test_what_is_final_is_not_tried_again() -> None:
    assert not [kind for kind in KINDS.values() if kind.is_final and kind.is_retryable]


def test_what_the_owner_can_mend_comes_with_a_hint() -> None:
    assert not [
        kind for kind in KINDS.values() if kind.status in (401, 404, 426) and kind.code != "not_found" and not kind.hint
    ]
    assert all(400 <= kind.status < 600 and not kind.what.endswith(".") for kind in KINDS.values())


def test_only_limits_are_limits() -> None:
    assert {kind.code for kind in KINDS.values() if kind.status == 429} == {"rate_limited", "insufficient_quota"}
    assert KINDS["outdated"].status != 429
    assert not KINDS["outdated"].is_retryable
