from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.tools.workspace.edit import Edited, encoded, replaced
from toolwire.tools.workspace.messages import Refused

pytestmark = pytest.mark.slow


def edited(data: bytes, old: str, new: str, *, everywhere: bool = False) -> Edited:
    return replaced(data, old, new, everywhere=everywhere, most=1 << 24)


def test_one_passage() -> None:
    assert edited(b"a\nb\nc\n", "b\n", "B\n") == Edited(data=b"a\nB\nc\n", count=1, line=2)
    assert edited(b"a b a", "a", "x", everywhere=True) == Edited(data=b"x b x", count=2, line=1)


def test_how_many_matches_there_are_is_told() -> None:
    with pytest.raises(Refused, match="found 3 matches, in lines 1, 2, 2; expected 1"):
        edited(b"a\na a\n", "a", "b")
    with pytest.raises(Refused, match=r"found 0 matches, expected 1.*without line numbers"):
        edited(b"a\n", "z", "b")
    with pytest.raises(Refused, match=r"found 11 matches.* and more"):
        edited(b"a\n" * 11, "a", "b")


def test_passages_that_overlap_are_ambiguous() -> None:
    with pytest.raises(Refused, match="found 2 matches"):
        edited(b"aaa", "aa", "b")


def test_other_white_space_is_found_and_told() -> None:
    with pytest.raises(Refused, match="other white space begins in line 2"):
        edited(b"x\n    if a:\n        b\n", "if a:\n  b\n", "c")


@pytest.mark.parametrize(("old", "new"), [("", "a"), ("a", "a"), ("a\ud800", "b"), ("a", "\udfff")])
def test_what_makes_no_sense_is_refused(old: str, new: str) -> None:
    with pytest.raises(Refused, match=r"\.$"):
        edited(b"a", old, new)


def test_line_ends_stay_what_they_are() -> None:
    assert edited(b"a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz").data == b"x\r\ny\r\nz\r\nc\r\n"
    assert edited(b"a\r\nb\r\n", "b", "b\nc").data == b"a\r\nb\r\nc\r\n"
    assert edited(b"a\r\nb\nc\n", "b\nc", "x\ny").data == b"a\r\nx\ny\n"
    assert edited(b"a\r\nb\nc\n", "a\nb", "x\ny").data == b"x\r\ny\nc\n"


def test_bytes_that_are_no_text_stay() -> None:
    assert edited(b"\xef\xbb\xbf\xff\xfe a", "a", "b").data == b"\xef\xbb\xbf\xff\xfe b"
    with pytest.raises(Refused, match="UTF-16"):
        edited("\ufeffab".encode("utf-16-le"), "a", "c")


def test_a_file_never_grows_past_its_bound() -> None:
    with pytest.raises(Refused, match="more than 100 bytes"):
        replaced(b"a" * 20, "a", "b" * 20, everywhere=True, most=100)


@given(st.binary(max_size=60), st.text("ab\r\n\xe9", min_size=1, max_size=4), st.text("ab\n", max_size=4))
def test_only_the_passage_changes(data: bytes, old: str, new: str) -> None:
    try:
        result = edited(data, old, new)
    except Refused:
        return
    assert result.count == 1
    start = next(
        (at for at, (x, y) in enumerate(zip(data, result.data, strict=False)) if x != y),
        min(len(data), len(result.data)),
    )
    assert data[:start] == result.data[:start]
    assert abs(len(data) - len(result.data)) <= 2 * (len(encoded(old, "")) + len(encoded(new, "")))


def test_a_passage_that_nearly_matches_everywhere_takes_no_time() -> None:
    started = time.monotonic()
    with pytest.raises(Refused):
        edited(b"a\n" * 500_000, "a\n" * 20_000 + "b\n", "c")
    with pytest.raises(Refused):
        edited(b"a" * 1_000_000, "a" * 1000, "c")
    assert time.monotonic() - started < 2
