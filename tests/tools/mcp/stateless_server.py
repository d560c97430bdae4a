"""A hand-written server of protocol 2026-07-28 over HTTP: no handshake, no session, every header checked.

It answers like the specification and nothing else, so that the SDK is not tested against itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

VERSION = "2026-07-28"
_META = "io.modelcontextprotocol"
_KNOWN = ("server/discover", "tools/list", "tools/call")


class Refused(Exception):
    def __init__(self, status: int, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.status, self.code, self.data = status, code, data


class StatelessServer:
    """call answers tools/call with a result. received has the parameters of each request, by method."""

    def __init__(self, call: Callable[[dict[str, Any]], dict[str, Any]], *, ttl_ms: int = 0) -> None:
        self.call = call
        self.ttl_ms = ttl_ms
        self.version = VERSION
        self.names = ["do"]
        self.schema: dict[str, Any] = {"type": "object", "properties": {}}
        self.received: dict[str, list[dict[str, Any]]] = {method: [] for method in _KNOWN}
        self.methods: list[str] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            return
        headers = {key.decode(): value.decode() for key, value in scope["headers"]}
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        request = json.loads(body) if body else {}
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": request.get("id")}
        status = 200
        try:
            answer["result"] = self._answer(scope["method"], request, headers)
        except Refused as error:
            status = error.status
            answer["error"] = {"code": error.code, "message": str(error), "data": error.data}
        await send(
            {"type": "http.response.start", "status": status, "headers": [(b"content-type", b"application/json")]}
        )
        await send({"type": "http.response.body", "body": json.dumps(answer).encode()})

    def _answer(self, http_method: str, request: dict[str, Any], headers: dict[str, str]) -> dict[str, Any]:
        if http_method != "POST":
            raise Refused(405, -32600, "only POST")
        method, params = request["method"], request.get("params", {})
        self.methods.append(method)
        self._check(method, params, headers)
        if method not in _KNOWN:
            raise Refused(404, -32601, f"there is no {method}")
        self.received[method].append(params)
        if method == "server/discover":
            return {
                "resultType": "complete", "supportedVersions": [self.version], "capabilities": {"tools": {}},
                "ttlMs": 0, "cacheScope": "private",
            }  # fmt: skip
        if method == "tools/list":
            tools = [{"name": name, "inputSchema": self.schema} for name in self.names]
            return {"resultType": "complete", "tools": tools, "ttlMs": self.ttl_ms, "cacheScope": "private"}
        self._check_arguments(params, headers)
        return {"resultType": "complete", **self.call(params)}

    def _check(self, method: str, params: dict[str, Any], headers: dict[str, str]) -> None:
        meta = params.get("_meta", {})
        claimed = meta.get(f"{_META}/protocolVersion")
        if headers.get("mcp-protocol-version") != claimed or headers.get("mcp-method") != method:
            raise Refused(400, -32020, "a header does not match the body")
        if claimed != self.version:
            raise Refused(400, -32022, "another version", {"supported": [self.version], "requested": claimed})
        if "mcp-session-id" in headers or method in ("initialize", "ping"):
            raise Refused(400, -32600, "there are no sessions")
        if f"{_META}/clientCapabilities" not in meta or f"{_META}/clientInfo" not in meta:
            raise Refused(400, -32602, "the client does not describe itself")
        if method == "tools/call" and headers.get("mcp-name") != params["name"]:
            raise Refused(400, -32020, "the name does not match the body")

    def _check_arguments(self, params: dict[str, Any], headers: dict[str, str]) -> None:
        for name, schema in self.schema["properties"].items():
            if (header := schema.get("x-mcp-header")) and f"mcp-param-{header.lower()}" not in headers:
                raise Refused(400, -32020, f"there is no header for {name}")


def text(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}]}


def question(message: str, state: str = "s1") -> dict[str, Any]:
    """A result that asks the user for a name."""
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    asked = {"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}}
    return {"resultType": "input_required", "inputRequests": {"who": asked}, "requestState": state}
