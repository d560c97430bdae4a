"""What went wrong in a window: the status says who must act, and the words what to click."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.backends.vscode.wire.agreed import from_gateway
from toolwire.backends.vscode.wire.errors import (
    cancelled,
    error_of,
    is_cancelled,
    is_too_long,
    needs_consent,
    no_model,
    no_window,
    refusal_in,
    refused,
    window_lost,
)
from toolwire.errors import BadRequest, GatewayError, UpstreamError

# code, name, message of the window -> status, code, a word of the hint
SEEN = [
    (
        "NoPermissions",
        "Error",
        "Language model 'copilot/x' cannot be used by 'pub.ext'.",
        403,
        "consent_required",
        "Allow",
    ),
    ("", "", "Language model 'copilot/x' cannot be used by 'pub.ext'.", 403, "consent_required", "Allow"),
    ("NoPermissions", "Error", "this plan has no such model", 403, "permission_denied", "account"),
    ("", "Error", "the tool cannot be used by 'x'", 502, "upstream_error", ""),
    ("Blocked", "Error", "temporarily blocked due to making too many requests", 429, "rate_limited", "Wait"),
    ("", "ChatRateLimited", "Sorry, you have been rate-limited.", 429, "rate_limited", "Wait"),
    (
        "Unknown",
        "ChatQuotaExceeded",
        "You have exceeded your premium request allowance.",
        429,
        "insufficient_quota",
        "plan",
    ),
    ("ChatQuotaExceeded", "Error", "", 429, "insufficient_quota", "plan"),
    ("NotFound", "Error", "no model", 404, "model_not_found", "list"),
    ("", "Error", "Message exceeds token limit.", 400, "context_length_exceeded", "shorten"),
    ("", "Error", 'Request Failed: 400 {"error":{"message":"bad tool"}}', 400, "upstream_error", ""),
    (
        "",
        "Error",
        'Request Failed: 413 {"error":{"message":"prompt is too long"}}',
        400,
        "context_length_exceeded",
        "shorten",
    ),
    (
        "",
        "Error",
        'Request Failed: 400 {"error":{"message":"prompt token count of 82016 exceeds the limit of 64000",'
        '"code":"model_max_prompt_tokens_exceeded"}}',
        400,
        "context_length_exceeded",
        "shorten",
    ),
    (
        "",
        "Error",
        'Request Failed: 400 {"error":{"message":"too many","code":"model_max_prompt_tokens_exceeded"}}',
        400,
        "context_length_exceeded",
        "shorten",
    ),
    ("", "Error", 'Request Failed: 400 {"message":"Invalid schema of \'get_rate_limit\'"}', 400, "upstream_error", ""),
    ("", "Error", 'Request Failed: 413 {"message":"see rate limits"}', 413, "upstream_error", ""),
    (
        "",
        "Error",
        'Request Failed: 400 {"message":"image of \'rate_limit\' could not be decoded"}',
        400,
        "invalid_media",
        "PNG",
    ),
    ("", "Error", 'Request Failed: 429 {"message":"quota exceeded"}', 429, "insufficient_quota", "plan"),
    ("", "Error", 'Request Failed: 400 {"error":{"code":"model_not_supported"}}', 404, "model_not_found", "list"),
    ("", "Error", '{"message":"not supported.","code":"model_not_supported"}', 404, "model_not_found", "list"),
    ("", "Error", "Endpoint not found for model gpt-4.1", 404, "model_not_found", "list"),
    ("", "Error", "token expired or invalid: 401", 401, "authentication_failed", "Sign in"),
    ("", "Error", "Unauthorized", 401, "authentication_failed", "Sign in"),
    ("", "Error", "Request Failed: 401 {}", 401, "authentication_failed", "Sign in"),
    ("", "Error", 'Request Failed: 429 {"message":"slow down"}', 429, "rate_limited", ""),
    ("", "Error", "Request Failed: 999 x", 502, "upstream_error", ""),
    ("", "Error", "Server error: 500", 500, "upstream_error", ""),
    ("", "Error", "GitHubLoginFailed", 401, "authentication_failed", "Sign in"),
    ("", "", '{"isTrusted":true}', 400, "invalid_media", "PNG"),
    ("", "Error", 'Invalid tool name "a.b": only alphanumeric characters', 400, "upstream_error", ""),
    ("", "Canceled", "Canceled", 502, "cancelled", ""),
    ("", "Error", "network request aborted", 502, "cancelled", ""),
    ("Unknown", "Error", "kaput", 502, "upstream_error", ""),
]


@pytest.mark.parametrize(("code", "name", "message", "status", "kind", "hint"), SEEN)
def test_what_was_seen_has_its_status(code: str, name: str, message: str, status: int, kind: str, hint: str) -> None:
    error = error_of(code, name, message)
    assert (error.status, error.code, error.retryable) == (status, kind, False)
    assert hint in error.hint
    assert bool(error.hint) == bool(hint)


def test_the_providers_own_words_are_kept() -> None:
    assert error_of("", "Error", 'Request Failed: 400 {"error":{"message":"bad tool"}}').message == "bad tool"
    assert '"kaput"' in error_of("Unknown", "Error", "kaput").message


def test_no_secret_is_reported_again() -> None:
    for secret in ("gho_abcdefgh1234567890", "Bearer abc.def", "sk-abcdefgh12345678", "tid=abcdefgh;exp=12345678"):
        error = error_of("", "Error", f"Request Failed: 400 bad key {secret} here")
        assert secret not in error.sentence()


@given(st.text(max_size=80), st.text(max_size=80), st.text(max_size=300))
def test_any_words_give_an_error_that_can_be_reported(code: str, name: str, message: str) -> None:
    error = error_of(code, name, message)
    assert 400 <= error.status < 600
    from_gateway(refused("r1", error))


def test_long_words_take_no_time_and_little_room() -> None:
    error = error_of("", "", "Request Failed: 400 " + "{" * 5_000_000)
    assert len(error.sentence()) < 5000
    assert not is_too_long("x" * 5_000_000)


@pytest.mark.parametrize(
    ("message", "is_length"),
    [
        ("Response too long.", True),
        ("Response is too long", True),
        ("prompt is too long", False),
        ('Request Failed: 400 {"message":"the previous response too long"}', False),
    ],
)
def test_an_answer_at_its_limit_is_distinguished(message: str, is_length: bool) -> None:
    assert is_too_long(message) is is_length


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("Response got filtered.", "Response got filtered"),
        ("Model declined to respond.", "Model declined to respond"),
        ("Filtered by Responsible AI Service\n\nkey-abcdefgh1234", "Filtered by Responsible AI Service"),
        ("filtered as off_topic by intent classifier: x", "filtered as off_topic"),
        ("Request Failed: 400 the response got filtered", ""),
    ],
)
def test_a_refusal_is_distinguished(message: str, words: str) -> None:
    assert refusal_in(message) == words


def test_cancelled_is_distinguished() -> None:
    assert is_cancelled("", "CancellationError", "")
    assert is_cancelled("", "Error", "Canceled")
    assert not is_cancelled("", "Error", "the order was Canceled by mail")
    assert cancelled("why").message.endswith('"why".')


def test_an_unreachable_server_says_what_to_do() -> None:
    assert (no_window().status, no_window().code) == (503, "no_window")
    assert "toolwire" in no_window("gpt-5").hint
    assert '"gpt-5"' in no_window("gpt-5").message
    missing = no_model("gpt-9", ["copilot/gpt-5"])
    assert (missing.status, '"copilot/gpt-5"' in missing.message) == (404, True)
    assert "Sign in" in no_model("gpt-9", []).hint
    assert (needs_consent("m").status, window_lost().code) == (403, "upstream_cut")


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (BadRequest("no"), 400, "Unknown"),
        (UpstreamError("no", status=429), 429, "Blocked"),
        (UpstreamError("no", status=403), 403, "NoPermissions"),
        (UpstreamError("no", status=404), 404, "NotFound"),
        (GatewayError("", status=200), 500, "Unknown"),
    ],
)
def test_errors_for_vs_code(error: GatewayError, status: int, code: str) -> None:
    frame = refused("r1", error)
    assert (frame.status, frame.code) == (status, code)
    from_gateway(frame)
