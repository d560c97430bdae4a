"""MCP at /mcp: the official client and plain requests, on a gateway with keys and on one without."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.server.harness import Answer, Gateway, ask, gateway, server_config
from tests.tools.mcp.servers import run, text_of
from toolwire.config.file import Config, with_backends
from toolwire.config.secret import Secret
from toolwire.tools.mcp import MCP

KEY = "the-owners-key-0123456789"


@pytest.fixture(scope="module")
def open_gateway() -> Iterator[Gateway]:
    with gateway(with_backends(Config(server=server_config()), ())) as running:
        yield running


def post(server: Gateway, body: Any, **headers: str) -> Answer:
    return ask(server.port, "POST", "/mcp", body, {name.replace("_", "-"): value for name, value in headers.items()})


def rpc(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}


@pytest.mark.slow
def test_the_official_client_asks_a_model(open_gateway: Gateway) -> None:
    async def talk() -> tuple[list[str], str, str]:
        async with MCP(f"http://127.0.0.1:{open_gateway.port}/mcp", name="models") as source:
            names = [tool.tool.name for tool in await source.tools()]
            asked = {"prompt": "hello", "model": "demo/echo-tools"}
            return names, text_of(await run(source, "ask_model", asked)), text_of(await run(source, "list_models"))

    names, answer, listed = asyncio.run(talk())
    assert names == ["models__ask_model", "models__list_models"]
    assert "demo model" in answer
    assert "demo/echo-tools" in listed.splitlines()


def test_an_older_client_needs_no_session(open_gateway: Gateway) -> None:
    begun = post(open_gateway, rpc("initialize", protocolVersion="2025-06-18", capabilities={}))
    assert begun.json["result"]["protocolVersion"] == "2025-06-18"
    assert post(open_gateway, {"jsonrpc": "2.0", "method": "notifications/initialized"}).status == 202
    called = post(
        open_gateway, rpc("tools/call", name="ask_model", arguments={"prompt": "hello", "model": "demo/echo-tools"})
    )
    assert called.json["id"] == 7
    assert not called.json["result"]["isError"]
    assert ask(open_gateway.port, "GET", "/mcp").status == 405
    assert ask(open_gateway.port, "DELETE", "/mcp").status == 405


def test_a_model_that_does_not_exist_is_an_error_of_the_call(open_gateway: Gateway) -> None:
    called = post(open_gateway, rpc("tools/call", name="ask_model", arguments={"prompt": "hello", "model": "no/model"}))
    assert called.status == 200
    assert called.json["result"]["isError"]


def test_faults_have_their_status(open_gateway: Gateway) -> None:
    assert post(open_gateway, [1]).status == 400
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    headers = {"mcp_protocol_version": "2026-07-28", "mcp_method": "resources/list"}
    missing = post(open_gateway, rpc("resources/list", _meta=meta), **headers)
    assert (missing.status, missing.json["error"]["code"]) == (404, -32601)
    assert post(open_gateway, rpc("tools/list", _meta=meta)).json["error"]["code"] == -32020


def test_a_web_page_elsewhere_is_refused(open_gateway: Gateway) -> None:
    assert post(open_gateway, rpc("tools/list"), origin="https://evil.example").status == 403


def test_a_key_is_needed_where_the_gateway_has_keys() -> None:
    with gateway(with_backends(Config(server=server_config(keys=(Secret(KEY),))), ())) as server:
        assert post(server, rpc("tools/list")).status == 401
        asked = rpc("tools/call", name="ask_model", arguments={"prompt": "hello", "model": "demo/echo-tools"})
        answer = post(server, asked, authorization=f"Bearer {KEY}")
        assert "demo model" in json.dumps(answer.json)
