"""What a schema allows and a tool still does not want."""

from __future__ import annotations

import time
from decimal import Decimal
from typing import Any

import pytest

from toolwire.calls.arguments.preferences import preferred
from toolwire.calls.schemas import Schemas
from toolwire.wire.exact_json import encode

pytestmark = pytest.mark.slow


def better(schema: dict[str, Any], arguments: dict[str, Any]) -> Any:
    checker = Schemas().of({"properties": schema}).checker
    assert checker is not None
    found = preferred(arguments, encode(arguments).decode(), checker)
    return None if found is None else found.arguments


def test_H073_whole_decimals_are_integers_where_the_schema_says_so() -> None:
    schema = {
        "limit": {"type": "integer"},
        "ratio": {"type": "number"},
        "list": {"items": {"type": ["integer", "null"]}},
    }
    given = {"limit": Decimal("10.0"), "ratio": Decimal("10.0"), "list": [Decimal("1e3"), 5, None]}
    found = better(schema, given)
    assert encode(found) == b'{"limit":10,"ratio":10.0,"list":[1000,5,null]}'
    assert better(schema, {"limit": 10, "ratio": Decimal("10.0")}) is None
    assert better({"a": {"type": ["integer", "number"]}}, {"a": Decimal("10.0")}) is None
    assert better({"a": {"type": "integer"}}, {"a": Decimal("1e999999")}) is None


UNION = {
    "to": {
        "anyOf": [{"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}, {"type": "string"}]
    }
}


def test_H027_an_object_written_as_text_is_the_object_that_the_union_describes() -> None:
    assert better(UNION, {"to": '{"id": 5}'}) == {"to": {"id": 5}}
    lists = {
        "edits": {
            "anyOf": [{"type": "array", "items": {"type": "object", "properties": {"id": {}}}}, {"type": "string"}]
        }
    }
    assert better(lists, {"edits": '[{"id": 5}]'}) == {"edits": [{"id": 5}]}


@pytest.mark.parametrize("text", ['{"id": "x"}', '{"id": 5, "more": 1}', "{}", "{id", "plain", '{"other": 1}', "[5]"])
def test_H027_other_text_is_text(text: str) -> None:
    assert better(UNION, {"to": text}) is None


@pytest.mark.parametrize(
    "schema",
    [
        {"anyOf": [{"type": "object"}, {"type": "string"}]},
        {"type": ["object", "string"]},
        {"type": "string"},
        {},
        {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "string"}]},
    ],
)
def test_H027_a_member_that_takes_any_object_describes_nothing(schema: dict[str, Any]) -> None:
    assert better({"to": schema}, {"to": '{"id": 5}'}) is None
    assert better({"to": schema}, {"to": "[5]"}) is None


def test_large_arguments_cost_bounded_time() -> None:
    started = time.process_time()
    better({"a": {"items": {"type": "integer"}}, **UNION}, {"a": [Decimal("1.0")] * 200_000})
    assert time.process_time() - started < 5
