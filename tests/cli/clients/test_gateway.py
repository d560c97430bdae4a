"""Looking at a gateway: its models, its wish for a key, or that nobody is there."""

from __future__ import annotations

import asyncio

import pytest

from tests.cli.listener import http, listening
from tests.free_port import free_port
from toolwire.cli.clients.gateway import GatewayStatus, look, path_at


def seen(answer: bytes | None, key: str = "", seconds: float = 2.0) -> tuple[GatewayStatus, bytes]:
    async def main() -> tuple[GatewayStatus, bytes]:
        async with listening(answer) as listener:
            found = await asyncio.to_thread(look, f"http://127.0.0.1:{listener.port}", key, seconds)
        return found, listener.requests[0]

    return asyncio.run(main())


def test_the_models_are_listed_with_the_key() -> None:
    found, request = seen(http(b'{"data": [{"id": "a"}, {"id": 1}, "x", {"id": "b"}]}'), "k-1")
    assert found == GatewayStatus(status=200, models=("a", "b"))
    assert b"authorization: Bearer k-1\r\n" in request


def test_context_windows_are_read() -> None:
    rows = b'{"data": [{"id": "a", "context_length": 32000}, {"id": "b", "context_length": true}, {"id": "c"}]}'
    assert seen(http(rows))[0].contexts == {"a": 32000}


def test_back_ends_that_a_list_lacks_are_named() -> None:
    answer = http(b'{"data": []}').replace(b"\r\n", b"\r\nx-toolwire-unlisted: a, b\r\n", 1)
    assert seen(answer)[0] == GatewayStatus(status=200, unlisted="a, b")


def test_without_a_key_none_is_sent() -> None:
    found, request = seen(http(b"{}", "401 Unauthorized"))
    assert found == GatewayStatus(status=401)
    assert b"uthorization" not in request


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"data": 1}', b"[" * 100_000, b"\xff"])
def test_what_is_no_list_is_no_list(body: bytes) -> None:
    assert seen(http(body))[0] == GatewayStatus(status=200)


def test_no_answer() -> None:
    assert look(f"http://127.0.0.1:{free_port()}", "") == GatewayStatus()
    assert seen(b"no http\r\n\r\n")[0] == GatewayStatus()
    assert seen(None, seconds=0.1)[0] == GatewayStatus()


def test_a_gateway_behind_a_path() -> None:
    assert path_at("https://example.com/llm/", "/v1/models") == "/llm/v1/models"
    assert path_at("https://example.com", "/v1/models") == "/v1/models"
