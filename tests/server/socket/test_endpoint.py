"""The upgrade of GET /v1/responses on real sockets."""

from __future__ import annotations

import json

import pytest

from tests.server.harness import Gateway, raw

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


@pytest.mark.parametrize("path", ["/v1/responses", "/responses"])
def test_an_upgrade_is_refused_with_426_so_that_codex_uses_http_at_once(server: Gateway, path: str) -> None:
    head, _, body = raw(server.port, upgrade(path)).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 426 ")
    assert json.loads(body)["error"]["code"] == "websocket_unavailable"


def test_a_plain_get_is_still_a_wrong_method(server: Gateway) -> None:
    answer = raw(server.port, b"GET /v1/responses HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 405 ")


@pytest.mark.parametrize("headers", [{"host": "evil.example"}, {"origin": "https://evil.example"}])
def test_host_and_origin_are_checked_first(server: Gateway, headers: dict[str, str]) -> None:
    assert raw(server.port, upgrade(**headers)).startswith(b"HTTP/1.1 403 ")
