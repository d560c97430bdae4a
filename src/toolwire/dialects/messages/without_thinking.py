"""Anthropic Messages: a request without the thoughts of earlier turns, for a back end that refuses one of them."""

from __future__ import annotations

from typing import Any

from ...types import JsonObject
from ...wire.exact_json import encode, object_of

_THOUGHTS = ("thinking", "redacted_thinking")


def without_thinking(body: bytes) -> bytes | None:
    """The same body without them, None where there is nothing to leave out. Leaving thoughts out is always allowed but in a turn that
    waits for its results: there thinking itself must be off (H075)."""
    top = object_of(body.decode("utf-8", "replace")) or {}
    given = top.get("messages")
    if not isinstance(given, list):
        return None
    messages = [_without(message) for message in given]
    changed: JsonObject = {**top, "messages": messages}
    if messages and _is_waiting(messages[-1]):
        changed = _unthinking(changed)
    return encode(changed) if changed != top else None


def _without(message: Any) -> Any:
    if not isinstance(message, dict) or not isinstance(content := message.get("content"), list):
        return message
    return {**message, "content": [block for block in content if not _is(block, *_THOUGHTS)]}


def _is(block: Any, *kinds: str) -> bool:
    return isinstance(block, dict) and block.get("type") in kinds


def _is_waiting(message: Any) -> bool:
    content = message.get("content") if isinstance(message, dict) else None
    return isinstance(content, list) and any(_is(block, "tool_result") for block in content)


def _unthinking(top: JsonObject) -> JsonObject:
    """Without thinking, and without the wish to clear it away, which is refused where there is none."""
    kept = {key: value for key, value in top.items() if key != "thinking"}
    management = kept.get("context_management")
    if isinstance(management, dict) and isinstance(edits := management.get("edits"), list):
        kept["context_management"] = {**management, "edits": [edit for edit in edits if not _clears(edit)]}
    return kept


def _clears(edit: Any) -> bool:
    return isinstance(edit, dict) and str(edit.get("type")).startswith("clear_thinking")
