"""The same conversation in each dialect, as a client of it sends it."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from typing import Any, NamedTuple

Body = dict[str, Any]

# Gemini has the model and the way of answering in its path: see addressed().
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
DIALECTS = (*PATHS, "gemini")
TOOLS: dict[str, Body] = {
    "get_weather": {
        "type": "object",
        "properties": {"location": {"type": "string"}, "days": {"type": "integer", "minimum": 1}},
        "required": ["location"],
    },
    "get_time": {"type": "object", "properties": {}},
}


# Placeholder for arguments that are an object in the request: the exact text is inserted there.
_INPUT = "the arguments of the past call"


class Exchange(NamedTuple):
    """A call of the model and its result: (id, name, arguments as JSON, result)."""

    call_id: str
    name: str
    arguments: str
    result: str


class Reply(NamedTuple):
    status: int
    content_type: str
    body: bytes


def request_for(
    dialect: str, model: str, prompt: str, *, stream: bool, exchange: Exchange | None = None, usage: bool = False
) -> Body:
    build = {"chat": _chat, "responses": _responses, "messages": _messages, "gemini": _gemini}[dialect]
    body = build(prompt, exchange) | {"model": model}
    if stream:
        body["stream"] = True
    if stream and usage and dialect == "chat":
        body["stream_options"] = {"include_usage": True}
    return body


def ask(connection: HTTPConnection, dialect: str, key: str, body: Body, exchange: Exchange | None = None) -> Reply:
    headers = {"content-type": "application/json"}
    if dialect == "messages":
        headers |= {"x-api-key": key, "anthropic-version": "2023-06-01"}
    else:
        headers["authorization"] = f"Bearer {key}"
    path, rest = addressed(dialect, body)
    content = json.dumps(rest).replace(json.dumps(_INPUT), exchange.arguments if exchange is not None else "")
    connection.request("POST", path, content.encode(), headers)
    answer = connection.getresponse()
    return Reply(answer.status, answer.headers.get("content-type", ""), answer.read())


def addressed(dialect: str, body: Body) -> tuple[str, Body]:
    """Path and body: for Gemini, the members model and stream are in the path."""
    if dialect != "gemini":
        return PATHS[dialect], body
    rest = {key: value for key, value in body.items() if key not in ("model", "stream")}
    verb = "streamGenerateContent?alt=sse" if body.get("stream") else "generateContent"
    return f"/v1beta/models/{body['model']}:{verb}", rest


def _chat(prompt: str, exchange: Exchange | None) -> Body:
    messages: list[Body] = [{"role": "system", "content": "Be terse."}, {"role": "user", "content": prompt}]
    if exchange is not None:
        function = {"name": exchange.name, "arguments": exchange.arguments}
        call = {"id": exchange.call_id, "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": exchange.call_id, "content": exchange.result})
    functions = [{"name": name, "description": name, "parameters": schema} for name, schema in TOOLS.items()]
    return {"messages": messages, "tools": [{"type": "function", "function": function} for function in functions]}


def _responses(prompt: str, exchange: Exchange | None) -> Body:
    items: list[Body] = [{"type": "message", "role": "user", "content": prompt}]
    if exchange is not None:
        named = {"name": exchange.name, "arguments": exchange.arguments}
        items.append({"type": "function_call", "call_id": exchange.call_id, **named})
        items.append({"type": "function_call_output", "call_id": exchange.call_id, "output": exchange.result})
    tools = [
        {"type": "function", "name": name, "description": name, "parameters": schema, "strict": False}
        for name, schema in TOOLS.items()
    ]
    return {"instructions": "Be terse.", "input": items, "tools": tools}


def _messages(prompt: str, exchange: Exchange | None) -> Body:
    messages: list[Body] = [{"role": "user", "content": prompt}]
    if exchange is not None:
        use = {"type": "tool_use", "id": exchange.call_id, "name": exchange.name, "input": _INPUT}
        result = {"type": "tool_result", "tool_use_id": exchange.call_id, "content": exchange.result}
        messages += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    tools = [{"name": name, "description": name, "input_schema": schema} for name, schema in TOOLS.items()]
    return {"max_tokens": 1024, "system": "Be terse.", "messages": messages, "tools": tools}


def _gemini(prompt: str, exchange: Exchange | None) -> Body:
    contents: list[Body] = [{"role": "user", "parts": [{"text": prompt}]}]
    if exchange is not None:
        call = {"id": exchange.call_id, "name": exchange.name, "args": _INPUT}
        result = {"id": exchange.call_id, "name": exchange.name, "response": {"output": exchange.result}}
        contents.append({"role": "model", "parts": [{"functionCall": call}]})
        contents.append({"role": "user", "parts": [{"functionResponse": result}]})
    functions = [{"name": name, "description": name, "parametersJsonSchema": schema} for name, schema in TOOLS.items()]
    system = {"parts": [{"text": "Be terse."}]}
    return {"contents": contents, "systemInstruction": system, "tools": [{"functionDeclarations": functions}]}
