from __future__ import annotations

from typing import Any

import pytest

from toolwire.config.models import read_models
from toolwire.errors import ConfigError


def error(path: tuple[str, ...], message: str) -> ConfigError:
    return ConfigError(message, where=".".join(path))


def test_a_list_is_a_group_and_its_first_model_the_alias() -> None:
    aliases, groups = read_models({"fast": ["a/x", "b/y"], "one": "a/x", "claude-*": "a/x"}, error)
    assert aliases == {"fast": "a/x", "one": "a/x", "claude-*": "a/x"}
    assert groups == {"fast": ("a/x", "b/y")}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"fast": []}, "expected a model such as"),
        ({"fast": ["a", 7]}, "expected a model such as"),
        ({"fast": {"a": 1}}, "expected a model such as"),
        ({"a*b*": "x"}, "at most one"),
        ({"a*": ["x", "y"]}, "expected a name without"),
        ({"a": "b", "b": ["a", "c"]}, "refers to itself"),
    ],
)
def test_a_mistake_is_named(table: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_models(table, error)
