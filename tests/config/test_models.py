from __future__ import annotations

from typing import Any

import pytest

from toolwire.config.models import read_models
from toolwire.config.values import ModelGroup
from toolwire.errors import ConfigError


def error(path: tuple[str, ...], message: str) -> ConfigError:
    return ConfigError(message, where=".".join(path))


def test_a_list_is_a_group_and_its_first_model_the_alias() -> None:
    aliases, groups = read_models({"fast": ["a/x", "b/y"], "one": "a/x", "claude-*": "a/x"}, error)
    assert aliases == {"fast": "a/x", "one": "a/x", "claude-*": "a/x"}
    assert groups == {"fast": ModelGroup(models=("a/x", "b/y"))}


def test_a_table_has_the_settings_of_a_group() -> None:
    settings = {"models": ["a/x", "b/y"], "weights": [3, 1], "fallback_on": ["429", "401"], "stall_seconds": 5}
    aliases, groups = read_models({"fast": settings}, error)
    assert aliases == {"fast": "a/x"}
    expected = ModelGroup(models=("a/x", "b/y"), weights=(3.0, 1.0), fallback_on=("429", "401"), stall_seconds=5.0)
    assert groups == {"fast": expected}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"fast": []}, "expected a model such as"),
        ({"fast": ["a", 7]}, "expected a model such as"),
        ({"fast": {"a": 1}}, "expected a model such as"),
        ({"fast": {"models": ["a"], "weight": [1]}}, 'unknown key "weight"'),
        ({"fast": {"models": ["a", "b"], "weights": [1]}}, "expected 2 numbers"),
        ({"fast": {"models": ["a", "b"], "weights": [0, 0]}}, "expected 2 numbers"),
        ({"fast": {"models": ["a", "b"], "weights": [1, -1]}}, "expected 2 numbers"),
        ({"fast": {"models": ["a", "b"], "weights": [1, 1], "order": "quality"}}, "expected one of them"),
        ({"fast": {"models": ["a"], "order": "random"}}, "not valid"),
        ({"fast": {"models": ["a"], "stall_seconds": 0}}, "not valid"),
        ({"fast": {"models": ["a"], "fallback_on": ["200"]}}, "from 400 to 499"),
        ({"a*": {"models": ["x", "y"]}}, "expected a name without"),
        ({"a*b*": "x"}, "at most one"),
        ({"a*": ["x", "y"]}, "expected a name without"),
        ({"a": "b", "b": ["a", "c"]}, "refers to itself"),
    ],
)
def test_a_mistake_is_named(table: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_models(table, error)
