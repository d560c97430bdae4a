from __future__ import annotations

import asyncio

import pytest

from tests.backends.cursor.http1_server import Http1Server, HttpRequest
from tests.backends.cursor.http2_server import attempt, config
from toolwire import __version__
from toolwire.backends.cursor.transport.target import (
    APPEND,
    EXCHANGE,
    RUN,
    RUN_SSE,
    USABLE_MODELS,
    Attempt,
    bare_token,
    headers_of,
    unary,
    unwrap,
    url_of,
)
from toolwire.backends.http.transport import Transport
from toolwire.config.secret import Secret
from toolwire.errors import ConfigError, UpstreamError
from toolwire.wire.connect import ConnectFault, end, frame

TARGET = config(base_url="https://service.test/", client_type="cli", client_version="cli-1")
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
    bare = headers_of(
        config(base_url="https://x", privacy=False, client_type=""), Attempt(token=Secret("t"), request_id="r"), "run"
    )
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
    target = config(base_url="https://x", headers={"User-Agent": "mine", "X-Extra": "1"})
    headers = headers_of(target, ATTEMPT, "run")
    assert (headers["user-agent"], headers["x-extra"]) == ("mine", "1")


@pytest.mark.parametrize("header", [{"x y": "1"}, {"x": "a\r\nb"}, {"x": "ä"}, {"": "1"}, {":path": "/"}])
def test_a_header_that_no_request_can_carry_is_refused_without_its_value(header: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as caught:
        headers_of(config(base_url="https://x", headers=header), ATTEMPT, "run")
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
    shown = f"{ATTEMPT!r} {config(base_url='https://x', headers={'x-key': 'private'})!r}"
    assert "secret" not in shown
    assert "private" not in shown


def test_runs_may_live_on_another_host() -> None:
    target = config(base_url="https://a.test/", agent_url="https://b.test")
    assert url_of(target, RUN) == "https://b.test/agent.v1.AgentService/Run"
    assert url_of(target, RUN_SSE) == "https://b.test/agent.v1.AgentService/RunSSE"
    assert url_of(target, APPEND) == "https://b.test/aiserver.v1.BidiService/BidiAppend"
    assert url_of(target, EXCHANGE) == "https://a.test/auth/exchange_user_api_key"
    assert url_of(target, USABLE_MODELS) == "https://a.test/agent.v1.AgentService/GetUsableModels"
    assert url_of(TARGET, RUN).startswith("https://service.test/agent")


MODELS = b"\x0a\x04\x0a\x02m1"


def call(body: bytes, status: int = 200, kind: str = "application/proto") -> tuple[bytes, HttpRequest]:
    async def answering(request: HttpRequest) -> None:
        request.answer(body, status, kind)

    async def main() -> tuple[bytes, HttpRequest]:
        async with Http1Server(answering) as server:
            transport = Transport(environ={})
            try:
                return await unary(transport, server.target, attempt(), USABLE_MODELS), server.requests[0]
            finally:
                await transport.close()

    return asyncio.run(main())


@pytest.mark.parametrize("body", [MODELS, frame(MODELS), frame(MODELS) + end(), frame(MODELS, is_zipped=True) + end()])
def test_an_answer_may_be_bare_or_in_an_envelope(body: bytes) -> None:
    message, request = call(body)
    assert message == MODELS
    assert request.path == "/agent.v1.AgentService/GetUsableModels"
    assert request.headers["content-type"] == "application/proto"
    assert request.body == b""


@pytest.mark.parametrize("body", [b"", frame(b""), end()])
def test_an_empty_answer_is_an_empty_message(body: bytes) -> None:
    assert call(body)[0] == b""


def test_an_error_in_an_envelope_is_that_error() -> None:
    with pytest.raises(UpstreamError) as caught:
        unwrap(end(ConnectFault("unauthenticated", "no")))
    assert caught.value.status == 401


@pytest.mark.parametrize("body", [b"\x00\x00", b"\x00\xff\xff\xff\xff", b"\x03\x00\x00\x00\x01x"])
def test_a_broken_envelope_is_an_upstream_error(body: bytes) -> None:
    with pytest.raises(UpstreamError) as caught:
        unwrap(body)
    assert caught.value.status in (502, 503)


@pytest.mark.parametrize(("status", "expected"), [(401, 401), (415, 502), (500, 500), (429, 429)])
def test_a_status_becomes_its_error(status: int, expected: int) -> None:
    with pytest.raises(UpstreamError) as caught:
        call(b'{"message":"no"}', status, "application/json")
    assert caught.value.status == expected


def test_a_page_is_no_answer() -> None:
    with pytest.raises(UpstreamError) as caught:
        call(b"<html>", 200, "text/html")
    assert caught.value.code == "upstream_garbage"


def test_a_long_refusal_is_cut() -> None:
    with pytest.raises(UpstreamError) as caught:
        call(b"x" * 3_000_000, 400, "text/plain")
    assert len(caught.value.sentence()) < 1000
