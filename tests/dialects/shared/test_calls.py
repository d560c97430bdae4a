"""Calls whose arguments are objects, and pairs of calls and results without ids."""

from __future__ import annotations

import pytest

from toolwire.dialects.shared.calls import CallPairs, arguments_of
from toolwire.types import Json, ToolCall


@pytest.mark.parametrize(
    ("call", "value"),
    [
        (ToolCall(id="c", name="f", raw='{"a":1}'), {"a": 1}),
        (ToolCall(id="c", name="f", raw='{"a":1}', args={"a": 2}), {"a": 2}),
        (ToolCall(id="c", name="f", raw=""), {}),
        (ToolCall(id="c", name="f", raw="[1]"), {"_raw": "[1]"}),
        (ToolCall(id="c", name="f", raw="free", kind="custom"), {"input": "free"}),
    ],
)
def test_H024_input_is_never_silently_empty(call: ToolCall, value: Json) -> None:
    assert arguments_of(call) == value


def test_H024_free_text_is_a_member() -> None:
    assert arguments_of(ToolCall(id="a", name="f", raw="ls", kind="custom")) == {"input": "ls"}


def pairs_of(*calls: tuple[str, str]) -> CallPairs:
    pairs = CallPairs()
    for call_id, name in calls:
        pairs.add(ToolCall(id=call_id or pairs.next_id(), name=name, raw="{}"))
    return pairs


def test_calls_without_ids_are_numbered_by_position() -> None:
    pairs = pairs_of(("", "f"), ("mine", "f"), ("", "g"))
    assert pairs.count == 3
    assert [pairs.answered("", "") for _ in range(4)] == ["call_1", "mine", "call_3", "unknown_"]


def test_a_result_is_paired_by_id_then_by_name_then_by_order() -> None:
    pairs = pairs_of(("a", "f"), ("b", "g"), ("c", "g"), ("d", "f"))
    assert pairs.answered("c", "f") == "c"
    assert pairs.answered("", "g") == "b"
    assert pairs.answered("other", "f") == "a"
    assert pairs.answered("", "") == "d"
    assert pairs.answered("late", "f") == "late"


def test_each_call_is_answered_once() -> None:
    pairs = pairs_of(("a", "f"))
    assert pairs.answered("a", "") == "a"
    assert pairs.answered("a", "") == "a"  # the ledger reports the second result
    assert pairs.answered("", "f") == "unknown_f"
