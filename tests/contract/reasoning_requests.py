"""Requests of each dialect whose history has reasoning, and the calls of their answers."""

from __future__ import annotations

import json
from typing import Any

KINDS: dict[str, Any] = {"chat": "openai-chat", "responses": "openai-responses", "messages": "anthropic"}


PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}


USER = "Look it up."


def request(client: str, model: str, *exchange: str) -> dict[str, Any]:
    """The first question, or with (id, arguments) the second, from a client that keeps calls and no reasoning."""
    schema = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
    if client == "chat":
        messages: list[Any] = [{"role": "user", "content": USER}]
        if exchange:
            call = {"id": exchange[0], "type": "function", "function": {"name": "look", "arguments": exchange[1]}}
            messages.append({"role": "assistant", "content": "One moment.", "tool_calls": [call]})
            messages.append({"role": "tool", "tool_call_id": exchange[0], "content": "found"})
        return {
            "model": model,
            "messages": messages,
            "tools": [{"type": "function", "function": {"name": "look", "parameters": schema}}],
        }
    if client == "responses":
        items: list[Any] = [{"role": "user", "content": USER}]
        if exchange:
            items.append({"type": "function_call", "call_id": exchange[0], "name": "look", "arguments": exchange[1]})
            items.append({"type": "function_call_output", "call_id": exchange[0], "output": "found"})
        tool = {"type": "function", "name": "look", "parameters": schema}
        return {"model": model, "input": items, "tools": [tool], "store": False}
    messages = [{"role": "user", "content": USER}]
    if exchange:
        use = {"type": "tool_use", "id": exchange[0], "name": "look", "input": json.loads(exchange[1])}
        messages.append({"role": "assistant", "content": [{"type": "text", "text": "One moment."}, use]})
        result = {"type": "tool_result", "tool_use_id": exchange[0], "content": "found"}
        messages.append({"role": "user", "content": [result]})
    tools = [{"name": "look", "input_schema": schema}]
    return {"model": model, "max_tokens": 99, "messages": messages, "tools": tools}


def call_in(client: str, value: Any) -> tuple[str, str]:
    if client == "chat":
        call = value["choices"][0]["message"]["tool_calls"][0]
        return call["id"], call["function"]["arguments"]
    if client == "responses":
        call = next(item for item in value["output"] if item["type"] == "function_call")
        return call["call_id"], call["arguments"]
    call = next(block for block in value["content"] if block["type"] == "tool_use")
    return call["id"], json.dumps(call["input"])
