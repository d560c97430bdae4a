from __future__ import annotations

from typing import Any

import pytest

from toolwire.config.prices import price_table, read_prices
from toolwire.config.values import BackendConfig, Config
from toolwire.errors import ConfigError
from toolwire.telemetry.prices import Price


def error(path: tuple[str, ...], message: str) -> ConfigError:
    return ConfigError(message, where=".".join(path))


def test_a_price_is_read() -> None:
    found = read_prices({"a/x": {"input": 1, "output": 2.5, "cached": 0.1}}, error)
    assert found == {"a/x": Price(input=1, output=2.5, cached=0.1)}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("x", {"input": 1, "output": 1}, "BACKEND/MODEL"),
        ("a/*x*", {"input": 1, "output": 1}, "at most one"),
        ("a/x", 3, "expected a table"),
        ("a/x", {"input": 1}, "output"),
        ("a/x", {"input": 1, "output": 1, "cashed": 1}, "cashed"),
        ("a/x", {"input": -1, "output": 1}, "negative"),
        ("a/x", {"input": 1, "output": float("inf")}, "infinite"),
        ("a/x", {"input": 1, "output": float("nan")}, "infinite"),
    ],
)
def test_a_mistake_is_named(name: str, value: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_prices({name: value}, error)


def test_the_host_of_a_back_end_determines_its_built_in_prices() -> None:
    backends = (
        BackendConfig(name="o", kind="openai-chat", base_url="https://api.openai.com/v1"),
        BackendConfig(name="l", kind="openai-chat", base_url="http://127.0.0.1:1/v1"),
    )
    table = price_table(Config(backends=backends, prices={"l/m": Price(input=1, output=1)}))
    assert table.price("o", "gpt-4.1") is not None
    assert table.price("l", "gpt-4.1") is None
    assert table.price("l", "m") is not None
