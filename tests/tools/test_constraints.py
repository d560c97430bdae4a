"""Limits and descriptions in Annotated, of every library."""

from __future__ import annotations

import re
from typing import Any

import annotated_types
import msgspec
import pytest
from pydantic import Field

from toolwire.tools.constraints import constrain
from toolwire.tools.containers import list_of, mapping_of, optional
from toolwire.tools.shapes import SCALARS, TEXT, Mismatch, Shape

INT = SCALARS[int]


@pytest.mark.parametrize(
    ("shape", "note", "told", "good", "bad"),
    [
        (INT, msgspec.Meta(ge=1, le=3), {"minimum": 1, "maximum": 3}, 3, 4),
        (INT, annotated_types.Gt(1), {"exclusiveMinimum": 1}, 2, 1),
        (INT, annotated_types.Interval(ge=1, lt=3), {"minimum": 1, "exclusiveMaximum": 3}, 1, 3),
        (SCALARS[float], Field(multiple_of=0.1), {"multipleOf": 0.1}, 0.3, 0.35),
        (TEXT, annotated_types.Len(1, 2), {"minLength": 1, "maxLength": 2}, "ab", "abc"),
        (TEXT, Field(pattern="^a"), {"pattern": "^a"}, "ab", "ba"),
        (TEXT, msgspec.Meta(pattern="b$"), {"pattern": "b$"}, "ab", "ba"),
        (list_of(INT), Field(max_length=1), {"maxItems": 1}, [1], [1, 2]),
        (mapping_of(TEXT, INT), Field(min_length=1), {"minProperties": 1}, {"a": 1}, {}),
        (optional(TEXT), msgspec.Meta(min_length=2), {"minLength": 2}, None, "a"),
    ],
)
def test_limits_are_in_the_schema_and_enforced(
    shape: Shape, note: object, told: dict[str, Any], good: Any, bad: Any
) -> None:
    limited = constrain(shape, [note])
    assert limited.schema == {**shape.schema, **told}
    limited.convert(good)
    with pytest.raises(Mismatch, match="expected"):
        limited.convert(bad)


def test_compiled_patterns_are_in_the_schema_as_text() -> None:
    class Note:
        pattern = re.compile("^x")

    assert constrain(TEXT, [Note()]).schema["pattern"] == "^x"


def test_descriptions_and_more() -> None:
    class Doc:
        documentation = "Documented."

    assert constrain(INT, ["Said."]).schema["description"] == "Said."
    assert constrain(INT, [Doc()]).schema["description"] == "Documented."
    assert constrain(INT, [Field(description="D", title="T", examples=[1])]).schema == {
        "type": "integer",
        "description": "D",
        "title": "T",
        "examples": [1],
    }
    assert constrain(INT, [msgspec.Meta(extra_json_schema={"x": 1})]).schema["x"] == 1


def test_limits_that_mean_nothing_here_are_left_out() -> None:
    assert constrain(TEXT, [annotated_types.Ge(1), object()]) == TEXT
