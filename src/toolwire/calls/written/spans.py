"""What is known of calls that were written into text, beside the calls themselves, for whoever judges them.

One that cannot be read carries what the model wrote, to be corrected or told as it stands. One whose end was not there may lack more than
its end, if the whole answer was cut.
"""

from __future__ import annotations

from msgspec.structs import replace

from ...types import ToolCall

_KEY = "toolwire"  # no dialect has this name, so nobody writes it


def with_span(call: ToolCall, text: str, why: str) -> ToolCall:
    return replace(call, extra={**call.extra, _KEY: {"text": text, "why": why}})


def without_end(call: ToolCall) -> ToolCall:
    return replace(call, extra={**call.extra, _KEY: {"is_open": True}})


def span_of(call: ToolCall) -> str:
    """All that the model wrote for it, tags included; "" for any other call."""
    return str(call.extra.get(_KEY, {}).get("text", ""))


def why_of(call: ToolCall) -> str:
    return str(call.extra.get(_KEY, {}).get("why", ""))


def is_open(call: ToolCall) -> bool:
    """Whether more of it may have been to come."""
    return bool(call.extra.get(_KEY, {}).get("is_open", False))


def readable(call: ToolCall) -> ToolCall:
    """The same call, now that it has been judged and is good."""
    if _KEY not in call.extra:
        return call
    return replace(call, extra={key: value for key, value in call.extra.items() if key != _KEY})
