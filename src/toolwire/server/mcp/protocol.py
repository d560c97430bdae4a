"""The server side of MCP without I/O, for a server without sessions: a request in, its result or the tool call that makes it out.

Protocol 2026-07-28 names its version in each request. Older clients begin with `initialize`; nothing of that must be remembered.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from ... import __version__
from ...errors import quote
from ...types import Json, JsonObject
from ...wire.exact_json import object_of
from ...wire.json_rpc import BadLine, Id, RpcRequest, message_in

MODERN: Final = ("2026-07-28",)
OLDER: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")  # with a handshake
PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603
_WRONG_HEADER, _WRONG_VERSION = -32020, -32022
_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
_ABOUT: JsonObject = {"name": "toolwire", "title": "toolwire", "version": __version__}
_INSTRUCTIONS = (
    "Models of a toolwire gateway. list_models lists them; ask_model sends a prompt to one and returns its answer."
)
_LIST_SECONDS = 300  # for which a client may use the list of tools


class McpFault(Exception):
    """A JSON-RPC error. status: of the HTTP response."""

    def __init__(self, code: int, message: str, status: int = 400, data: Json = None) -> None:
        super().__init__(message)
        self.code, self.message, self.status, self.data = code, message, status, data

    def body(self, request_id: Id | None) -> JsonObject:
        error: JsonObject = {"code": self.code, "message": self.message}
        if self.data is not None:
            error["data"] = self.data
        return {"jsonrpc": "2.0", "id": request_id, "error": error}


class McpRequest(Struct, frozen=True, kw_only=True):
    """result: None for a tool call, which name and arguments describe."""

    id: Id
    is_modern: bool
    result: JsonObject | None = None
    name: str = ""
    arguments: JsonObject = {}

    def body(self, result: JsonObject) -> JsonObject:
        complete = {"resultType": "complete", **result} if self.is_modern else result
        return {"jsonrpc": "2.0", "id": self.id, "result": complete}


def read_message(data: bytes) -> RpcRequest | None:
    """None for a notification or a response, which need no answer. Raises McpFault."""
    message = message_in(data)
    if isinstance(message, BadLine):
        is_object = object_of(data.decode("utf-8", "replace")) is not None
        raise McpFault(INVALID_REQUEST if is_object else PARSE_ERROR, f"expected one JSON-RPC message: {message.why}")
    return message if isinstance(message, RpcRequest) else None


def handle(request: RpcRequest, tools: list[JsonObject], headers: Mapping[str, str] | None = None) -> McpRequest:
    """tools: definitions. headers: of an HTTP request, None for other transports. Raises McpFault."""
    is_modern = _is_modern(request, headers)
    if request.method == "tools/call":
        return _call(request, is_modern=is_modern, names=[str(tool["name"]) for tool in tools])
    result = _modern_result(request, tools) if is_modern else _older_result(request, tools)
    if result is None:
        # In the newer protocol the status says it, too; older clients take any 404 for a lost session.
        raise McpFault(NO_METHOD, f"there is no method {quote(request.method)}.", 404 if is_modern else 200)
    return McpRequest(id=request.id, is_modern=is_modern, result=result)


def _is_modern(request: RpcRequest, headers: Mapping[str, str] | None) -> bool:
    meta = request.params.get("_meta")
    claimed = meta.get(_VERSION_KEY) if isinstance(meta, dict) else None
    if claimed is None:
        if request.method == "server/discover":
            raise McpFault(INVALID_PARAMS, f"expected {_VERSION_KEY} in _meta.")
        return False
    if claimed not in MODERN:
        data: JsonObject = {"supported": [*MODERN, *OLDER], "requested": claimed}
        raise McpFault(_WRONG_VERSION, f"found the version {quote(str(claimed))}; expected {MODERN[0]}.", data=data)
    if headers is not None:
        _check_headers(request, headers, str(claimed))
    return True


def _check_headers(request: RpcRequest, headers: Mapping[str, str], version: str) -> None:
    """Proxies route by these, so they must say the same as the body."""
    wanted = {"mcp-protocol-version": version, "mcp-method": request.method}
    if request.method == "tools/call":
        wanted["mcp-name"] = str(request.params.get("name", ""))
    for name, value in wanted.items():
        if headers.get(name) != value:
            found = quote(headers[name]) if name in headers else "none"
            raise McpFault(_WRONG_HEADER, f"the header {name} is {found}; expected {quote(value)}, as in the body.")


def _modern_result(request: RpcRequest, tools: list[JsonObject]) -> JsonObject | None:
    match request.method:
        case "server/discover":
            about: JsonObject = {"capabilities": {"tools": {}}, "instructions": _INSTRUCTIONS, "serverInfo": _ABOUT}
            return {"supportedVersions": [*MODERN, *OLDER], **about, "ttlMs": 0, "cacheScope": "private"}
        case "tools/list":
            return {"tools": tools, "ttlMs": _LIST_SECONDS * 1000, "cacheScope": "private"}
        case _:
            return None


def _older_result(request: RpcRequest, tools: list[JsonObject]) -> JsonObject | None:
    match request.method:
        case "initialize":
            wanted = request.params.get("protocolVersion")
            version = wanted if wanted in OLDER else OLDER[0]
            about: JsonObject = {"capabilities": {"tools": {}}, "instructions": _INSTRUCTIONS, "serverInfo": _ABOUT}
            return {"protocolVersion": version, **about}
        case "tools/list":
            return {"tools": tools}
        case "ping":
            return {}
        case _:
            return None


def _call(request: RpcRequest, *, is_modern: bool, names: list[str]) -> McpRequest:
    name, arguments = request.params.get("name"), request.params.get("arguments", {})
    if name not in names:
        known = ", ".join(map(quote, names))
        status = 400 if is_modern else 200
        raise McpFault(INVALID_PARAMS, f"found the tool {quote(str(name))}; expected one of {known}.", status)
    if not isinstance(arguments, dict):
        raise McpFault(INVALID_PARAMS, "found arguments that are no object.", 400 if is_modern else 200)
    return McpRequest(id=request.id, is_modern=is_modern, name=str(name), arguments=arguments)
