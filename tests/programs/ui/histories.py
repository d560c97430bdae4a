"""One conversation with a call and its result, as a request of each dialect."""

from __future__ import annotations

from typing import Any

ASK = "What is the weather in Oslo?"
_USER = {"role": "user", "content": ASK}
_GIVEN = {"city": "Oslo"}
_FUNCTION = {"name": "get_weather", "arguments": '{"city": "Oslo"}'}
_ANSWER = {"id": "c1", "name": "get_weather", "response": {"result": "21 degrees"}}

CHAT = [
    _USER,
    {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": _FUNCTION}]},
    {"role": "tool", "tool_call_id": "c1", "content": "21 degrees"},
]
RESPONSES = [
    _USER,
    {"type": "function_call", "call_id": "c1", **_FUNCTION},
    {"type": "function_call_output", "call_id": "c1", "output": "21 degrees"},
]
MESSAGES = [
    _USER,
    {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "get_weather", "input": _GIVEN}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "21 degrees"}]},
]
GEMINI = [
    {"role": "user", "parts": [{"text": ASK}]},
    {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "get_weather", "args": _GIVEN}}]},
    {"role": "user", "parts": [{"functionResponse": _ANSWER}]},
]
INTERACTIONS = [
    {"type": "user_input", "content": [{"type": "text", "text": ASK}]},
    {"type": "function_call", "id": "c1", "name": "get_weather", "arguments": _GIVEN},
    {"type": "function_result", "call_id": "c1", "name": "get_weather", "result": "21 degrees"},
]
HISTORIES: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": ("/v1/chat/completions", {"messages": CHAT}),
    "responses": ("/v1/responses", {"input": RESPONSES}),
    "messages": ("/v1/messages", {"max_tokens": 99, "messages": MESSAGES}),
    "gemini": ("/v1beta/models/local/history:generateContent", {"contents": GEMINI}),
    "interactions": ("/v1beta/interactions", {"input": INTERACTIONS}),
}
