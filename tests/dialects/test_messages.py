"""Tokens of accounts in place of keys: as a Bearer with the feature that Anthropic names for them, and nothing else besides."""

from __future__ import annotations

import pytest

from tests.server.harness import Upstream, ask, gateway, reply, server_config
from toolwire.config.file import BackendConfig, Config, with_backends
from toolwire.config.secret import Secret
from toolwire.dialects import DIALECTS
from toolwire.profiles import ANTHROPIC, ANTHROPIC_API, ANTHROPIC_OAUTH, Profile

TOKEN, KEY = "sk-ant-oat01-abc", "sk-ant-api03-abc"
BETA = "oauth-2025-04-20"
headers = DIALECTS["messages"].headers


@pytest.mark.parametrize("profile", [ANTHROPIC, ANTHROPIC_API, ANTHROPIC_OAUTH], ids=lambda profile: profile.name)
def test_a_token_is_known_by_its_beginning(profile: Profile) -> None:
    assert headers(profile, TOKEN, {}) == {
        "anthropic-version": "2023-06-01",
        "anthropic-beta": BETA,
        "authorization": f"Bearer {TOKEN}",
    }


def test_a_token_of_another_form_is_known_by_the_profile() -> None:
    assert headers(ANTHROPIC_OAUTH, "other", {})["authorization"] == "Bearer other"
    assert headers(ANTHROPIC_OAUTH, "other", {})["anthropic-beta"] == BETA
    assert headers(ANTHROPIC_API, "other", {}) == {"anthropic-version": "2023-06-01", "x-api-key": "other"}


@pytest.mark.parametrize("version", ["2023-06-01", "2026-10-21"])
def test_a_key_gets_no_feature_of_tokens(version: str) -> None:
    sent = headers(ANTHROPIC_API, KEY, {"anthropic-version": version})
    assert "anthropic-beta" not in sent
    assert headers(ANTHROPIC_OAUTH, "", {}) == {"anthropic-version": "2023-06-01"}


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("a", f"a,{BETA}"),
        ("a, b", f"a,b,{BETA}"),
        (BETA, BETA),
        (f"a,{BETA},b", f"a,{BETA},b"),
        (" , ", BETA),
    ],
)
def test_features_of_the_client_stay(given: str, sent: str) -> None:
    assert headers(ANTHROPIC_API, TOKEN, {"anthropic-beta": given})["anthropic-beta"] == sent


def test_H169_nothing_is_disguised_and_the_token_is_in_no_error() -> None:
    words = f"This credential is only authorized for use with Claude Code ({TOKEN})."
    refusal = f'{{"type":"error","error":{{"type":"permission_error","message":"{words}"}}}}'.encode()
    upstream = Upstream()
    upstream.on("m", [reply(403, refusal)])
    backend = BackendConfig(name="claude", kind="anthropic", base_url=upstream.url, key=Secret(TOKEN), retries=0)
    body = {"model": "claude/m", "max_tokens": 9, "system": "Mine.", "messages": [{"role": "user", "content": "hi"}]}
    try:
        with gateway(with_backends(Config(server=server_config()), (backend,))) as running:
            answer = ask(running.port, "POST", "/v1/messages", body)
    finally:
        upstream.close()
    (asked,) = upstream.requests("m")
    assert asked.json == body | {"model": "m"}
    assert asked.headers["user-agent"] == "toolwire"
    assert (asked.headers["authorization"], asked.headers["anthropic-beta"]) == (f"Bearer {TOKEN}", BETA)
    assert {"x-api-key", "x-app", "x-stainless-lang"}.isdisjoint(asked.headers)
    assert answer.status == 403
    assert "only from its own programs" in answer.json["error"]["message"]
    assert TOKEN not in answer.body.decode()
