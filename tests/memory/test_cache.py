"""Histories of late: bounded by bytes and by age."""

from __future__ import annotations

import pytest

from tests.frozen_histories import FrozenRecent, check_used
from toolwire.dialects.shared.memory import PastTurns
from toolwire.memory.cache import HistoryCache


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_least_used_make_room() -> None:
    recent = HistoryCache(max_bytes=800)
    for number in range(9):
        recent.put("o", str(number), PastTurns(), 100)
        assert recent.get("o", "0") is not None  # which keeps it in use
    assert recent.get("o", "1") is None
    assert recent.get("o", "8") is not None


def test_one_history_cannot_push_out_all_others() -> None:
    recent = HistoryCache(max_bytes=800)
    recent.put("o", "small", PastTurns(), 100)
    recent.put("o", "large", PastTurns(), 101)
    assert recent.get("o", "large") is None
    assert recent.get("o", "small") is not None


def test_put_again_it_counts_once() -> None:
    recent = HistoryCache(max_bytes=800)
    for _ in range(20):
        recent.put("o", "same", PastTurns(), 100)
    for number in range(7):
        recent.put("o", str(number), PastTurns(), 100)
    assert recent.get("o", "same") is not None


def test_after_a_while_it_is_read_again() -> None:
    clock = Clock()
    recent = HistoryCache(max_age=60.0, clock=clock)
    recent.put("o", "a", PastTurns(), 1)
    clock.now = 60.0
    assert recent.get("o", "a") is not None
    clock.now = 60.1
    assert recent.get("o", "a") is None


def test_owners_are_strangers() -> None:
    recent = HistoryCache()
    recent.put("one", "a", PastTurns(items=[1]), 1)
    recent.put("two", "a", PastTurns(items=[2]), 1)
    assert recent.get("three", "a") is None
    recent.forget("one")
    assert recent.get("one", "a") is None
    assert recent.get("two", "a") == (PastTurns(items=[2]), 1)


@pytest.mark.parametrize("is_used_again", [True, False])
def test_a_history_that_is_changed_fails_the_test_that_did_it(is_used_again: bool) -> None:
    recent = FrozenRecent()
    past = PastTurns(items=[{"role": "user", "content": [{"type": "input_text", "text": "a"}]}])
    recent.put("o", "a", past, 100)
    check_used()
    assert recent.get("o", "a") is not None
    past.items[0]["content"].append({})
    if is_used_again:
        assert recent.get("o", "a") is not None
    with pytest.raises(AssertionError, match="was changed"):
        check_used()
