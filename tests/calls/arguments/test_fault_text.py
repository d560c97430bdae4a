"""What is wrong, in words."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from toolwire.calls.arguments.fault_text import MOST, missing, place, problems, pruned, shown
from toolwire.calls.schemas import Schemas

pytestmark = pytest.mark.slow


def said(schema: dict[str, Any], value: Any) -> list[tuple[str, str]]:
    checker = Schemas().of({"properties": {"p": schema}}).checker
    assert checker is not None
    arguments = {"p": value}
    return [(problem.path, problem.message) for problem in problems(checker.faults(arguments, 1000), arguments)]


@pytest.mark.parametrize(
    ("schema", "value", "path", "message"),
    [
        ({"type": "integer"}, "x", "p", 'found string "x"; expected integer.'),
        ({"type": ["integer", "null"]}, [], "p", "found array []; expected null or integer."),
        ({"type": "string"}, None, "p", "found null; expected string."),
        ({"items": {"required": ["id"]}}, [{}], "p[0]", '"id" is missing; it is required.'),
        (
            {"properties": {}, "additionalProperties": False},
            {"x": 1},
            "p",
            'found "x", which this object does not have.',
        ),
        ({"enum": ["a", "b"]}, "c", "p", 'found "c"; expected one of "a", "b".'),
        ({"const": 5}, 6, "p", "found 6; expected 5."),
        ({"pattern": "^a"}, "b", "p", 'found "b"; expected a text that matches ^a.'),
        ({"minimum": 5}, 3, "p", "found 3; expected minimum 5."),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "x", "p", 'found "x"; expected integer or null.'),
        (
            {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
            {},
            "p",
            'found {}; expected one of 2 forms (with "a", "b").',
        ),
        ({"oneOf": [{}, {}]}, 5, "p", "found 5, which fits more than one of the forms allowed; expected just one."),
    ],
)
def test_sentences(schema: dict[str, Any], value: Any, path: str, message: str) -> None:
    assert said(schema, value) == [(path, message)]


def test_everything_is_bounded() -> None:
    long = said({"type": "integer"}, "x" * 100_000)
    assert len(long[0][1]) < 300
    many = said({"items": {"type": "integer"}}, ["x"] * 100)
    assert len(many) == MOST
    assert len(said({"enum": [str(number) * 50 for number in range(500)]}, "x")[0][1]) < 300


def test_missing_names_are_whole_paths() -> None:
    checker = Schemas().of({"required": ["a"], "properties": {"b": {"items": {"required": ["c"]}}}}).checker
    assert checker is not None
    assert set(missing(checker.faults({"b": [{}]}, 20))) == {"a", "b[0].c"}


def test_values_are_shown_short() -> None:
    assert shown({"a": [1, Decimal("1.50")]}) == '{"a":[1,1.50]}'
    assert pruned(["x"] * 30, 10, 2)[-1] == "... (30 items)"
    assert pruned({"a": {"b": {"c": 1}}}, 10, 2) == {"a": {"b": "... (1 members)"}}
    assert pruned({str(number): 1 for number in range(30)}, 10, 2)["..."] == "(30 members)"
    assert pruned("x" * 30, 10, 2) == "xxxxxxxxxx... (30 characters)"
    assert pruned(10**1000, 10, 2) == "a very long number"
    assert place(("a", 0, "b", 1)) == "a[0].b[1]"
    assert place((0,)) == "[0]"
