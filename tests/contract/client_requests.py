"""The same conversation in each dialect, as a client of it sends it."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from typing import Any, NamedTuple

Body = dict[str, Any]

PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
DIALECTS = tuple(PATHS)
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
    build = {"chat": _chat, "responses": _responses, "messages": _messages}[dialect]
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
    content = json.dumps(body).replace(json.dumps(_INPUT), exchange.arguments if exchange is not None else "")
    connection.request("POST", PATHS[dialect], content.encode(), headers)
    answer = connection.getresponse()
    return Reply(answer.status, answer.headers.get("content-type", ""), answer.read())


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
