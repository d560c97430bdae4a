"""Anthropic Messages: compaction. The request for a summary, the edits that trigger one or clear parts, and the block with the summary."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...errors import BadRequest
from ...types import Compaction, Json, JsonObject, Message, Opaque, Tool
from ...wire.fields import flag_or_none, list_or_none, need_object, need_text, object_or_none, text_or_none, wrong
from .shapes import NAME

members = frozenset({"compaction", "context_management"})
replaces_past = True
refuses_open_calls = True
reason = "compaction"
_MARK = b"compaction"
_COMPACT = "compact_"
_DEFAULT_TRIGGER = 150_000


def compaction_in(top: JsonObject, body: bytes) -> Compaction | None:
    given, management = top.get("compaction"), top.get("context_management")
    has_items = _MARK in body and has_summaries(top.get("messages"))
    if given is None and management is None:
        return Compaction(has_items=True) if has_items else None
    if given is not None:
        return _summarize(top, has_items)
    threshold: int | None = None
    pauses, instructions, edits = False, "", list[JsonObject]()
    for index, edit in enumerate(list_or_none(need_object(management, "context_management"), "edits") or []):
        where = f"context_management.edits[{index}]"
        kind = need_text(need_object(edit, where), "type", where)
        if kind.startswith(_COMPACT):
            threshold = _trigger(edit, where)
            pauses = flag_or_none(edit, "pause_after_compaction", where) or False
            instructions = (text_or_none(edit, "instructions", where) or "").strip()
        else:  # one that clears, or one that only a newer provider knows
            edits.append(edit)
    if not (has_items or threshold or edits):
        return None
    return Compaction(
        has_items=has_items, threshold=threshold, pauses=pauses, instructions=instructions, edits=tuple(edits)
    )


def _summarize(top: JsonObject, has_items: bool) -> Compaction:
    if top.get("context_management") is not None:
        raise BadRequest("found it together with context_management; expected one of the two.", where="compaction")
    given = need_object(top["compaction"], "compaction")
    kind = need_text(given, "type", "compaction")
    if kind != "summarize":  # which only a newer provider knows
        return Compaction(has_items=has_items, edits=(given,))
    instructions = (text_or_none(given, "instructions", "compaction") or "").strip()
    return Compaction(has_items=has_items, is_now=True, instructions=instructions)


def _trigger(edit: JsonObject, where: str) -> int:
    given = object_or_none(edit, "trigger", where)
    value = given.get("value") if given is not None else _DEFAULT_TRIGGER
    if type(value) is not int or value < 1:
        raise wrong(f"{where}.trigger.value", value, "a whole number of tokens")
    return value


def has_summaries(messages: Json) -> bool:
    return isinstance(messages, list) and any(_has_summary(message) for message in messages)


def _has_summary(message: Json) -> bool:
    content = message.get("content") if isinstance(message, dict) else None
    return isinstance(content, list) and any(
        isinstance(block, dict) and block.get("type") == "compaction" for block in content
    )


def part(summary: str, sealed: str, new_id: Callable[[str], str]) -> Opaque:
    return Opaque(dialect=NAME, value={"type": "compaction", "content": summary, "encrypted_content": sealed})


def management(edits: Sequence[JsonObject]) -> Json:
    return {"edits": list(edits)}


def notes(part: Opaque) -> list[Opaque]:
    return []


def found_tools(messages: Sequence[Message]) -> tuple[Tool, ...]:
    """None: clients send the tools that they have found."""
    return ()


def retained(messages: Sequence[Message], new_id: Callable[[str], str]) -> list[Opaque]:
    return []
