"""A request without the thoughts of earlier turns: nothing else is lost, and thinking is off only where it must be."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolwire.dialects.messages.without_thinking import without_thinking

THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "bad"}
REDACTED = {"type": "redacted_thinking", "data": "b3A="}
TEXT = {"type": "text", "text": "a"}
CALL = {"type": "tool_use", "id": "c", "name": "f", "input": {"n": 1}}
RESULT = {"type": "tool_result", "tool_use_id": "c", "content": "r"}
USER = {"role": "user", "content": "hi"}
ENABLED = {"type": "enabled", "budget_tokens": 1024}


def rest_of(*messages: Any, **top: Any) -> Any:
    body = without_thinking(json.dumps({"model": "m", "messages": list(messages), **top}).encode())
    return None if body is None else json.loads(body)


def test_H081_thoughts_of_a_closed_turn_go_and_thinking_stays() -> None:
    said = {"role": "assistant", "content": [THOUGHT, REDACTED, TEXT]}
    rest = rest_of(USER, said, USER, thinking=ENABLED)
    assert rest["messages"] == [USER, {"role": "assistant", "content": [TEXT]}, USER]
    assert rest["thinking"] == ENABLED


def test_H075_H081_thinking_is_off_where_a_turn_waits_for_its_results() -> None:
    edits = [{"type": "clear_thinking_20251015", "keep": "all"}, {"type": "clear_tool_uses_20250919"}]
    turn = ({"role": "assistant", "content": [THOUGHT, CALL]}, {"role": "user", "content": [RESULT]})
    rest = rest_of(USER, *turn, thinking=ENABLED, context_management={"edits": edits})
    assert rest["messages"] == [USER, {"role": "assistant", "content": [CALL]}, turn[1]]
    assert "thinking" not in rest
    assert rest["context_management"] == {"edits": edits[1:]}


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"messages":1}', b'{"messages":[1,{"role":"user","content":"x"}]}'])
def test_where_there_are_none_nothing_can_be_left_out(body: bytes) -> None:
    assert without_thinking(body) is None
    assert rest_of(USER, {"role": "assistant", "content": [TEXT]}) is None
