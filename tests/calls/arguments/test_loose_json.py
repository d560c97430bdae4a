"""JSON as models write it when they slip."""

from __future__ import annotations

import contextlib
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.calls.arguments.loose_json import MOST_STEPS, Loose, NotLoose

values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda v: st.lists(v) | st.dictionaries(st.text(), v),
    max_leaves=20,
)


@given(values, st.sampled_from([None, 1]))
def test_what_is_json_is_read_without_repairs(value: Any, indent: int | None) -> None:
    for is_ascii in (True, False):
        text = json.dumps(value, indent=indent, ensure_ascii=is_ascii)
        loose = Loose(text)
        assert loose.value() == value
        assert loose.position == len(text)
        assert not loose.repairs
        assert not loose.unclosed


@pytest.mark.parametrize(
    ("text", "value", "repair"),
    [
        ("{'a': 'x \"y\"'}", {"a": 'x "y"'}, "syntax.quotes"),
        ("{'a': \"it's\"}", {"a": "it's"}, "syntax.quotes"),
        ('{"a": [1, 2,],}', {"a": [1, 2]}, "syntax.comma"),
        ("{a: 1, b-c: 2, $d: 3}", {"a": 1, "b-c": 2, "$d": 3}, "syntax.key"),
        ('{"a": True, "b": [None, False]}', {"a": True, "b": [None, False]}, "syntax.literal"),
        ('{"a": "one\ntwo\tthree"}', {"a": "one\ntwo\tthree"}, "syntax.control"),
        ('{"a": "it\\\'s"}', {"a": "it's"}, "syntax.escape"),
        ('{"a": "^\\d+\\s$"}', {"a": "^\\d+\\s$"}, "syntax.escape"),
        ('{"a": {"b": [1, 2}}', {"a": {"b": [1, 2]}}, "syntax.bracket"),
        ('{"a": ["x", "y", "b": 1}', {"a": ["x", "y"], "b": 1}, "syntax.bracket"),
        ('{"a": 1]', {"a": 1}, "syntax.bracket"),
        ("{“a”: “x”, ‘b’: `y`}", {"a": "x", "b": "y"}, "syntax.quotes"),
        ('{"a": """one\ntwo"""}', {"a": "one\ntwo"}, "syntax.quotes"),
        ("{'a': 'it's'}", {"a": "it's"}, "syntax.inner_quotes"),
        ('{"a": "say "hi" now"}', {"a": 'say "hi" now'}, "syntax.inner_quotes"),
        ('{"a": 1 "b": 2}', {"a": 1, "b": 2}, "syntax.no_comma"),
        ('{"a": "x"\n "b": ["y"\n"z"]}', {"a": "x", "b": ["y", "z"]}, "syntax.no_comma"),
        ('{"a": 1,, "b": 2; "c": 3，"d"：4}', {"a": 1, "b": 2, "c": 3, "d": 4}, "syntax.comma"),
        ('{"a" = 1, "b" => 2}', {"a": 1, "b": 2}, "syntax.colon"),
        ('{a": 1}', {"a": 1}, "syntax.key"),
        ('{"a": New York, "b": 2024-01-31}', {"a": "New York", "b": "2024-01-31"}, "syntax.bare"),
        ('{"a": 1, // one\n "b": /* two */ 2 # done\n}', {"a": 1, "b": 2}, "syntax.comment"),
        ('{"a": TRUE, "b": NULL}', {"a": True, "b": None}, "syntax.literal"),
        ('{"a": ("x", 1), "b": (2,), "c": ()}', {"a": ["x", 1], "b": [2], "c": []}, "syntax.tuple"),
        ('{"a": +1, "b": .5, "c": -2.}', {"a": 1, "b": Decimal("0.5"), "c": Decimal("-2.0")}, "syntax.number"),
        ('{{"a": {{"b": 1}}, "c": 2}}', {"a": {"b": 1}, "c": 2}, "syntax.braces"),
        ('{"a":\u00a01,\u200b"b": 2}', {"a": 1, "b": 2}, ""),
    ],
)
def test_slips_with_one_meaning_are_read(text: str, value: Any, repair: str) -> None:
    loose = Loose(text, names=frozenset("ab"))
    assert loose.value() == value
    assert not repair or repair in loose.repairs
    assert not loose.unclosed


@pytest.mark.parametrize(
    "text",
    [
        '{"a": "x',
        '{"a": "x\\',
        "{'a': 'the dogs' bowl'}",
        '{"a": "say "hi", now"}',
        '{"a": "x" y}',
        '{"a": "x""b": 2}',
        '{"a": "x"{ "b": 2}',
        '{"a": "x": 5}, {"a": "y"}',
        '{"a": ["x" \'y\']}',
        '{"a": [10 500]}',
        '{"a": [1,, 2]}',
        '{"a": [1, }',
        '{"a": {"b": 1], "c": 2}',
        '{"a": [{"b": 1}, "b": 2}',
        '{"a": ["x" "y"}',
        '{"a": 1, // "b": 2\n}',
        '{"a": 1 // no end of line',
        '{"a": [1, // 2, 3\n 4]}',
        '{"a": ("x")}',
        '{"a": "\\x41"}',
        '{"a": word',
        '{"a": [word]}',
        '{"a": New York, NY, "b": 1}',
        '{"a": one, other: 2}',
        '{"a": nan, "b": 1}',
        '{"a": undefined}',
        '{"a": 10 500}',
        '{"a": nul',
        '{"a" 1}',
        '{"a":',
        '{"a": 1,',
        '{"a": 1, "b"',
        "{",
        "[",
        '{"a": 1, "a": 2}',
        '{"a": "\\d\\t"}',
        '{"a": NaN}',
        '{"a": 01}',
        '{"a": 1_000}',
        '{"a": ]}',
        '{"a": ,}',
        "{,}",
        "[" * 100,
        "",
    ],
)
def test_two_meanings_or_none_are_refused(text: str) -> None:
    with pytest.raises(NotLoose):
        Loose(text, names=frozenset("ab")).value()


def test_what_is_open_at_the_end_is_reported_from_the_inside_out() -> None:
    loose = Loose('{"a": [{"b": "x"')
    assert loose.value() == {"a": [{"b": "x"}]}
    assert loose.unclosed == [("a", 0), ("a",), ()]
    assert not loose.ends_in_number


def test_a_number_at_the_end_may_have_been_longer() -> None:
    loose = Loose('{"a": 10')
    assert loose.value() == {"a": 10}
    assert loose.ends_in_number
    closed = Loose('{"a": [10]')
    closed.value()
    assert not closed.ends_in_number


def test_H071_numbers_keep_their_digits() -> None:
    text = "{'a': 2512292042121000001, 'b': 0.10, 'c': 1e400}"
    assert Loose(text).value() == {"a": 2512292042121000001, "b": Decimal("0.10"), "c": Decimal("1e400")}
    with pytest.raises(NotLoose):
        Loose("{'a': " + "9" * 10_000 + "}").value()


def test_surrogates_are_joined_or_kept() -> None:
    assert Loose("['\\ud83d\\ude00', '\\ud83d', '\\ude00x']").value() == ["😀", "\ud83d", "\ude00x"]


HOSTILE = [
    '"',
    "'",
    "\\",
    "\\'",
    "[",
    "{",
    "1,",
    "'a',",
    " ",
    "/*",
    "//",
    "#\n",
    '" "',
    '"x" ',
    "“",
    "a:",
    "(",
    ",",
    "{{",
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_texts_take_a_bounded_number_of_steps(piece: str) -> None:
    for start in ("", "[", '{"a": ', '{"a": "'):
        loose = Loose(start + piece * (1_000_000 // len(piece)))
        with contextlib.suppress(NotLoose):
            loose.value()
        assert loose.steps <= MOST_STEPS + 1
