"""A client of each dialect: its request with the tools, the calls that it gets, and the report of the gateway."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from typing import Any, NamedTuple

from tests.contract.client_answers import Number, see

from .kinds import TOOLS

_PROMPT = "Book it."


class Received(NamedTuple):
    """calls: (name, arguments), with None for arguments that are no JSON. report: of the gateway, "" if there is none."""

    calls: list[tuple[str, Any]]
    report: str


def ask(connection: HTTPConnection, client: str, model: str, *, stream: bool) -> Received:
    path, body = _request(client, model)
    if client == "gemini":
        path += "streamGenerateContent?alt=sse" if stream else "generateContent"
    else:
        body["stream"] = stream
    connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
    answer = connection.getresponse()
    content = answer.read()
    assert answer.status == 200, content
    calls = _ollama_calls(content) if client == "ollama" else _calls(client, content, stream)
    return Received(calls, _report(client, content) if stream else answer.getheader("x-toolwire-loss") or "")


def _request(client: str, model: str) -> tuple[str, dict[str, Any]]:
    messages = [{"role": "user", "content": _PROMPT}]
    functions = [{"name": name, "parameters": schema} for name, schema in TOOLS.items()]
    if client in ("chat", "ollama"):
        path = "/v1/chat/completions" if client == "chat" else "/api/chat"
        tools = [{"type": "function", "function": function} for function in functions]
        return path, {"model": model, "messages": messages, "tools": tools}
    if client == "responses":
        tools = [{"type": "function", "strict": False, **function} for function in functions]
        return "/v1/responses", {"model": model, "store": False, "input": _PROMPT, "tools": tools}
    if client == "messages":
        tools = [{"name": name, "input_schema": schema} for name, schema in TOOLS.items()]
        return "/v1/messages", {"model": model, "max_tokens": 99, "messages": messages, "tools": tools}
    declared = [{"name": name, "parametersJsonSchema": schema} for name, schema in TOOLS.items()]
    contents = [{"role": "user", "parts": [{"text": _PROMPT}]}]
    return f"/v1beta/models/{model}:", {"contents": contents, "tools": [{"functionDeclarations": declared}]}


def _calls(client: str, content: bytes, stream: bool) -> list[tuple[str, Any]]:
    return [(call.name, _plain(call.arguments)) for call in see(client, content, stream=stream).calls]


def _plain(value: Any) -> Any:
    if isinstance(value, Number):
        return float(value.value)
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _ollama_calls(content: bytes) -> list[tuple[str, Any]]:
    messages = [json.loads(line)["message"] for line in content.splitlines()]
    made = [call["function"] for message in messages for call in message.get("tool_calls", ())]
    return [(function["name"], function["arguments"]) for function in made]


def _report(client: str, content: bytes) -> str:
    if client == "ollama":
        return json.dumps(json.loads(content.splitlines()[-1]).get("toolwire", ""))
    frames = content.decode().replace("\r", "").split("\n\n")[:-1]
    if client == "gemini":
        return json.dumps(json.loads(frames[-1].removeprefix("data: ")).get("toolwire", ""))
    comments = [frame.removeprefix(": toolwire ") for frame in frames if frame.startswith(": toolwire ")]
    assert len(comments) <= 1
    return "".join(comments)
