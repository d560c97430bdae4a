"""Calls that were written into text and cannot be read: they carry what the model wrote, to be corrected or told as it stands."""

from __future__ import annotations

from msgspec.structs import replace

from ..types import ToolCall

_KEY = "toolwire"  # no dialect has this name, so nobody writes it


def with_span(call: ToolCall, text: str, why: str) -> ToolCall:
    return replace(call, extra={**call.extra, _KEY: {"text": text, "why": why}})


def span_of(call: ToolCall) -> str:
    """All that the model wrote for it, tags included; "" for any other call."""
    return str(call.extra[_KEY]["text"]) if _KEY in call.extra else ""


def why_of(call: ToolCall) -> str:
    return str(call.extra[_KEY]["why"]) if _KEY in call.extra else ""


def readable(call: ToolCall) -> ToolCall:
    """The same call, now that it has been read after all."""
    if _KEY not in call.extra:
        return call
    return replace(call, extra={key: value for key, value in call.extra.items() if key != _KEY})
