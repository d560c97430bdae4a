from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.calls.schemas.reader import read
from toolwire.calls.written.formats.arguments import repair_object, typed, types_at

TYPES = ["null", "integer", "number", "boolean", "object", "array", "string"]


@pytest.mark.parametrize(
    ("text", "types", "value"),
    [
        ("null", {"null", "string"}, None),
        ("None", {"null", "integer"}, None),
        ("null", {"string"}, "null"),
        ("null", {"integer"}, "null"),
        (" 7\n", {"integer"}, 7),
        ("7.0", {"integer"}, 7),
        ("7.5", {"integer"}, "7.5"),
        ("7.5", {"integer", "number"}, Decimal("7.5")),
        ("1e3", {"integer"}, "1e3"),
        ("1e3", {"number"}, Decimal("1e3")),
        ("-0.25", {"number"}, Decimal("-0.25")),
        ("1e999999999999", {"integer"}, "1e999999999999"),
        ("9" * 5000, {"integer"}, "9" * 5000),
        ("007", {"integer"}, "007"),
        ("TRUE", {"boolean"}, True),
        ("yes", {"boolean"}, "yes"),
        ("1", {"boolean"}, "1"),
        ('{"a": 1}', {"object"}, {"a": 1}),
        ("{'a': None}", {"object"}, {"a": None}),
        ("[1]", {"object"}, "[1]"),
        ("[1]", {"object", "array"}, [1]),
        ("(1, 2)", {"array"}, [1, 2]),
        ("a, b", {"array"}, "a, b"),
        ("7", {"string", "integer"}, 7),
        ("7", {"string"}, "7"),
        ("7", set(), 7),
        ("20.5", set(), Decimal("20.5")),
        ("007", set(), "007"),
        ("7 ", {"string"}, "7 "),
        ("true", set(), True),
        ("True", set(), "True"),
        ("null", set(), None),
        ("9" * 5000, set(), "9" * 5000),
        ("NaN", set(), "NaN"),
        ('{"a": 1}', set(), {"a": 1}),
        ("{a", set(), "{a"),
    ],
)
def test_H131_the_narrowest_type_that_a_text_can_be(text: str, types: set[str], value: object) -> None:
    assert typed(text, types) == value
    assert type(typed(text, types)) is type(value)


@given(st.text(max_size=40), st.sets(st.sampled_from(TYPES)))
def test_no_text_is_ever_lost(text: str, types: set[str]) -> None:
    value = typed(text, types)
    if "string" in types and not types - {"string"}:
        assert value == text
    if isinstance(value, str):
        assert value == text


@given(st.sampled_from(["{", "[", "[{'a':", '{"a":', "(", "-", '"', "\\"]), st.integers(1, 3000))
def test_hostile_values_stay_texts(letter: str, count: int) -> None:
    text = letter * count
    assert typed(text, set(TYPES)) == text


def test_types_through_references_unions_and_constants() -> None:
    schema = read(
        {
            "type": "object",
            "properties": {
                "a": {"$ref": "#/definitions/count"},
                "b": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "c": {"enum": [1, "x", None, True]},
                "d": {"const": [1]},
                "e": {"type": "integer", "nullable": True},
                "f": {},
            },
            "additionalProperties": {"type": "boolean"},
            "definitions": {"count": {"allOf": [{"type": "integer"}]}},
        }
    ).schema
    found = {key: types_at(schema, key) for key in "abcdefg"}
    assert found == {
        "a": {"integer"},
        "b": {"string", "null"},
        "c": {"integer", "string", "null", "boolean"},
        "d": {"array"},
        "e": {"integer", "null"},
        "f": set(),
        "g": {"boolean"},
    }


@pytest.mark.parametrize(
    ("text", "value", "repair"),
    [
        ('"{\\"a\\": 1}"', {"a": 1}, "quoted"),
        ("\"{'a': 1}\"", {"a": 1}, "quoted"),
        ("{'a': True}", {"a": True}, "loose"),
        ('[{"a": 1}]', {"a": 1}, "unlisted"),
    ],
)
def test_one_object_is_meant(text: str, value: object, repair: str) -> None:
    raw, found = repair_object(text)
    assert (json.loads(raw), found) == (value, repair)


@pytest.mark.parametrize("text", ['"a"', "[1]", "[{}, {}]", "[]", "{'a': }", "", "7", '"\\"{}\\""x', "{'a': 'b'} c"])
def test_nothing_is_meant(text: str) -> None:
    assert repair_object(text) == ("", "")
