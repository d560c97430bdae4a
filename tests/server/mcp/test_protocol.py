"""MCP without I/O: both generations of the protocol, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire.server.mcp.protocol import McpFault, McpRequest, handle, read_message
from toolwire.wire.json_rpc import RpcRequest

TOOLS: list[dict[str, Any]] = [{"name": "ask", "inputSchema": {"type": "object"}}]
META = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}


def older(method: str, **params: Any) -> McpRequest:
    return handle(RpcRequest(id=1, method=method, params=params), TOOLS)


def newer(method: str, headers: dict[str, str] | None = None, **params: Any) -> McpRequest:
    return handle(RpcRequest(id=1, method=method, params={**META, **params}), TOOLS, headers)


@pytest.mark.parametrize(
    ("wanted", "given"), [("2025-06-18", "2025-06-18"), ("2024-11-05", "2024-11-05"), ("2099-01-01", "2025-11-25"), (None, "2025-11-25")]
)  # fmt: skip
def test_the_handshake_agrees_on_a_version(wanted: str | None, given: str) -> None:
    result = older("initialize", protocolVersion=wanted).result
    assert result is not None
    assert (result["protocolVersion"], result["capabilities"]) == (given, {"tools": {}})


def test_older_clients_list_and_ping() -> None:
    assert older("tools/list").result == {"tools": TOOLS}
    assert older("ping").body({}) == {"jsonrpc": "2.0", "id": 1, "result": {}}


def test_newer_clients_discover_and_list() -> None:
    found, listed = newer("server/discover"), newer("tools/list")
    assert found.result is not None
    assert found.result["supportedVersions"][0] == "2026-07-28"
    assert listed.result is not None
    assert listed.body(listed.result)["result"]["resultType"] == "complete"
    assert {"ttlMs", "cacheScope"} <= listed.result.keys()


def test_a_call_is_handed_over() -> None:
    made = newer("tools/call", name="ask", arguments={"a": 1})
    assert (made.result, made.name, made.arguments) == (None, "ask", {"a": 1})
    assert older("tools/call", name="ask").arguments == {}


HEADERS = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "ask"}


@pytest.mark.parametrize("name", list(HEADERS))
def test_headers_must_match_the_body(name: str) -> None:
    assert newer("tools/call", HEADERS, name="ask").name == "ask"
    for wrong in ({**HEADERS, name: "other"}, {key: value for key, value in HEADERS.items() if key != name}):
        with pytest.raises(McpFault) as caught:
            newer("tools/call", wrong, name="ask")
        assert (caught.value.code, caught.value.status) == (-32020, 400)


def test_an_unknown_version_is_refused_with_the_known_ones() -> None:
    params = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2031-01-01"}}
    with pytest.raises(McpFault) as caught:
        handle(RpcRequest(id=1, method="tools/list", params=params), TOOLS)
    body = caught.value.body(1)["error"]
    assert body["code"] == -32022
    assert "2026-07-28" in body["data"]["supported"]


def test_unknown_methods_and_tools() -> None:
    with pytest.raises(McpFault) as caught:
        newer("prompts/list")
    assert (caught.value.code, caught.value.status) == (-32601, 404)
    with pytest.raises(McpFault) as caught:
        older("prompts/list")
    assert (caught.value.code, caught.value.status) == (-32601, 200)
    for params in ({"name": "other"}, {"name": 5}, {}, {"name": "ask", "arguments": []}):
        with pytest.raises(McpFault) as caught:
            older("tools/call", **params)
        assert caught.value.code == -32602
    with pytest.raises(McpFault):
        older("server/discover")


@pytest.mark.parametrize(
    ("data", "code"), [(b"junk", -32700), (b"[]", -32700), (b'{"id": 1}', -32600), (b'{"id": [], "method": "x"}', -32600)]
)  # fmt: skip
def test_what_is_no_message_is_refused(data: bytes, code: int) -> None:
    with pytest.raises(McpFault) as caught:
        read_message(data)
    assert caught.value.code == code
    assert caught.value.body(None)["id"] is None


def test_notifications_need_no_answer() -> None:
    assert read_message(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}') is None
