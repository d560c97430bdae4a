"""Bodies for newer models: thinking that may be dropped, and choices that are not forced."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolwire.dialects.messages.bound_thinking import with_dropped_blocks, with_free_choice


def dropping(**members: Any) -> Any:
    changed = with_dropped_blocks(json.dumps({"model": "m", **members}).encode())
    return None if changed is None else json.loads(changed)["thinking"]


def test_the_provider_may_drop_blocks() -> None:
    binding = {"prefix_mismatch_behavior": "drop_block"}
    assert dropping() == {"type": "adaptive", "block_binding": binding}
    assert dropping(thinking={"type": "enabled", "budget_tokens": 5}) == {
        "type": "enabled",
        "budget_tokens": 5,
        "block_binding": binding,
    }
    assert dropping(thinking={"type": "adaptive", "block_binding": {"x": 1}})["block_binding"] == {"x": 1, **binding}


@pytest.mark.parametrize(
    "thinking",
    [
        {"type": "disabled"},
        {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "error"}},
        {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}},
        {"type": "adaptive", "block_binding": 1},
        "on",
    ],
)
def test_what_the_client_has_decided_stays(thinking: Any) -> None:
    assert dropping(thinking=thinking) is None


def test_a_forced_choice_becomes_free() -> None:
    choice = {"type": "tool", "name": "f", "disable_parallel_tool_use": True}
    changed = with_free_choice(json.dumps({"tool_choice": choice}).encode())
    assert changed is not None
    assert json.loads(changed) == {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}
    for other in ({}, {"tool_choice": {"type": "auto"}}, {"tool_choice": "any"}):
        assert with_free_choice(json.dumps(other).encode()) is None
