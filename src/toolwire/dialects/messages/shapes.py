"""Anthropic Messages: what both directions share."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, json

from ...types import Citation, JsonObject, Reason, Usage
from ...wire.fields import count_of, text_in

NAME = "messages"
MAX_ID = 64

REASONS: dict[str, Reason] = {
    "end_turn": "stop",
    "max_tokens": "length",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "pause_turn": "paused",
    "refusal": "refused",
    "model_context_window_exceeded": "length",
}
# Other values that servers of this dialect send, in any case; None: the answer failed.
_OTHER_REASONS: dict[str, Reason | None] = {
    "stop": "stop",
    "length": "length",
    "max_output_tokens": "length",
    "max_tokens": "length",
    "tool_calls": "tool_calls",
    "tool_use": "tool_calls",
    "content_filter": "refused",
    "safety": "refused",
    "sensitive": "refused",
    "error": None,
    "abort": None,
    "cancelled": None,
}


class Piece(Struct, forbid_unknown_fields=True):
    """The delta of a content block, as documented."""

    type: str
    text: str | None = None
    partial_json: str | None = None
    thinking: str | None = None
    signature: str | None = None


class BlockDelta(Struct, forbid_unknown_fields=True):
    type: str
    index: int
    delta: Piece


read_delta = json.Decoder(BlockDelta).decode


def reason_of(raw: object) -> Reason | None:
    """The meaning of a stop reason; None: the answer failed."""
    if not isinstance(raw, str):
        return "stop"
    word = raw.lower()
    known = REASONS.get(word)
    return known if known is not None else _OTHER_REASONS.get(word, "other")


def usage_in(value: JsonObject) -> Usage:
    read, written = count_of(value.get("cache_read_input_tokens")), count_of(value.get("cache_creation_input_tokens"))
    details = value.get("output_tokens_details")
    return Usage(
        input=count_of(value.get("input_tokens")) + read + written,
        output=count_of(value.get("output_tokens")),
        cached=read,
        cache_written=written,
        reasoning=count_of(details.get("thinking_tokens")) if isinstance(details, dict) else 0,
        extra={NAME: value},
    )


def citation_in(value: Any) -> Citation | None:
    if not isinstance(value, dict):
        return None
    return Citation(
        url=text_in(value, "url"),
        title=text_in(value, "title") or text_in(value, "document_title"),
        quote=text_in(value, "cited_text"),
        extra={NAME: value},
    )
