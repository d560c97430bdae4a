"""What requests cost: a table of prices, and the cost of the tokens of one answer.

Costs are whole numbers of billionths of a US dollar, so that sums are exact in every counter. A model without a known price costs None,
never 0. Prices of the owner are by "BACKEND/MODEL" and take precedence; those of prices.toml apply to back ends that use the API of the
provider itself, because another server has other prices for the same name.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import msgspec
from msgspec import Struct

from ..types import Usage

DOLLAR = 1_000_000_000
_PER_TOKEN = DOLLAR // 1_000_000  # prices are per million tokens
_MAX_CACHED = 1000  # clients choose model names
_DATE = re.compile(r"[-@](?:\d{4}-\d{2}-\d{2}|\d{8}|latest)$")


class Price(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """In US dollars per million tokens. cached, cache_write: None for the price of input. max_input: longer requests have no known price, 0
    for no limit."""

    input: float
    output: float
    cached: float | None = None
    cache_write: float | None = None
    max_input: int = 0

    def cost(self, usage: Usage) -> int | None:
        """In billionths of a dollar."""
        if self.max_input and usage.input > self.max_input:
            return None
        cached = self.input if self.cached is None else self.cached
        cache_write = self.input if self.cache_write is None else self.cache_write
        plain = max(0, usage.input - usage.cached - usage.cache_written)
        dollars = plain * self.input + usage.cached * cached + usage.cache_written * cache_write
        return round((dollars + usage.output * self.output) * _PER_TOKEN)


class PriceTable:
    """owner: by "BACKEND/MODEL", where * matches any characters; the longest text before the * wins. hosts: of the back ends, by name."""

    def __init__(self, owner: Mapping[str, Price] = {}, hosts: Mapping[str, str] = {}) -> None:
        self._exact = {name: price for name, price in owner.items() if "*" not in name}
        patterns = sorted((name for name in owner if "*" in name), key=lambda name: -name.index("*"))
        self._patterns = [(_pattern(name), owner[name]) for name in patterns]
        self._hosts = dict(hosts)
        self._found: dict[tuple[str, str], Price | None] = {}

    def price(self, backend: str, model: str) -> Price | None:
        """None if it is unknown. model: the name that the back end received."""
        key = backend, model
        try:
            return self._found[key]
        except KeyError:
            if len(self._found) >= _MAX_CACHED:
                self._found.clear()
            found = self._found[key] = self._find(backend, model)
            return found

    def cost(self, backend: str, model: str, usage: Usage | None) -> int | None:
        """In billionths of a dollar; None if the price or the usage is unknown."""
        if usage is None or (price := self.price(backend, model)) is None:
            return None
        return price.cost(usage)

    def _find(self, backend: str, model: str) -> Price | None:
        name = f"{backend}/{model}"
        if name in self._exact:
            return self._exact[name]
        for pattern, price in self._patterns:
            if pattern.fullmatch(name):
                return price
        known = _built_in().get(self._hosts.get(backend, ""), {})
        return known.get(model) or known.get(_DATE.sub("", model))


NO_PRICES = PriceTable()


def dollars(cost: int) -> float:
    return cost / DOLLAR


@cache
def _built_in() -> dict[str, dict[str, Price]]:
    """By host and model."""
    data = tomllib.loads((files(__package__) / "prices.toml").read_text("utf-8"))
    return msgspec.convert(data, dict[str, dict[str, Price]])


def _pattern(name: str) -> re.Pattern[str]:
    start, _, end = name.partition("*")
    return re.compile(f"{re.escape(start)}.*{re.escape(end)}", re.DOTALL)
