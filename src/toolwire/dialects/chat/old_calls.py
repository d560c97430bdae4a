"""Chat Completions: calls of clients older than tools, {"function_call": {...}} and results with the role "function".

They have no ids: a result follows its call at once and has its name. A conversation that is regular in this form, in a request
that declares functions, stays as it is. Otherwise it is read as tool calls, which every server accepts.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from msgspec.structs import replace

from ...types import Message, Part, ToolCall, ToolResult


def has_old_calls(items: list[Any]) -> bool:
    """Whether all calls and results are of the old form, each call with its result."""
    waiting: Any = None
    for item in items:
        if not isinstance(item, dict) or item.get("tool_calls") or item.get("role") == "tool":
            return False
        if (item.get("role") == "function") != (waiting is not None):
            return False
        if waiting is not None:
            if item.get("name") != waiting:
                return False
            waiting = None
        elif (call := item.get("function_call")) is not None:
            waiting = call.get("name") if isinstance(call, dict) and isinstance(call.get("arguments"), str) else None
            if not isinstance(waiting, str) or not waiting:
                return False
    return waiting is None


def with_own_ids(messages: list[Message]) -> list[Message]:
    """With an id of its own for each call of a function that is called again, and for its result."""
    counts: Counter[str] = Counter()
    return [replace(message, parts=tuple(_named(part, counts) for part in message.parts)) for message in messages]


def _named(part: Part, counts: Counter[str]) -> Part:
    if isinstance(part, ToolCall):
        counts[part.name] += 1
        return replace(part, id=_id(part.name, counts))
    return replace(part, call_id=_id(part.name, counts)) if isinstance(part, ToolResult) else part


def _id(name: str, counts: Counter[str]) -> str:
    return f"{name}_{counts[name]}" if counts[name] > 1 else name
