"""The account's limits as headers."""

from __future__ import annotations

from decimal import Decimal

import pytest

from toolwire.backends.codex.rate_limits import headers_of

pytestmark = pytest.mark.slow


def test_what_is_known_is_told_and_nothing_else() -> None:
    primary = {"usedPercent": 12, "windowDurationMins": 300, "resetsAt": 1794766871, "other": 1}
    secondary = {"usedPercent": Decimal("3.5"), "windowDurationMins": None}
    assert headers_of({"rateLimits": {"primary": primary, "secondary": secondary, "credits": {"usedPercent": 1}}}) == {
        "x-codex-primary-used-percent": "12",
        "x-codex-primary-window-minutes": "300",
        "x-codex-primary-reset-at": "1794766871",
        "x-codex-secondary-used-percent": "3.5",
    }


def test_what_is_not_as_expected_tells_nothing() -> None:
    for told in (
        {},
        {"rateLimits": None},
        {"rateLimits": {"primary": "x"}},
        {"rateLimits": {"primary": {"usedPercent": "a\r\nb"}}},
    ):
        assert headers_of(told) == {}


@pytest.mark.parametrize("number", [10**4000, Decimal("1" * 4000), -(10**20), True])
def test_numbers_that_are_none_of_that_kind_tell_nothing(number: object) -> None:
    assert headers_of({"rateLimits": {"primary": {"usedPercent": number}}}) == {}
