"""OpenAI Responses: a request without the reasoning of earlier turns, or without the wish for its proof, where that was refused."""

from __future__ import annotations

from typing import Any

from ...types import JsonObject
from ...wire.exact_json import encode, object_of
from .items_in import is_reference

_REASONING_ID = "rs_"
_PROOF = "reasoning.encrypted_content"


def without_reasoning(body: bytes) -> bytes | None:
    """The same body without it, None where it holds none. Ids of the other items go too: who finds the id of a call or a
    message looks for the reasoning that led to it."""
    top = object_of(body.decode("utf-8", "replace")) or {}
    items = top.get("input")
    if not isinstance(items, list):
        return None
    kept = [_without_id(item) for item in items if not _is_reasoning(item)]
    return encode({**top, "input": kept}) if len(kept) < len(items) else None


def without_proof(body: bytes) -> bytes | None:
    """The same body, asking for no encrypted reasoning; None where it asks for none."""
    top = object_of(body.decode("utf-8", "replace")) or {}
    include = top.get("include")
    if not isinstance(include, list) or _PROOF not in include:
        return None
    return encode({**top, "include": [one for one in include if one != _PROOF]})


def _is_reasoning(item: Any) -> bool:
    if is_reference(item):
        return str(item.get("id")).startswith(_REASONING_ID)
    return isinstance(item, dict) and item.get("type") == "reasoning"


def _without_id(item: Any) -> Any:
    if not isinstance(item, dict) or is_reference(item):
        return item
    rest: JsonObject = {key: value for key, value in item.items() if key != "id"}
    return rest
