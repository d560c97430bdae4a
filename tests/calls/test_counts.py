"""The numbers of one answer's calls."""

from __future__ import annotations

from toolwire.calls.counts import CallMade, Tally
from toolwire.types import ToolCall


def test_what_is_neither_wrong_nor_unknown_nor_cut_was_accepted() -> None:
    assert Tally(made=10, invalid=4, repaired=3, unknown=2, cut=1).accepted == 3


def test_two_answers_share_no_numbers() -> None:
    first, second = Tally(), Tally()
    first.repairs["typed"] += 1
    assert not second.repairs
    assert second.accepted == 0


def test_calls_are_named_up_to_a_bound_and_names_that_are_none_are_not() -> None:
    tally = Tally()
    for number in range(200):
        tally.note(ToolCall(id=f"c{number}", name="f", raw=""), "right")
    assert len(tally.calls) == 100
    assert tally.unknown_names == ()

    tally = Tally()
    for name, outcome in (("a", "unknown"), ("a", "unasked"), ("b", "barred"), ("some words", "unknown"), ("c", "cut")):
        tally.note(ToolCall(id="i" * 300, name=name, raw=""), outcome)
    assert tally.unknown_names == ("a", "b", "a name that no tool can have")
    assert tally.calls[0] == CallMade("i" * 100, "a", "unknown")
    assert Tally().calls == []
