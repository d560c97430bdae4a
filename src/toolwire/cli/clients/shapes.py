"""One small request as each client sends it, for `toolwire connect CLIENT --check`.

Recorded from the programs (versions in docs/clients.md): path, way of giving the key, headers that mean something,
members beside the conversation, and whether it streams. The conversation and the tool are always the same.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from .client import PATHS

QUESTION = "What is the weather in Paris? Use the tool get_weather."
SYSTEM = "You are a helpful assistant. Use the tools you have."
TOOL = "get_weather"
RESULT = "18 degrees and rain"
_DESCRIPTION = "Weather of a city"
_SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "Name of the city"}},
    "required": ["city"],
    "additionalProperties": False,
}
_MARK = "toolwire-check"


class Shape(Struct, frozen=True, kw_only=True):
    """What is special to a client; the rest follows from the dialect."""

    auth: Literal["bearer", "x-api-key"] = "bearer"
    headers: dict[str, str] = {}
    members: dict[str, Any] = {}
    tool_members: dict[str, Any] = {}
    query: str = ""
    is_streaming: bool = True
    has_tools: bool = True
    has_developer: bool = False  # the prompt is a message of its own, not in instructions


_USAGE = {"stream_options": {"include_usage": True}}
_VERSION = {"anthropic-version": "2023-06-01"}
_NEW_VERSION = {"anthropic-version": "2026-10-21"}
_THINKING = {"anthropic-beta": "interleaved-thinking-2025-05-14"}
_SESSION = {"x-session-affinity": _MARK, "x-session-id": _MARK}
_STATELESS = {"store": False, "include": ["reasoning.encrypted_content"]}
_STRICT = {"strict": True}
_LOOSE = {"strict": False}

SHAPES: dict[tuple[str, str], Shape] = {
    ("opencode", "chat"): Shape(headers=_SESSION, members={"max_tokens": 8000, "tool_choice": "auto", **_USAGE}),
    ("opencode", "responses"): Shape(
        headers=_SESSION,
        members={"max_output_tokens": 8000, "store": False, "prompt_cache_key": _MARK, "tool_choice": "auto"},
    ),
    ("opencode", "messages"): Shape(
        auth="x-api-key",
        headers=_SESSION | _VERSION,
        members={"max_tokens": 8000, "tool_choice": {"type": "auto"}},
    ),
    ("codex", "responses"): Shape(
        headers={"accept": "text/event-stream", "originator": "codex_exec", "session-id": _MARK},
        members={
            "tool_choice": "auto",
            "parallel_tool_calls": True,
            "reasoning": {"summary": "auto"},
            "prompt_cache_key": _MARK,
            "client_metadata": {"source": _MARK},
            **_STATELESS,
        },
        tool_members=_LOOSE,
        has_developer=True,
    ),
    ("claude-code", "messages"): Shape(
        auth="x-api-key",
        headers=_VERSION | _THINKING | {"x-app": "cli"},
        query="?beta=true",
        members={
            "max_tokens": 32000,
            "thinking": {"type": "adaptive", "display": "omitted"},
            "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
            "output_config": {"effort": "high"},
            "metadata": {"user_id": _MARK},
        },
    ),
    ("copilot-cli", "chat"): Shape(
        headers={"x-initiator": "user"},
        members={"temperature": 0, "top_p": 0.95, "frequency_penalty": 0, "presence_penalty": 0, **_USAGE},
    ),
    ("copilot-cli", "responses"): Shape(
        headers={"x-initiator": "user"},
        members={"reasoning": {"summary": "auto"}, "parallel_tool_calls": True, **_STATELESS},
        tool_members=_LOOSE,
    ),
    ("copilot-cli", "messages"): Shape(
        auth="x-api-key",
        headers=_VERSION | {"x-initiator": "user"},
        members={"max_tokens": 8192, "temperature": 0},
    ),
    ("vscode", "chat"): Shape(members={"temperature": 0.1, "top_p": 1, "n": 1, **_USAGE}),
    ("vscode", "responses"): Shape(members={"max_output_tokens": 16000, "truncation": "disabled", **_STATELESS}),
    ("vscode", "messages"): Shape(auth="x-api-key", headers=_VERSION | _THINKING, members={"max_tokens": 16000}),
    ("qwen-code", "chat"): Shape(members={"max_tokens": 32000, **_USAGE}),
    ("cline", "chat"): Shape(members={"tool_choice": "auto", **_USAGE}),
    ("continue", "chat"): Shape(members=_USAGE),
    ("continue", "messages"): Shape(
        auth="x-api-key",
        headers=_VERSION | {"anthropic-beta": "prompt-caching-2024-07-31"},
        members={"max_tokens": 32000},
    ),
    ("aider", "chat"): Shape(members={"temperature": 0}, has_tools=False),
    ("obsidian-copilot", "chat"): Shape(headers={"origin": "app://obsidian.md"}),
    ("obsidian-copilot", "responses"): Shape(
        headers={"origin": "app://obsidian.md"}, members={"text": {}}, tool_members={"strict": None}
    ),
    ("pi", "chat"): Shape(members={"store": False, "max_completion_tokens": 16384, **_USAGE}, tool_members=_LOOSE),
    ("pi", "responses"): Shape(members={"store": False, "prompt_cache_key": _MARK}, tool_members=_LOOSE),
    ("pi", "messages"): Shape(
        auth="x-api-key",
        headers=_VERSION | _THINKING,
        members={"max_tokens": 16384},
        tool_members={"eager_input_streaming": True},
    ),
    ("openai-python", "chat"): Shape(is_streaming=False),
    ("openai-python", "responses"): Shape(members={"store": False}, tool_members=_STRICT, is_streaming=False),
    ("openai-node", "chat"): Shape(is_streaming=False),
    ("openai-node", "responses"): Shape(members={"store": False}, tool_members=_STRICT, is_streaming=False),
    ("anthropic-python", "messages"): Shape(headers=_NEW_VERSION, members={"max_tokens": 1000}, is_streaming=False),
    ("anthropic-node", "messages"): Shape(headers=_NEW_VERSION, members={"max_tokens": 1000}, is_streaming=False),
    ("ai-sdk", "chat"): Shape(members={"tool_choice": "auto", **_USAGE}),
    ("ai-sdk", "responses"): Shape(members={"tool_choice": "auto"}, tool_members=_LOOSE),
    ("ai-sdk", "messages"): Shape(
        auth="x-api-key",
        headers=_VERSION,
        members={"max_tokens": 4096, "tool_choice": {"type": "auto"}},
        tool_members={"eager_input_streaming": True},
    ),
    ("langchain", "messages"): Shape(headers=_NEW_VERSION, members={"max_tokens": 1000}),
    ("langchain-js", "responses"): Shape(members={"text": {}}),
    ("langchain-js", "chat"): Shape(members=_USAGE),
    ("langchain-js", "messages"): Shape(auth="x-api-key", headers=_VERSION, members={"max_tokens": 1000}),
    ("openai-agents", "responses"): Shape(members={"include": []}, tool_members=_STRICT),
    ("pydantic-ai", "chat"): Shape(members={"tool_choice": "auto", **_USAGE}, tool_members=_STRICT),
    ("pydantic-ai", "responses"): Shape(members={"tool_choice": "auto"}, tool_members=_STRICT),
    ("pydantic-ai", "messages"): Shape(
        headers=_NEW_VERSION, members={"max_tokens": 16384, "tool_choice": {"type": "auto"}}
    ),
    ("litellm", "chat"): Shape(members={"max_tokens": 1000}),
    ("litellm", "messages"): Shape(
        auth="x-api-key", headers=_VERSION, members={"max_tokens": 1000}, tool_members={"type": "custom"}
    ),
    ("autogen", "chat"): Shape(members={"tool_choice": "auto"}),
    ("semantic-kernel", "chat"): Shape(members={"tool_choice": "auto", **_USAGE}),
    ("crewai", "chat"): Shape(members=_USAGE),
    ("smolagents", "chat"): Shape(
        members={"tool_choice": "required", "stop": ["Observation:", "Calling tools:"], **_USAGE}
    ),
}


def shape_of(client: str, dialect: str) -> Shape:
    """What was recorded, else what every client of the dialect sends."""
    plain = Shape(headers=_VERSION, members={"max_tokens": 1000}) if dialect == "messages" else Shape()
    return SHAPES.get((client, dialect), plain)


def path_of(shape: Shape, dialect: str) -> str:
    return PATHS[dialect] + shape.query


def body_of(shape: Shape, dialect: str, model: str) -> dict[str, Any]:
    """The request, in the form this client gives it."""
    body = {
        "model": model,
        **_conversation(dialect, shape.has_developer),
        **shape.members,
        "stream": shape.is_streaming,
    }
    return body | {"tools": [_tool(dialect) | _nested(dialect, shape.tool_members)]} if shape.has_tools else body


def _conversation(dialect: str, has_developer: bool) -> dict[str, Any]:
    question = {"role": "user", "content": QUESTION}
    if dialect == "messages":
        return {"system": SYSTEM, "messages": [question]}
    if dialect == "chat":
        return {"messages": [{"role": "system", "content": SYSTEM}, question]}
    if has_developer:
        return {"input": [_item("developer", SYSTEM), _item("user", QUESTION)]}
    return {"instructions": SYSTEM, "input": [_item("user", QUESTION)]}


def _item(role: str, text: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


def _tool(dialect: str) -> dict[str, Any]:
    if dialect == "messages":
        return {"name": TOOL, "description": _DESCRIPTION, "input_schema": _SCHEMA}
    function = {"name": TOOL, "description": _DESCRIPTION, "parameters": _SCHEMA}
    return {"type": "function", "function": function} if dialect == "chat" else {"type": "function", **function}


def _nested(dialect: str, members: dict[str, Any]) -> dict[str, Any]:
    """In the chat dialect what belongs to a function stands inside it."""
    return {"function": _tool(dialect)["function"] | members} if dialect == "chat" and members else members
