"""VS Code bridge: usage, for which VS Code has no member. Copilot sends it in a last data part, and so does the gateway."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error

from ....types import JsonObject, Usage
from ....wire.exact_json import encode, object_of
from ....wire.fields import count_of
from .shapes import DataPart

MIME = "usage"
MIMES = frozenset({MIME, "token_usage"})  # the second is the older name
_SENT_SINCE = (0, 67)  # of Copilot Chat, where it was seen
_VERSION = re.compile(r"(\d{1,6})\.(\d{1,6})", re.ASCII)
_MAX_DATA = 100_000  # characters of base64


def sends_usage(vendor: str, copilot: str, *, has_seen: bool = False) -> bool:
    """Whether a complete answer certainly ends with its usage: for Copilot's own models from a version on, and for a model that was
    seen to send it (has_seen)."""
    found = _VERSION.match(copilot)
    is_new = found is not None and (int(found[1]), int(found[2])) >= _SENT_SINCE
    return has_seen or (vendor == "copilot" and is_new)


def usage_in(part: DataPart) -> Usage | None:
    """None if it cannot be decoded."""
    try:
        text = b64decode(part.data[:_MAX_DATA], validate=True).decode()
    except (Base64Error, ValueError):
        return None
    value = object_of(text)
    if value is None or not any(key in value for key in ("prompt_tokens", "completion_tokens")):
        return None
    cached = _inside(value, "prompt_tokens_details", "cached_tokens")
    written = _inside(value, "prompt_tokens_details", "cache_creation_input_tokens")
    output = count_of(value.get("completion_tokens"))
    reasoning = _inside(value, "completion_tokens_details", "reasoning_tokens")
    return Usage(
        input=max(count_of(value.get("prompt_tokens")), cached + written),
        output=output,
        cached=cached,
        cache_written=written,
        reasoning=min(output, reasoning),
    )


def usage_part(usage: Usage) -> DataPart:
    """As Copilot writes it."""
    value: JsonObject = {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {
            "cached_tokens": usage.cached,
            "cache_creation_input_tokens": usage.cache_written,
        },
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }
    return DataPart(mime=MIME, data=b64encode(encode(value)).decode())


def _inside(value: JsonObject, owner: str, key: str) -> int:
    details = value.get(owner)
    return count_of(details.get(key)) if isinstance(details, dict) else 0
