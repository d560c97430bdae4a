"""What every dialect has: paths, headers, heartbeats and token counts."""

from __future__ import annotations

import pytest

from tests.dialects.codec_harness import ALL, NAMES, events_in
from tests.dialects.upstream_events import REGULAR
from toolwire.dialects import DIALECTS, FRONTS, Dialect
from toolwire.dialects.base import FORWARDED, bearer, excerpt, forwarded_headers
from toolwire.dialects.shared.answer_in import object_in
from toolwire.profiles import ANTHROPIC, GEMINI, PLAIN_CHAT, RESPONSES, Profile
from toolwire.wire.sse import Frame


def test_small_helpers() -> None:
    assert object_in(Frame("", b'{"a":1}', b"")) == {"a": 1}
    assert object_in(Frame("", b"[]", b"")) is None
    assert object_in(Frame("", b"{", b"")) is None
    assert len(excerpt(b"\xff\n" * 1000)) < 220
    assert bearer("k") == {"authorization": "Bearer k"}
    assert bearer("") == {}


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_a_token_count_survives_its_dialect(dialect: Dialect) -> None:
    assert dialect.decode_count(dialect.encode_count(17)) == 17
    assert dialect.decode_count(b"{}") is None
    assert dialect.decode_count(b"no JSON") is None


def test_no_two_dialects_have_a_path_in_common() -> None:
    paths = [path for dialect in FRONTS.values() for path in dialect.routes]
    assert sorted(paths) == [
        *(f"/api/{name}" for name in ("chat", "embed", "embeddings", "generate", "ps", "pull", "show", "tags", "version")),
        "/chat/completions", "/embeddings", "/messages", "/messages/count_tokens", "/responses", "/responses/compact",
    ]  # fmt: skip
    assert not any(dialect.match(path, b"") for dialect in FRONTS.values() for path in paths)


GIVEN = {
    "authorization": "Bearer client",
    "x-api-key": "client",
    "cookie": "c",
    "user-agent": "agent",
    "host": "h",
    "x-forwarded-for": "1.2.3.4",
    "traceparent": "t",
    "session-id": "s",
    "openai-beta": "ob",
    "anthropic-beta": "ab",
    "openai-organization": "org",
}
PROFILES = {"chat": PLAIN_CHAT, "responses": RESPONSES, "messages": ANTHROPIC}


@pytest.mark.parametrize("dialect", NAMES)
def test_the_clients_identity_stays_here(dialect: str) -> None:
    sent = DIALECTS[dialect].headers(PROFILES[dialect], "ours", GIVEN)
    assert "client" not in str(sent)
    assert {"cookie", "user-agent", "host", "x-forwarded-for", "openai-organization"}.isdisjoint(sent)
    assert (sent["traceparent"], sent["session-id"]) == ("t", "s")
    assert "ours" in sent.get("authorization", "") + sent.get("x-api-key", "")
    assert "ours" not in str(DIALECTS[dialect].headers(PROFILES[dialect], "", GIVEN))


def test_each_dialect_hands_on_its_own_features() -> None:
    assert DIALECTS["chat"].headers(PLAIN_CHAT, "", GIVEN)["openai-beta"] == "ob"
    assert "anthropic-beta" not in DIALECTS["chat"].headers(PLAIN_CHAT, "", GIVEN)
    assert DIALECTS["messages"].headers(ANTHROPIC, "", GIVEN)["anthropic-beta"] == "ab"
    assert forwarded_headers({}, FORWARDED) == {}


@pytest.mark.parametrize(
    ("profile", "version", "header"),
    [
        (ANTHROPIC, "", "x-api-key"),
        (ANTHROPIC, "2026-10-21", "authorization"),
        (Profile(key_header="authorization"), "", "authorization"),
    ],
)
def test_the_version_decides_how_the_key_travels(profile: Profile, version: str, header: str) -> None:
    given = {"anthropic-version": version} if version else {}
    sent = DIALECTS["messages"].headers(profile, "k", given)
    assert sent["anthropic-version"] == (version or "2023-06-01")
    assert "k" in sent[header]
    assert ({"x-api-key", "authorization"} - {header}).isdisjoint(sent)


def test_who_claims_a_request_that_the_path_does_not_tell() -> None:
    assert DIALECTS["messages"].claims({"anthropic-version": "x"})
    assert DIALECTS["messages"].claims({"x-api-key": "k"})
    assert not DIALECTS["messages"].claims({"x-api-key": "k", "authorization": "Bearer k"})
    assert DIALECTS["chat"].claims({})
    assert not DIALECTS["responses"].claims({})


@pytest.mark.parametrize("dialect", ALL)
def test_H151_a_heartbeat_has_no_content(dialect: str) -> None:
    beat = DIALECTS[dialect].heartbeat
    assert events_in(dialect, beat, REGULAR[dialect].replace(b"\n\n", b"\n\n" + beat)) == events_in(
        dialect, REGULAR[dialect]
    )


def test_geminis_key_has_a_header_of_its_own_and_a_token_is_a_bearer() -> None:
    plain = DIALECTS["gemini"].headers(GEMINI, "AIza-key", GIVEN)
    assert (plain["x-goog-api-key"], plain["traceparent"]) == ("AIza-key", "t")
    assert "client" not in str(plain)
    token = DIALECTS["gemini"].headers(GEMINI, "ya29.token", {})
    assert token == {"authorization": "Bearer ya29.token"}
    by_profile = DIALECTS["gemini"].headers(Profile(key_header="authorization"), "k", {})
    assert by_profile == {"authorization": "Bearer k"}
    assert DIALECTS["gemini"].headers(GEMINI, "", {}) == {}
    assert DIALECTS["gemini"].claims({"x-goog-api-client": "x"})
    assert not DIALECTS["gemini"].claims({"x-api-key": "k"})
