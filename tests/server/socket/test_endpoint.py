"""The upgrade of GET /v1/responses on real sockets."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.server.harness import Gateway, gateway, raw, server_config
from tests.server.socket.client import SocketClient
from toolwire.config.file import BackendConfig, Config, with_backends
from toolwire.config.secret import Secret

UPGRADE = {
    "connection": "Upgrade",
    "upgrade": "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "MDEyMzQ1Njc4OWFiY2RlZg==",
}


def upgrade(path: str = "/v1/responses", **headers: str) -> bytes:
    given = {"host": "localhost", **UPGRADE, **headers}
    return "\r\n".join(
        [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items()), "", ""]
    ).encode()


@pytest.fixture(scope="module")
def locked() -> Iterator[Gateway]:
    """A gateway with a key that serves no WebSocket."""
    scripted = BackendConfig(name="scripted", kind="scripted")
    config = Config(server=server_config(websocket=False, keys=(Secret("sk-mine"),)))
    with gateway(with_backends(config, (scripted,))) as running:
        yield running


@pytest.mark.parametrize("path", ["/v1/responses", "/responses"])
def test_where_it_is_off_codex_gets_426_and_uses_http_at_once(locked: Gateway, path: str) -> None:
    head, _, body = raw(locked.port, upgrade(path, authorization="Bearer sk-mine")).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 426 ")
    assert json.loads(body)["error"]["code"] == "websocket_unavailable"


def test_a_plain_get_is_still_a_wrong_method(server: Gateway) -> None:
    answer = raw(server.port, b"GET /v1/responses HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 405 ")


@pytest.mark.parametrize("headers", [{"host": "evil.example"}, {"origin": "https://evil.example"}])
def test_host_and_origin_are_checked_first(server: Gateway, headers: dict[str, str]) -> None:
    assert raw(server.port, upgrade(**headers)).startswith(b"HTTP/1.1 403 ")


def test_the_key_is_checked_before_the_upgrade(locked: Gateway) -> None:
    assert raw(locked.port, upgrade(authorization="Bearer sk-other")).startswith(b"HTTP/1.1 401 ")
    assert raw(locked.port, upgrade()).startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize("path", ["/v1/responses", "/responses"])
def test_the_handshake_is_that_of_the_standard(server: Gateway, path: str) -> None:
    with SocketClient(server.port, path=path) as client:
        assert client.head.startswith("HTTP/1.1 101 ")
        assert "permessage-deflate" not in client.head


def test_compression_is_used_where_the_client_offers_it(server: Gateway) -> None:
    with SocketClient(server.port, sec_websocket_extensions="permessage-deflate; client_max_window_bits") as client:
        assert "permessage-deflate; server_no_context_takeover; client_no_context_takeover" in client.head
        client.send(
            {"type": "response.create", "model": "demo/echo-tools", "input": "hi", "metadata": {"a": "one " * 5000}}
        )
        events = client.turn()
        assert events[-1]["type"] == "response.completed"
        assert client.wire < len(json.dumps(events)) / 3
