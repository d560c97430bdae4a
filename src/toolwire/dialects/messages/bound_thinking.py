"""Anthropic Messages: thinking that is bound to everything before it, and choices that newer models refuse.

A thinking block of a newer model is valid only behind the same `system`, `tools`, messages and blocks that it was made behind. The gateway
writes the same prefix in every request of a conversation. Where a client has changed it, the provider can drop what that voids.
"""

from __future__ import annotations

from ...types import JsonObject
from ...wire.exact_json import encode, object_of

_BEHAVIOR = "prefix_mismatch_behavior"
_FORCED = ("any", "tool")


def with_dropped_blocks(body: bytes) -> bytes | None:
    """The same request, in which the provider drops thinking that is no longer valid. None if the client has decided what happens, or
    has switched thinking off."""
    top = _object(body)
    thinking = top.get("thinking")
    thinking = {"type": "adaptive"} if thinking is None else thinking
    if not isinstance(thinking, dict) or thinking.get("type") not in ("adaptive", "enabled"):
        return None
    binding = thinking.get("block_binding")
    binding = {} if binding is None else binding
    if not isinstance(binding, dict) or binding.get(_BEHAVIOR) is not None:
        return None
    return encode({**top, "thinking": {**thinking, "block_binding": {**binding, _BEHAVIOR: "drop_block"}}})


def with_free_choice(body: bytes) -> bytes | None:
    """The same request without a forced call; None if none is forced."""
    top = _object(body)
    choice = top.get("tool_choice")
    if not isinstance(choice, dict) or (free := free_choice(choice)) is None:
        return None
    return encode({**top, "tool_choice": free})


def free_choice(choice: JsonObject) -> JsonObject | None:
    """The choice of the model itself, with the other members of a forced one; None if it forces nothing."""
    if choice.get("type") not in _FORCED:
        return None
    return {**{key: value for key, value in choice.items() if key != "name"}, "type": "auto"}


def _object(body: bytes) -> JsonObject:
    return object_of(body.decode("utf-8", "replace")) or {}
