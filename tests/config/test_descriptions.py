"""Values and types as error messages describe them."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire.config.descriptions import describe, expected, noun, quoted_list
from toolwire.config.secret import Secret
from toolwire.config.values import Guard, Port, Switch


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "true"), (False, "false"), (12, "12"), (10**30, "a very large number"), ("a", '"a"'), ([1], "a list")],
)
def test_values_are_shown_and_large_ones_are_named(value: Any, text: str) -> None:
    assert describe(value) == text


def test_a_secret_is_described_by_its_kind_alone() -> None:
    assert noun("hunter2") == "a string"
    assert "env:NAME" in expected(Secret)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Port, "a whole number from 1 to 65535"),
        (Guard, 'one of "off", "check", "repair", "retry"'),
        (Switch, 'true, false or "auto"'),
        (tuple[str, ...], "a list of strings"),
        (dict[str, str], "a table of strings"),
    ],
)
def test_types_are_described_in_the_terms_of_toml(kind: Any, text: str) -> None:
    assert expected(kind) == text


def test_names_are_quoted() -> None:
    assert quoted_list(["a", "b"]) == '"a", "b"'
