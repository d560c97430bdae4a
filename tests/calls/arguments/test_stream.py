"""How much of the arguments can be sent while they grow, and what is added after a repair."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.calls.arguments.completion import completion
from toolwire.calls.arguments.stream import ArgumentStream
from toolwire.calls.schemas import Schemas
from toolwire.wire.exact_json import decode

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "content": {"type": "string", "minLength": 1},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "body": {"anyOf": [{"type": "string"}, {"type": "object", "properties": {"text": {"type": "string"}}}]},
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "force": {"type": "boolean"},
        "unit": {"enum": ["celsius", "fahrenheit"]},
        "day": {"type": "string", "format": "date"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "env": {"type": "object", "additionalProperties": {"type": "string"}},
        "edits": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"old": {"type": "string"}, "new": {"type": "string"}, "line": {"type": "integer"}},
                "required": ["old"],
            },
        },
    },
    "required": ["path"],
}
TEXTS = st.text(max_size=40) | st.sampled_from(
    ['", "count": 2', "path", "write", "}", ", ", "\U0001f600", "[1]", "a" * 400]
)
VALUES = st.fixed_dictionaries(
    {"path": TEXTS},
    optional={
        "content": TEXTS.filter(bool),
        "note": TEXTS | st.none(),
        "body": TEXTS | st.fixed_dictionaries({"text": TEXTS}),
        "count": st.integers(-(10**20), 10**20),
        "ratio": st.floats(allow_nan=False, allow_infinity=False),
        "force": st.booleans(),
        "unit": st.sampled_from(["celsius", "fahrenheit"]),
        "day": st.sampled_from(["2026-11-18", ""]),
        "tags": st.lists(TEXTS, max_size=4),
        "env": st.dictionaries(TEXTS, TEXTS, max_size=3),
        "edits": st.lists(
            st.fixed_dictionaries({"old": TEXTS}, optional={"new": TEXTS, "line": st.integers()}), max_size=3
        ),
    },
)
WRITINGS = st.sampled_from([{"ensure_ascii": False}, {"separators": (",", ":")}, {"indent": 2}])


def stream(schema: dict[str, Any] = SCHEMA) -> ArgumentStream:
    checker = Schemas().of(schema).checker
    assert checker is not None
    return ArgumentStream(checker.shape, "write")


def cut(text: str, places: list[int]) -> list[str]:
    bounds = sorted({0, len(text), *(place % (len(text) + 1) for place in places)})
    return [text[start:end] for start, end in pairwise(bounds)]


def fed(text: str, size: int = 1) -> ArgumentStream:
    arguments = stream()
    for start in range(0, len(text), size):
        arguments.feed(text[start : start + size])
    return arguments


@given(VALUES, WRITINGS, st.lists(st.integers(0, 5000), max_size=30))
def test_valid_arguments_lose_no_character_however_they_are_cut(
    value: dict[str, Any], writing: dict[str, Any], places: list[int]
) -> None:
    raw = json.dumps(value, **writing)
    arguments, sent = stream(), ""
    for piece in cut(raw, places):
        sent += arguments.feed(piece)
        assert arguments.sent == sent
    assert sent + arguments.rest() == raw
    rest = completion(sent, decode(raw))
    assert rest is not None
    assert decode(sent + rest) == decode(raw)


@given(VALUES, st.lists(st.integers(0, 5000), max_size=30))
def test_where_the_text_is_cut_does_not_change_what_is_sent_in_the_end(
    value: dict[str, Any], places: list[int]
) -> None:
    raw = json.dumps(value)
    in_pieces, at_once = stream(), stream()
    for piece in cut(raw, places):
        in_pieces.feed(piece)
    at_once.feed(raw)
    assert (in_pieces.sent, in_pieces.doubt) == (at_once.sent, at_once.doubt)


def test_a_number_at_the_end_of_a_piece_stops_nothing() -> None:
    arguments = stream()
    assert arguments.feed('{"path": "a", "count": 3') == '{"path": "a'
    assert arguments.feed(', "note": "b') == '", "count": 3, "note": "b'


@pytest.mark.parametrize("member", ["path", "content", "note", "body"])
@pytest.mark.parametrize("size", [1, 2, 7, 50])
def test_a_long_string_waits_for_nothing(member: str, size: int) -> None:
    text = 'def f(a, b):\n    return {"a": [a, b]}  # \u00e9 \U0001f600 \\\n' * 250
    raw = json.dumps({"count": 1, member: text, "force": True}, ensure_ascii=False)
    start = raw.index(member) + len(member) + 4
    arguments = stream()
    for position in range(0, len(raw), size):
        arguments.feed(raw[position : position + size])
        received = min(position + size, len(raw) - len('", "force": true}'))
        if received > start + 300:
            assert received - len(arguments.sent) <= 12, (
                position,
                arguments.rest()[:80],
            )  # an escape that is not complete
    assert arguments.doubt == ""


def test_in_the_first_characters_only_punctuation_waits() -> None:
    arguments = stream()
    assert arguments.feed('{"path": "src') == '{"path": "src'
    assert arguments.feed("/main") == "/main"
    assert arguments.feed(".py, ") == ".py"
    assert arguments.feed("x ") == ", x "


@pytest.mark.parametrize(
    ("raw", "sent"),
    [
        ('{"path": "a", "count": "2"}', '{"path": "a'),  # wrong type
        ('{"path": "a", "count": 2.0}', '{"path": "a'),  # a whole number with a fraction
        ('{"path": "a", "unit": "Celsius"}', '{"path": "a'),
        ('{"path": "a", "unit": "celsius", "note": "x"}', '{"path": "a", "unit": "celsius", "note": "x'),
        ('{"path": "a", "force": True}', '{"path": "a'),
        ('{"path": "a", "count": null}', '{"path": "a'),
        ('{"Path": "a"}', ""),
        ('{"arguments": {"path": "a"}}', ""),
        ('{"path": "write", "arguments": {"path": "a"}}', ""),
        ('"{\\"path\\": \\"a\\"}"', ""),
        ("```json\n{}", ""),
        ("{'path': 'a'}", ""),
        ('{"path": "a" "count": 1}', '{"path": "a'),
        ('{"path": "say "hi" now"}', '{"path": "say '),
        ('{"path": "a, "count": 1}', '{"path": "a'),
        ('{"path": "a}', '{"path": "a'),
        ('{"path": "a",}', '{"path": "a'),
        ('{"path": "a"}{"path": "a"}', '{"path": "a'),
        ('{"path": "a", "path": "b"}', '{"path": "a'),
        ('{"path": "a\nb"}', '{"path": "a'),
        ('{"path": "a\\xb"}', '{"path": "a'),
        ('{"tags": ["bug", "path": "x"}', '{"tags": ["bug'),
        ('{"body": "{\\"text\\": \\"x\\"}", "path": "a"}', ""),
        ('{"edits": [{"old": "x", "line": 1}, {"line": 2}], "path": "a"}', '{"edits": [{"old": "x", "line": 1}, '),
    ],
)
def test_from_the_first_doubt_on_nothing_is_sent(raw: str, sent: str) -> None:
    for size in (1, 3, 100):
        arguments = fed(raw, size)
        assert arguments.sent.rstrip() == sent.rstrip()
        assert arguments.sent + arguments.rest() == raw


@pytest.mark.parametrize("raw", ['{"path": "a"}', '{"path": "a", "tags": []}', '{"env": {"A": "x"}, "path": "b"}'])
def test_the_end_is_not_sent_before_the_arguments_are_validated(raw: str) -> None:
    arguments = fed(raw)
    assert arguments.doubt == ""
    assert not arguments.sent.endswith('"')
    assert arguments.rest().endswith("}")


def test_hostile_arguments_take_linear_time_and_wait() -> None:
    for text in ("[" * 50_000, '{"unit": "' + "a" * 50_000, " " * 50_000, '{"tags": [' + "1," * 50_000, "9" * 50_000):
        arguments = fed(text, 10)
        assert arguments.sent + arguments.rest() == text
        assert len(arguments.sent) < 20
