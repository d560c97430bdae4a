"""Gemini: a request without the signatures of earlier turns, for a back end that refuses one of them."""

from __future__ import annotations

from typing import Any

from ...types import JsonObject
from ...wire.exact_json import encode, object_of
from .shapes import SIGNATURE, UNSIGNED, camel


def without_signatures(body: bytes) -> bytes | None:
    """The same body without them, None where it has none that could be left out. The first call of each turn is marked by the
    provider's own word for a call that has no signature."""
    top = object_of(body.decode("utf-8", "replace")) or {}
    given = top.get("contents")
    if not isinstance(given, list):
        return None
    contents = [_without(content) for content in given]
    return None if contents == given else encode({**top, "contents": contents})


def _without(content: Any) -> Any:
    if not isinstance(content, dict) or not isinstance(parts := content.get("parts"), list):
        return content
    written = [_unsigned(part) for part in parts]
    if content.get("role") == "model":
        first = next((part for part in written if isinstance(part, dict) and "functionCall" in part), None)
        if first is not None:
            first[SIGNATURE] = UNSIGNED
    kept = [part for part in written if part != {"text": ""}]
    return {**content, "parts": kept}


def _unsigned(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    members: JsonObject = camel(part)
    return {key: value for key, value in members.items() if key != SIGNATURE}
