"""Prices: exact costs, the owner's table before the built-in one, and unknown prices that stay unknown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.telemetry.prices import DOLLAR, NO_PRICES, Price, PriceTable, dollars
from toolwire.types import Usage

TOKENS = st.integers(0, 10**7)
SONNET = "claude-sonnet-4-6"


def test_each_kind_of_token_has_its_price() -> None:
    price = Price(input=3, cached=0.3, cache_write=3.75, output=15)
    usage = Usage(input=1_000_000, cached=600_000, cache_written=100_000, output=200_000)
    assert price.cost(usage) == round((0.3 * 3 + 0.6 * 0.3 + 0.1 * 3.75 + 0.2 * 15) * DOLLAR)


def test_cached_tokens_cost_as_much_as_others_if_nothing_else_is_known() -> None:
    price = Price(input=2, output=4)
    assert price.cost(Usage(input=10, cached=5, cache_written=5, output=1)) == 24_000


def test_a_request_beyond_the_limit_of_a_price_has_no_cost() -> None:
    price = Price(input=1, output=1, max_input=100)
    assert price.cost(Usage(input=100)) == 100_000
    assert price.cost(Usage(input=101)) is None


def test_the_provider_itself_has_known_prices_and_others_have_none() -> None:
    table = PriceTable({}, {"claude": "api.anthropic.com", "local": "127.0.0.1"})
    known = table.price("claude", SONNET)
    assert known is not None
    assert known.input == 3
    assert table.price("claude", f"{SONNET}-20260101") is known
    assert table.price("claude", f"{SONNET}-thinking") is None
    assert table.price("local", SONNET) is None
    assert table.cost("local", SONNET, Usage(input=5)) is None
    assert NO_PRICES.cost("claude", SONNET, Usage(input=5)) is None


def test_prices_of_the_owner_take_precedence() -> None:
    free, cheap, wide = (Price(input=amount, output=amount) for amount in (0, 1, 2))
    table = PriceTable({"a/*": wide, "a/x-*": cheap, f"a/{SONNET}": free}, {"a": "api.anthropic.com"})
    assert table.price("a", SONNET) is free
    assert table.price("a", "x-1") is cheap
    assert table.price("a", "line\nbreak") is wide
    assert table.price("b", "x-1") is None
    assert table.cost("a", SONNET, Usage(input=5)) == 0
    assert table.cost("a", SONNET, None) is None


def test_any_number_of_model_names_uses_bounded_memory() -> None:
    table = PriceTable({"a/known": Price(input=1, output=1)})
    for number in range(5000):
        assert table.price("a", f"m{number}") is None
    assert table.price("a", "known") is not None


@given(TOKENS, TOKENS, TOKENS, TOKENS)
def test_more_tokens_never_cost_less(input_: int, cached: int, written: int, output: int) -> None:
    price = Price(input=3, cached=0.3, cache_write=3.75, output=15)
    cost = price.cost(Usage(input=input_, cached=cached, cache_written=written, output=output))
    more = price.cost(Usage(input=input_ + 1, cached=cached, cache_written=written, output=output + 1))
    assert cost is not None
    assert more is not None
    assert more >= cost >= 0


def test_dollars() -> None:
    assert dollars(1_500_000_000) == pytest.approx(1.5)
