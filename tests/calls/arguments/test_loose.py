"""JSON as models write it when they slip."""

from __future__ import annotations

import contextlib
import json
import time
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.calls.arguments.loose import Loose, NotLoose

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
        ('{"a": {"b": [1, 2}}', {"a": {"b": [1, 2]}}, "syntax.closed"),
    ],
)
def test_slips_with_one_meaning_are_read(text: str, value: Any, repair: str) -> None:
    loose = Loose(text)
    assert loose.value() == value
    assert repair in loose.repairs
    assert not loose.unclosed or repair == "syntax.closed"


@pytest.mark.parametrize(
    "text",
    [
        '{"a": "x',
        '{"a": "x\\',
        "{'a': 'it's'}",
        '{"a": "say "hi" now"}',
        '{"a": word}',
        '{"a": nul',
        '{"a": 1 "b": 2}',
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
        '{"a": +1}',
        '{"a": ]}',
        '{"a": ,}',
        "{,}",
        "[" * 100,
        "",
    ],
)
def test_two_meanings_or_none_are_refused(text: str) -> None:
    with pytest.raises(NotLoose):
        Loose(text).value()


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


def test_it_is_linear() -> None:
    started = time.process_time()
    for text in ("'" + "\\'" * 300_000, "[" + "1," * 300_000, "{" + " " * 600_000, "[" + "'a'," * 200_000 + "]"):
        loose = Loose(text)
        with contextlib.suppress(NotLoose):
            loose.value()
    assert time.process_time() - started < 8
