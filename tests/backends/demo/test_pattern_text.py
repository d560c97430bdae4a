"""Patterns: samples fit by Python's own engine, matching agrees with it, and hostile patterns end soon."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.backends.schema_family import PATTERNS
from toolwire.backends.demo.pattern_text import UnknownPattern, fits, parse, sample


def spend(steps: int) -> None:
    pass


def does_fit(pattern: str, text: str) -> bool:
    return fits(parse(pattern), text, spend)


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("variant", range(4))
def test_samples_fit(pattern: str, variant: int) -> None:
    text = sample(parse(pattern), variant, stretch=variant)
    if "\\b" not in pattern and "?!" not in pattern:
        assert re.search(pattern, text)
    assert does_fit(pattern, text) == bool(re.search(pattern, text))


pieces = st.sampled_from(
    ["a", "b", ".", "[ab]", "[^a]", "\\d", "\\W", "^", "$", "(?=a)", "(?!b)", "\\b", "[a-c1]", "\\."]
)
patterns = st.recursive(
    pieces,
    lambda inner: st.one_of(
        st.builds("".join, st.lists(inner, min_size=1, max_size=3)),
        st.builds("({}|{})".format, inner, inner),
        st.builds("(?:{}){}".format, inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{1,}", "*?"])),
    ),
    max_leaves=6,
)


@settings(max_examples=400, deadline=None)
@given(patterns, st.text(alphabet="ab1. -", max_size=8))
def test_matching_agrees_with_the_standard_library(pattern: str, text: str) -> None:
    # Python's $ also matches before a last line feed; the alphabet has none.
    assert does_fit(pattern, text) == bool(re.search(pattern, text, re.ASCII))


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("^\\u00e9\\x41$", "éA", True),
        ("^(?<year>\\d{4})$", "2025", True),
        ("^[\\w-]+$", "a-b", True),
        ("^[a\\-z]$", "b", False),
        ("^[]$", "a", False),
        ("^[^]$", "a", True),
        ("^[\\D]$", "1", False),
        ("^$", "\n", False),
        ("", "anything", True),
    ],
)
def test_what_differs_from_python(pattern: str, text: str, expected: bool) -> None:
    assert does_fit(pattern, text) is expected


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        ")",
        "[a",
        "a{",
        "a{x}",
        "*",
        "(?<=a)b",
        "(?<!a)b",
        "\\1",
        "\\p{L}",
        "\\u12",
        "(?i)a",
        "(" * 60,
        "a" * 3000,
        "\\",
    ],
)
def test_what_is_not_understood_is_said(pattern: str) -> None:
    with pytest.raises(UnknownPattern):
        parse(pattern)


@pytest.mark.parametrize("pattern", ["a{10001}", "(a{1000}){1000}", "[^\\s\\S]"])
def test_what_cannot_be_written_is_said(pattern: str) -> None:
    with pytest.raises(UnknownPattern):
        sample(parse(pattern))


def test_a_pattern_that_backtracks_for_ever_elsewhere_does_not_here() -> None:
    begun = time.process_time()
    assert not does_fit("^(a+)+$", "a" * 300 + "!")
    assert not does_fit("^(a|aa)*b$", "a" * 300)
    assert time.process_time() - begun < 1


def test_work_is_told_and_can_be_stopped() -> None:
    class Enough(Exception):
        pass

    def stop(steps: int) -> None:
        raise Enough

    with pytest.raises(Enough):
        fits(parse("a"), "a", stop)
