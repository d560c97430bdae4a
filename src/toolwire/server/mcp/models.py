"""Models as tools: a call becomes a request to the gateway itself, with the headers of the caller.

So it has the keys, limits, mounted tools, records and errors of every other request.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, MutableMapping
from typing import Any, Protocol

from ...backends.mounts import Receive, Send
from ...types import Json, JsonObject
from ...wire.exact_json import encode, object_of
from ..exchange import ClientGone

_CREDENTIALS = ("authorization", "x-api-key", "x-goog-api-key", "host", "origin", "traceparent")
_MOST_LISTED = 1000
TOOLS: list[JsonObject] = [
    {
        "name": "ask_model",
        "title": "Ask a model",
        "description": "Send a prompt to a model of the gateway and return its answer. A model that has tools of the gateway uses them "
        "before it answers. Each call is a new conversation: the prompt must contain everything that the model needs.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "prompt": {"type": "string", "description": "What the model is asked."},
                "model": {"type": "string", "description": "A name of list_models; by default the gateway's default."},
                "system": {"type": "string", "description": "Instructions for the model."},
                "max_tokens": {"type": "integer", "minimum": 1, "description": "Longest answer, in tokens."},
            },
            "required": ["prompt"],
            "additionalProperties": False,
        },
        "annotations": {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": True},
    },
    {
        "name": "list_models",
        "title": "List models",
        "description": "List the names of the models that ask_model accepts, one in each line.",
        "inputSchema": {"type": "object", "properties": {}, "additionalProperties": False},
        "annotations": {"readOnlyHint": True, "openWorldHint": False},
    },
]


class AsgiApp(Protocol):
    def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> Coroutine[Any, Any, None]: ...


class ModelTools:
    """The tools for one caller. receive: reports when the caller disconnects; a call then ends in ClientGone."""

    def __init__(self, gateway: AsgiApp, headers: Mapping[str, str], receive: Receive) -> None:
        self._gateway = gateway
        self._headers = {name: value for name, value in headers.items() if name in _CREDENTIALS}
        self._receive = receive

    async def call(self, name: str, arguments: JsonObject) -> JsonObject:
        """A CallToolResult; every failure is one, too, except ClientGone."""
        return await (self._ask(arguments) if name == "ask_model" else self._list())

    async def _ask(self, arguments: JsonObject) -> JsonObject:
        if fault := _fault(arguments):
            return _result(fault, is_error=True)
        messages: list[Json] = [{"role": "user", "content": arguments["prompt"]}]
        if arguments.get("system"):
            messages.insert(0, {"role": "system", "content": arguments["system"]})
        body: JsonObject = {"messages": messages}
        for member in ("model", "max_tokens"):
            if arguments.get(member):
                body[member] = arguments[member]
        status, answer = await self._request("POST", "/v1/chat/completions", encode(body))
        if status != 200:
            return _result(_error_text(status, answer), is_error=True)
        choices = answer.get("choices")
        message = choices[0].get("message") if isinstance(choices, list) and choices else None
        return _result(_answer_text(message if isinstance(message, dict) else {}))

    async def _list(self) -> JsonObject:
        status, answer = await self._request("GET", "/v1/models", b"")
        if status != 200:
            return _result(_error_text(status, answer), is_error=True)
        data = answer.get("data")
        names = [str(line.get("id")) for line in data if isinstance(line, dict)] if isinstance(data, list) else []
        return _result("\n".join(names[:_MOST_LISTED]) or "(no models)")

    async def _request(self, method: str, path: str, body: bytes) -> tuple[int, JsonObject]:
        status, pieces = 0, list[bytes]()
        given = [{"type": "http.request", "body": body, "more_body": False}]
        headers = {**self._headers, "content-type": "application/json", "content-length": str(len(body))}

        async def receive() -> MutableMapping[str, Any]:
            return given.pop() if given else await self._receive()

        async def send(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            else:
                pieces.append(message.get("body", b""))

        scope = {"type": "http", "method": method, "path": path, "query_string": b""}
        scope["headers"] = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        await self._gateway(scope, receive, send)
        if not status:
            raise ClientGone
        return status, object_of(b"".join(pieces).decode("utf-8", "replace")) or {}


def _fault(arguments: JsonObject) -> str:
    """What is wrong with the arguments of ask_model, or ""."""
    schema = TOOLS[0]["inputSchema"]["properties"]
    unknown = [name for name in arguments if name not in schema]
    if unknown:
        return f"Found the unknown argument {unknown[0][:100]!r}; expected {', '.join(schema)}."
    prompt, tokens = arguments.get("prompt"), arguments.get("max_tokens", 1)
    if not isinstance(prompt, str) or not prompt.strip():
        return "Expected a prompt: a text that is not empty."
    if not all(isinstance(arguments.get(name, ""), str) for name in ("model", "system")):
        return "Expected texts for model and system."
    if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 1:
        return "Expected a whole number above 0 for max_tokens."
    return ""


def _answer_text(message: JsonObject) -> str:
    """The text of an answer. A call that the gateway returns to its client cannot be made here."""
    text = message.get("content") or message.get("refusal") or ""
    calls = message.get("tool_calls")
    if isinstance(calls, list) and calls:
        names = ", ".join(str(call.get("function", {}).get("name")) for call in calls if isinstance(call, dict))
        text = f"{text}\n[The model wants to call {names}, which needs an approval that MCP clients cannot give here.]"
    return str(text).strip() or "(no text)"


def _error_text(status: int, answer: JsonObject) -> str:
    error = answer.get("error")
    message = error.get("message") if isinstance(error, dict) else None
    return f"The gateway answered with status {status}: {message or 'no message'}"


def _result(text: str, *, is_error: bool = False) -> JsonObject:
    return {"content": [{"type": "text", "text": text}], "isError": is_error}
