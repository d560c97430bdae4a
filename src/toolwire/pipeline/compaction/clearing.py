"""Edits that clear parts of a conversation, for back ends that have none: old results of tools, and old reasoning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ...types import JsonObject, Loss, Message, Part, Reasoning, Text, ToolCall, ToolResult
from .history import size_of, tokens_of

_CLEARED = "[cleared to save context]"
_TRIGGER = 100_000  # tokens
_KEPT_USES = 3
_KEPT_TURNS = 1


class Cleared(Struct, frozen=True):
    messages: tuple[Message, ...]
    losses: tuple[Loss, ...] = ()


def clear(messages: tuple[Message, ...], edits: Sequence[JsonObject]) -> Cleared:
    """Edits that this gateway does not know are reported."""
    losses: list[Loss] = []
    for edit in edits:
        kind = str(edit.get("type"))
        before = messages
        if kind.startswith("clear_thinking"):
            messages = _without_thinking(messages, edit)
        elif kind.startswith("clear_tool_uses"):
            messages = _without_results(messages, edit)
        else:
            losses.append(Loss("context_management", "context_management", "the gateway does not know this edit"))
        if messages is not before:
            losses.append(Loss("context_management", "context_management", f"the gateway has applied {kind[:40]}"))
    return Cleared(messages, tuple(losses))


def _without_thinking(messages: tuple[Message, ...], edit: JsonObject) -> tuple[Message, ...]:
    kept = edit.get("keep")
    if kept == "all":
        return messages
    count = _value(kept, _KEPT_TURNS)
    thinking = [place for place, message in enumerate(messages) if any(map(_is_thought, message.parts))]
    cleared = set(thinking[: max(0, len(thinking) - count)])
    if not cleared:
        return messages
    return tuple(
        message.with_parts(tuple([part for part in message.parts if not _is_thought(part)]))
        if place in cleared
        else message
        for place, message in enumerate(messages)
    )


def _without_results(messages: tuple[Message, ...], edit: JsonObject) -> tuple[Message, ...]:
    calls = [part for message in messages for part in message.parts if isinstance(part, ToolCall)]
    if not _is_triggered(messages, calls, edit.get("trigger")):
        return messages
    kept, excluded = _value(edit.get("keep"), _KEPT_USES), edit.get("exclude_tools") or []
    names = {call.id: call.name for call in calls[: max(0, len(calls) - kept)] if call.name not in excluded}
    inputs = edit.get("clear_tool_inputs")
    changed = tuple(
        _changed(message, tuple([_cleared(part, names, inputs) for part in message.parts])) for message in messages
    )
    saved = (sum(map(size_of, messages)) - sum(map(size_of, changed))) // 4
    return changed if saved > max(0, _value(edit.get("clear_at_least"), 0) - 1) else messages


def _changed(message: Message, parts: tuple[Part, ...]) -> Message:
    return message if parts == message.parts else message.with_parts(parts)


def _cleared(part: Part, names: dict[str, str], inputs: Any) -> Part:
    if isinstance(part, ToolResult) and part.call_id in names:
        return replace(part, parts=(Text(text=_CLEARED),))
    if isinstance(part, ToolCall) and part.id in names and part.kind == "function":
        is_meant = inputs is True or (isinstance(inputs, list) and part.name in inputs)
        return replace(part, raw="{}", args={}) if is_meant else part
    return part


def _is_triggered(messages: tuple[Message, ...], calls: list[ToolCall], trigger: Any) -> bool:
    if isinstance(trigger, dict) and trigger.get("type") == "tool_uses":
        return len(calls) > _value(trigger, 0)
    return tokens_of(messages) > _value(trigger, _TRIGGER)


def _value(given: Any, default: int) -> int:
    """The count of {"type": ..., "value": ...}."""
    value = given.get("value") if isinstance(given, dict) else None
    return value if type(value) is int and value >= 0 else default


def _is_thought(part: Part) -> bool:
    return isinstance(part, Reasoning)
