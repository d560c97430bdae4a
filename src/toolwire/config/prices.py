"""The table [prices]: what the models of each back end cost, and the table that requests are priced with."""

from __future__ import annotations

import math
from typing import Any
from urllib.parse import urlsplit

import msgspec

from ..errors import quote
from ..telemetry.prices import Price, PriceTable
from .models import MakeError
from .values import Config

_EXAMPLE = "{ input = 1.25, output = 10 }, in dollars per million tokens"


def read_prices(table: dict[str, Any], error: MakeError) -> dict[str, Price]:
    """Raises what error() makes."""
    return {name: _price(name, value, error) for name, value in table.items()}


def price_table(config: Config) -> PriceTable:
    hosts = {backend.name: urlsplit(backend.base_url).hostname or "" for backend in config.backends}
    return PriceTable(config.prices, hosts)


def _price(name: str, value: Any, error: MakeError) -> Price:
    if "/" not in name or name.count("*") > 1:
        found = f'found {quote(name)}; expected "BACKEND/MODEL", with at most one *.'
        raise error(("prices", name), found)
    try:
        price = msgspec.convert(value, Price)
    except msgspec.ValidationError as fault:
        raise error(("prices", name), f"{fault}; expected a table such as {_EXAMPLE}.") from None
    amounts = (price.input, price.output, price.cached or 0.0, price.cache_write or 0.0, price.max_input)
    if not all(math.isfinite(amount) and amount >= 0 for amount in amounts):
        raise error(("prices", name), f"found a negative or infinite number; expected a table such as {_EXAMPLE}.")
    return price
