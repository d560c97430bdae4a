"""An MCP server without I/O: lines of Codex in, lines for Codex out. A tool that is called waits until somebody gives its result.

MCP knows nothing of the model's call ids, so a call is recognised by its name and arguments, and among equal ones by order. Codex
0.89 asks for one tool after the other, however many the model has called: calls wait for results, and results for calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from decimal import Decimal
from math import inf

from msgspec import Struct

from ...dialects.shared.media.data import data_url, split_data_url
from ...dialects.shared.media.text import placeholder, rendered
from ...dialects.shared.requests import whole_schema, with_failure_first
from ...errors import quote
from ...types import Json, JsonObject, Loss, Media, Opaque, Part, Text, Tool, ToolCall, ToolResult
from ...wire.exact_json import BadJson, decode, encode, object_of

MOST_WAITING = 256  # calls and results; a model that asks for more at once does not mean it
_VERSION = "2025-06-18"  # where the client names none
_PARSE, _INVALID, _NO_METHOD, _PARAMS = -32700, -32600, -32601, -32602


class _Asked(Struct, eq=False):
    """A call of Codex that waits for its result."""

    id: Json
    name: str
    arguments: Json


class _Given(Struct, eq=False):
    """A result that waits for its call."""

    name: str
    arguments: Json
    result: ToolResult


class Talk:
    """One thread's conversation. is_listed: Codex knows the tools."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self.is_listed = False
        self.losses: list[Loss] = []
        self._tools = tools
        self._asked: list[_Asked] = []
        self._given: list[_Given] = []

    @property
    def waiting(self) -> int:
        """Calls of Codex without a result."""
        return len(self._asked)

    def feed(self, line: bytes) -> bytes:
        """What is to be said to this line, b"" where nothing is (yet)."""
        try:
            message = decode(line)
        except BadJson:
            return _error(None, _PARSE, "the line is not JSON.")
        if not isinstance(message, dict):
            return _error(None, _INVALID, "expected one JSON object a line.")
        method, params = message.get("method"), message.get("params")
        params = params if isinstance(params, dict) else {}
        if "id" not in message:
            self._note(method, params)
            return b""
        if not isinstance(method, str):
            return b""  # an answer, and we never ask
        return self._answer(method, message["id"], params)

    def give(self, call: ToolCall, result: ToolResult) -> bytes:
        """What is to be said now, b"" where Codex has not asked for it yet."""
        given = _Given(call.name, _loose(object_of(call.raw) if call.args is None else call.args), result)
        asked = next((asked for asked in self._asked if _is_equal(given, asked)), None)
        if asked is not None:
            self._asked.remove(asked)
            return _result(asked.id, contents(result, self.losses))
        self._given = [*self._given[1 - MOST_WAITING :], given]
        return b""

    def _note(self, method: Json, params: JsonObject) -> None:
        """Codex does not wait any longer for a call that it takes back."""
        if method == "notifications/cancelled":
            gone = params.get("requestId")
            self._asked = [asked for asked in self._asked if asked.id != gone]

    def _answer(self, method: str, id: Json, params: JsonObject) -> bytes:
        answers: dict[str, Callable[[Json, JsonObject], bytes]] = {
            "initialize": _initialized,
            "ping": lambda id, _: _result(id, {}),
            "tools/list": self._list,
            "tools/call": self._call,
        }
        if (answer := answers.get(method)) is None:
            return _error(
                id, _NO_METHOD, f"there is no method {quote(method)} here; expected one of {', '.join(answers)}."
            )
        return answer(id, params)

    def _list(self, id: Json, params: JsonObject) -> bytes:
        self.is_listed = True
        return _result(id, {"tools": [_told(tool) for tool in self._tools]})

    def _call(self, id: Json, params: JsonObject) -> bytes:
        name, arguments = params.get("name"), params.get("arguments")
        if not isinstance(name, str) or all(tool.name != name for tool in self._tools):
            return _error(
                id, _PARAMS, f"there is no tool {quote(name) if isinstance(name, str) else 'without a name'}."
            )
        if len(self._asked) >= MOST_WAITING:
            return _error(id, _INVALID, "too many calls wait for their results.")
        asked = _Asked(id, name, _loose(arguments))
        given = next((given for given in self._given if _is_equal(given, asked)), None)
        if given is None:
            self._asked.append(asked)
            return b""
        self._given.remove(given)
        return _result(id, contents(given.result, self.losses))


def contents(result: ToolResult, losses: list[Loss]) -> JsonObject:
    """A result as MCP has it; the model is told only the contents, so they say it when the call has failed."""
    parts: list[Part] = []
    for part in result.parts:
        parts += rendered(part, "result", losses) if isinstance(part, Opaque) else [part]
    if result.is_error:
        parts = with_failure_first(parts)
    content = [_content(part, losses) for part in parts if isinstance(part, (Text, Media))]
    return {"content": content or [{"type": "text", "text": ""}], "isError": result.is_error}


def _content(part: Text | Media, losses: list[Loss]) -> JsonObject:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    found = split_data_url(data_url(part) or "") if part.kind == "image" else None
    if found is None:
        return {"type": "text", "text": placeholder(part, "result", losses, "it is no image with data")}
    mime, data = found
    return {"type": "image", "data": data, "mimeType": mime}


def _told(tool: Tool) -> JsonObject:
    told = {"name": tool.name, "inputSchema": whole_schema(tool.schema)}
    return told if tool.description is None else told | {"description": tool.description}


def _initialized(id: Json, params: JsonObject) -> bytes:
    version = params.get("protocolVersion")
    return _result(
        id,
        {
            "protocolVersion": version if isinstance(version, str) else _VERSION,
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "toolwire", "version": "1"},
        },
    )


def _is_equal(given: _Given, asked: _Asked) -> bool:
    return given.name == asked.name and (given.arguments or {}) == (asked.arguments or {})


def _loose(value: Json) -> Json:
    """With numbers as Codex passes them on: it reads them as floats where they do not fit into 64 bits."""
    try:
        return _with_floats(value)
    except RecursionError:  # nested far deeper than Codex reads, so it is never compared
        return value


def _with_floats(value: Json) -> Json:
    match value:
        case bool():
            return value
        case int() | Decimal():
            with suppress(OverflowError):
                return float(value)
            return inf
        case list():
            return [_with_floats(item) for item in value]
        case dict():
            return {key: _with_floats(item) for key, item in value.items()}
        case _:
            return value


def _result(id: Json, result: JsonObject) -> bytes:
    return encode({"jsonrpc": "2.0", "id": id, "result": result}) + b"\n"


def _error(id: Json, code: int, message: str) -> bytes:
    return encode({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}) + b"\n"
