"""How often one place can be looked at."""

from __future__ import annotations

import time
from typing import Any

import pytest

from toolwire.calls.schemas.cost import MOST, cost_of

pytestmark = pytest.mark.slow


def chain(length: int, key: str = "anyOf") -> dict[str, Any]:
    definitions: dict[str, Any] = {
        f"d{number}": {key: [{"$ref": f"#/$defs/d{number + 1}"}, {"$ref": f"#/$defs/d{number + 1}"}]}
        for number in range(length)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**definitions, f"d{length}": {"type": "string"}}}


def test_a_plain_object_costs_one_look_at_each_place() -> None:
    schema = {"properties": {name: {"type": "string"} for name in "abcdef"}, "required": ["a"]}
    assert cost_of(schema) == (1, False, 1)


def test_ways_multiply() -> None:
    assert cost_of(chain(10)).looks > 1000
    started = time.process_time()
    assert cost_of(chain(200)).looks == MOST
    assert time.process_time() - started < 1


def test_ways_multiply_on_the_way_down_too() -> None:
    definitions: dict[str, Any] = {"d30": {}}
    for number in range(30):
        inner = {"properties": {"a": {"$ref": f"#/$defs/d{number + 1}"}}}
        definitions[f"d{number}"] = {"allOf": [inner, inner]}
    assert cost_of({"$ref": "#/$defs/d0", "$defs": definitions}).looks == MOST


def test_recursion_is_seen_and_counted_once() -> None:
    cost = cost_of({"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}})
    assert cost.is_recursive
    assert cost.looks < 5
