"""What foreign text may still do to a terminal: nothing."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from toolwire.cli.chat.escape import cut, json_safe, one_line, safe

pytestmark = pytest.mark.slow

ANY = st.text(st.characters(exclude_categories=()))


def test_what_people_write_stays() -> None:
    text = "Zeile\n\tπ 漢字 👩‍👩‍👧 می\u200cخواهم é עברית\u200f."
    assert safe(text) == text


def test_what_acts_is_spelled_out() -> None:
    assert safe("\x1b[2J\x9b1m\x7f\u202e\ufeff\ud800\U000e0041") == (
        "\\x1b[2J\\x9b1m\\x7f\\u202e\\ufeff\\ud800\\U000e0041"
    )


def test_ends_of_lines() -> None:
    assert safe("a\r\nb\rc") == "a\nb\\x0dc"
    assert one_line("  {\n   a,\r\n\tb\tc}") == "  { a, b    c}"


@given(ANY)
def test_nothing_acts_but_ends_of_lines_and_tabs(text: str) -> None:
    shown = safe(text)
    assert all(char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cs", "Zl", "Zp") for char in shown)
    assert not set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069") & set(shown)
    assert "\n" not in one_line(text)
    assert safe(shown) == shown
    shown.encode()


@given(ANY, st.integers(4, 100))
def test_a_cut_line_fits(text: str, columns: int) -> None:
    line = one_line(text)
    shown = cut(line, columns)
    assert cell_len(shown) <= columns
    assert shown == line or shown.endswith("...")


def test_a_tower_of_marks_is_cut_too() -> None:
    assert len(cut("e" + "\u0301" * 10_000, 80)) <= 80


@given(ANY)
def test_json_stays_the_same_json(text: str) -> None:
    written = json.dumps(text, ensure_ascii=False)
    shown = json_safe(written)
    assert safe(shown) == shown
    # Two halves that stand beside each other become one character on their way through JSON.
    assert json.loads(shown).encode("utf-16", "surrogatepass") == text.encode("utf-16", "surrogatepass")
