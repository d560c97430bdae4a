"""Patterns for grammars accept no text that the client's pattern rejects, and no character that JSON escapes."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.thorough import examples
from toolwire.calls.schemas.grammar_patterns import grammar_pattern

PATTERNS = [
    r"^\d{4}-\d{2}-\d{2}$",
    r"^\S+@\S+\.\w+$",
    r"^(foo|bar)-(?:x|y)+?$",
    "^[A-Z]{3}",
    "when",
    "a|bc",
    "^[^@\\s]+$",
    r"^[\w.-]+$",
    "^[ -~]{2,5}$",
    "^.{0,9}$",
    r"^\/[a-z^-]+\/$",
    r"^[\s\S]*$",
    r"^\D\W$",
    "^é?[^a]$",
    r"^\[\]\{\}\(\)\*\+\?\.\|\^\$$",
]


@pytest.mark.parametrize(
    ("pattern", "written"),
    [
        (r"^\d{4}-\d\d$", "^[0-9]{4}-[0-9][0-9]$"),
        (r"^[\w.-]+$", "^[.0-9A-Z_a-z-]+$"),
        ("^(?:ab)+?$", "^(ab)+$"),
        ("^[a-z]{2,}$", "^[a-z]{2,}$"),
        ("^x{0,5000}$", "^x*$"),
        ("^https://", '^https://[^\\x00-\\x1f"\\\\]*$'),
    ],
)
def test_what_grammars_do_not_know_is_written_out(pattern: str, written: str) -> None:
    assert grammar_pattern(pattern) == written


@pytest.mark.parametrize(
    "pattern",
    ["^(?=a)b$", "^(?!a)b$", r"^\bword$", r"^(a)\1$", "(?i)^x$", "^(?i:x)$", '^"x"$', r"^\\x$", "^a{2000}$", r"^\p{L}$", "^(", "a" * 5000],
)  # fmt: skip
def test_a_pattern_without_such_a_form_is_dropped(pattern: str) -> None:
    assert grammar_pattern(pattern) == ""


@pytest.mark.parametrize("pattern", PATTERNS)
def test_it_accepts_only_what_the_pattern_accepts(pattern: str) -> None:
    written = grammar_pattern(pattern)
    assert written

    @examples(25)
    @given(st.from_regex(re.compile(written), fullmatch=True))
    def check(text: str) -> None:
        if text.endswith("\n"):  # a dollar matches before it in Python alone
            return
        assert re.search(pattern, text, re.ASCII)  # the meaning of \d and \w in JSON Schema
        assert json.dumps(text, ensure_ascii=False) == f'"{text}"'

    check()
