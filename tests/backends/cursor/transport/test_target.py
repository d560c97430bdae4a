from __future__ import annotations

import pytest

from toolwire import __version__
from toolwire.backends.cursor.transport.target import (
    APPEND,
    EXCHANGE,
    RUN,
    RUN_SSE,
    USABLE_MODELS,
    Attempt,
    Target,
    bare_token,
    headers_of,
)
from toolwire.config.secret import Secret
from toolwire.errors import ConfigError

pytestmark = pytest.mark.slow

TARGET = Target(base_url="https://service.test/", client_type="cli", client_version="cli-1")
ATTEMPT = Attempt(token=Secret("eyJ.secret.x"), request_id="r-2", original_id="r-1", allowed_tools=("mcp_tool_call",))


def test_a_run_says_who_calls_by_configuration_and_in_our_own_name() -> None:
    assert headers_of(TARGET, ATTEMPT, "run") == {
        "authorization": "Bearer eyJ.secret.x",
        "content-type": "application/connect+proto",
        "connect-protocol-version": "1",
        "connect-accept-encoding": "gzip",
        "user-agent": f"toolwire/{__version__}",
        "x-ghost-mode": "true",
        "x-request-id": "r-2",
        "x-original-request-id": "r-1",
        "x-cursor-client-type": "cli",
        "x-cursor-client-version": "cli-1",
        "x-cursor-agent-allowed-tools": "mcp_tool_call",
        "te": "trailers",
    }


def test_each_shape_has_its_own_headers() -> None:
    stream, unary = headers_of(TARGET, ATTEMPT, "stream"), headers_of(TARGET, ATTEMPT, "unary")
    assert (stream["content-type"], stream["x-cursor-streaming"]) == ("application/connect+proto", "true")
    assert unary["content-type"] == "application/proto"
    assert unary["x-cursor-agent-allowed-tools"] == "mcp_tool_call"
    assert "te" not in stream | unary
    assert "connect-accept-encoding" not in unary


def test_what_is_not_configured_is_not_said() -> None:
    bare = headers_of(Target(base_url="https://x", is_private=False), Attempt(token=Secret("t"), request_id="r"), "run")
    assert bare["x-ghost-mode"] == "false"
    assert bare["x-original-request-id"] == "r"
    for name in (
        "x-cursor-client-type",
        "x-cursor-client-version",
        "x-cursor-agent-allowed-tools",
        "x-cursor-checksum",
    ):
        assert name not in bare


def test_the_owner_has_the_last_word() -> None:
    target = Target(base_url="https://x", headers={"User-Agent": "mine", "X-Extra": "1"})
    headers = headers_of(target, ATTEMPT, "run")
    assert (headers["user-agent"], headers["x-extra"]) == ("mine", "1")


@pytest.mark.parametrize("header", [{"x y": "1"}, {"x": "a\r\nb"}, {"x": "ä"}, {"": "1"}, {":path": "/"}])
def test_a_header_that_no_request_can_carry_is_refused_without_its_value(header: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as caught:
        headers_of(Target(base_url="https://x", headers=header), ATTEMPT, "run")
    assert "a\\u000d" not in caught.value.sentence()
    with pytest.raises(ConfigError) as caught:
        headers_of(TARGET, Attempt(token=Secret("sec\nret"), request_id="r"), "run")
    assert "ret" not in caught.value.message.replace("carry", "")


@pytest.mark.parametrize(
    ("pasted", "token"),
    [
        ("eyJ.a.b", "eyJ.a.b"),
        ("user_01AB%3A%3AeyJ.a.b", "eyJ.a.b"),
        ("user_01AB%3a%3aeyJ.a.b", "eyJ.a.b"),
        ("user_01AB::eyJ.a.b", "eyJ.a.b"),
        ("auth0|user_1::eyJ.a.b", "eyJ.a.b"),
        (" key_123 ", "key_123"),
        ("", ""),
    ],
)
def test_a_pasted_token_loses_the_user_before_it(pasted: str, token: str) -> None:
    assert bare_token(pasted) == token


def test_no_secret_shows() -> None:
    shown = f"{ATTEMPT!r} {Target(base_url='https://x', headers={'x-key': 'private'})!r}"
    assert "secret" not in shown
    assert "private" not in shown


def test_runs_may_live_on_another_host() -> None:
    target = Target(base_url="https://a.test/", agent_url="https://b.test")
    assert target.url(RUN) == "https://b.test/agent.v1.AgentService/Run"
    assert target.url(RUN_SSE) == "https://b.test/agent.v1.AgentService/RunSSE"
    assert target.url(APPEND) == "https://b.test/aiserver.v1.BidiService/BidiAppend"
    assert target.url(EXCHANGE) == "https://a.test/auth/exchange_user_api_key"
    assert target.url(USABLE_MODELS) == "https://a.test/agent.v1.AgentService/GetUsableModels"
    assert TARGET.url(RUN).startswith("https://service.test/agent")
