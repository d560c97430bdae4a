"""Tokens of one answer."""

from __future__ import annotations

from decimal import Decimal

import pytest

from toolwire.backends.codex.wire.usage import CodexTokenMeter, rate_limit_headers, usage_in
from toolwire.types import Usage

ONE = {
    "inputTokens": 100,
    "cachedInputTokens": 40,
    "outputTokens": 20,
    "reasoningOutputTokens": 5,
    "cacheWriteInputTokens": 7,
}
TWO = {
    "inputTokens": 200,
    "cachedInputTokens": 80,
    "outputTokens": 40,
    "reasoningOutputTokens": 10,
    "cacheWriteInputTokens": 14,
}
USED = Usage(input=100, output=20, cached=40, cache_written=7, reasoning=5)
TWICE = Usage(input=200, output=40, cached=80, cache_written=14, reasoning=10)


def test_nothing_was_counted() -> None:
    assert CodexTokenMeter().usage() is None


def test_responses_are_added_up_and_trusted_first() -> None:
    meter = CodexTokenMeter()
    meter.thread({"total": TWO, "last": ONE})
    meter.response(ONE)
    assert meter.usage() == USED
    meter.response(ONE)
    assert meter.usage() == TWICE


def test_a_threads_total_counts_from_where_the_answer_began() -> None:
    meter = CodexTokenMeter()
    meter.thread({"total": TWO, "last": ONE})
    assert meter.usage() == USED


def test_the_same_count_twice_is_counted_once() -> None:
    meter = CodexTokenMeter()
    meter.thread({"total": ONE, "last": ONE})
    meter.thread({"total": ONE, "last": ONE})
    assert meter.usage() == USED
    meter.thread({"total": TWO, "last": ONE})
    assert meter.usage() == TWICE


def test_a_last_count_of_nothing_belongs_to_an_answer_that_was_cut() -> None:
    meter = CodexTokenMeter()
    meter.thread({"total": ONE, "last": {"inputTokens": 0}})
    assert meter.usage() == USED


@pytest.mark.parametrize("value", [None, 7, [], {}, {"total": 7}, {"total": None, "last": ONE}])
def test_what_is_no_count_is_none(value: object) -> None:
    meter = CodexTokenMeter()
    meter.thread(value)
    assert meter.usage() is None


def test_counts_that_can_be_none_are_zero() -> None:
    assert usage_in({"inputTokens": -1, "outputTokens": "9", "cachedInputTokens": True}) == Usage()


def test_the_next_answer_counts_from_where_the_last_one_ended() -> None:
    """Its first count is the last one told again."""
    meter = CodexTokenMeter()
    meter.thread({"total": ONE, "last": ONE})
    following = meter.follow()
    following.thread({"total": ONE, "last": ONE})
    following.thread({"total": TWO, "last": ONE})
    assert following.usage() == USED
    assert CodexTokenMeter().follow().usage() is None


def test_what_is_known_is_reported_and_nothing_else() -> None:
    primary = {"usedPercent": 12, "windowDurationMins": 300, "resetsAt": 1794766871, "other": 1}
    secondary = {"usedPercent": Decimal("3.5"), "windowDurationMins": None}
    assert rate_limit_headers(
        {"rateLimits": {"primary": primary, "secondary": secondary, "credits": {"usedPercent": 1}}}
    ) == {
        "x-codex-primary-used-percent": "12",
        "x-codex-primary-window-minutes": "300",
        "x-codex-primary-reset-at": "1794766871",
        "x-codex-secondary-used-percent": "3.5",
    }


def test_what_is_not_as_expected_has_no_effect() -> None:
    for told in (
        {},
        {"rateLimits": None},
        {"rateLimits": {"primary": "x"}},
        {"rateLimits": {"primary": {"usedPercent": "a\r\nb"}}},
    ):
        assert rate_limit_headers(told) == {}


@pytest.mark.parametrize("number", [10**4000, Decimal("1" * 4000), -(10**20), True])
def test_numbers_that_are_none_of_that_kind_tell_nothing(number: object) -> None:
    assert rate_limit_headers({"rateLimits": {"primary": {"usedPercent": number}}}) == {}
