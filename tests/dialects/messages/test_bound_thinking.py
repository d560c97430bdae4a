"""Bodies for newer models: thinking that may be dropped, choices that are not forced, and reports of dropped thinking."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolwire.dialects.messages.bound_thinking import dropped_thinking, with_dropped_blocks, with_free_choice
from toolwire.events import Noted
from toolwire.types import Loss


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


def test_dropped_thinking_is_one_loss() -> None:
    dropped = {"type": "thinking_dropped", "path": "messages.1.content.0", "reason": "prefix_binding_mismatch"}
    allowed = {"type": "thinking_mismatch_allowed", "path": "messages.3.content.0", "reason": "prefix_binding_mismatch"}
    (event,) = dropped_thinking({"input_transformations": [allowed, dropped, dropped, None]})
    assert isinstance(event, Noted)
    assert event.note == Loss(
        "reasoning.dropped", "messages.1.content.0", "the back end dropped it: prefix_binding_mismatch (2 times)"
    )
    for nothing in ([allowed], [], None, "x"):
        assert dropped_thinking({"input_transformations": nothing}) == []
