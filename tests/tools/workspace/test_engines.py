from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolwire.tools.workspace.engines import Hit, Query, search
from toolwire.tools.workspace.limits import Budget
from toolwire.tools.workspace.messages import Refused

pytestmark = pytest.mark.slow

RIPGREP = shutil.which("rg")
needs_ripgrep = pytest.mark.skipif(RIPGREP is None, reason="there is no ripgrep (rg) on PATH here")


def hits(folder: Path, contents: Sequence[bytes], query: Query, seconds: float = 10) -> list[Hit]:
    files = list[int]()
    try:
        for index, content in enumerate(contents):
            (folder / str(index)).write_bytes(content)
            files.append(os.open(folder / str(index), os.O_RDONLY))
        return search(str(folder), query, files, Budget(seconds))
    finally:
        for file in files:
            os.close(file)


@pytest.fixture
def _own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only our own program, as on a machine without ripgrep."""
    monkeypatch.setenv("PATH", "/nonexistent")


def test_lines_of_several_files(tmp_path: Path) -> None:
    found = hits(tmp_path, [b"a\nb\n", b"", b"xb\r\nb c"], Query(pattern="b"))
    assert found == [Hit(0, 2, True, "b"), Hit(2, 1, True, "xb"), Hit(2, 2, True, "b c")]


def test_a_pattern_that_begins_like_an_option(tmp_path: Path) -> None:
    assert hits(tmp_path, [b"--version\n"], Query(pattern="--version")) == [Hit(0, 1, True, "--version")]


def test_looking_around_works_with_any_engine(tmp_path: Path) -> None:
    assert hits(tmp_path, [b"ab\ncb\n"], Query(pattern="(?<=a)b")) == [Hit(0, 1, True, "ab")]


def test_what_nobody_can_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"no regular expression: .*\.$"):
        hits(tmp_path, [b"a"], Query(pattern="a("))


def test_of_a_long_line_only_the_beginning_is_kept(tmp_path: Path) -> None:
    (found,) = hits(tmp_path, [b"b" + b"a" * 5_000_000 + b"\n"], Query(pattern="^b"))
    assert found.text.startswith("baaa")
    assert len(found.text) < 10_000


def test_enough_is_enough(tmp_path: Path) -> None:
    found = hits(tmp_path, [b"a\n" * 200_000], Query(pattern="a", enough=10))
    assert 10 <= len(found) < 200_000


@pytest.mark.usefixtures("_own")
@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(.*)*x", "^(([a-z])+.)+[A-Z]([a-z])+$"])
def test_a_pattern_that_takes_for_ever_is_ended(tmp_path: Path, pattern: str) -> None:
    started = time.monotonic()
    assert hits(tmp_path, [b"a" * 5000 + b"!"], Query(pattern=pattern), 0.2) == []
    assert time.monotonic() - started < 2


def test_a_program_in_the_root_is_never_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "rg"
    fake.write_text(f"#!/bin/sh\ntouch {tmp_path}/was-run\n")
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert hits(tmp_path, [b"a\n"], Query(pattern="a")) == [Hit(0, 1, True, "a")]
    assert not (tmp_path / "was-run").exists()


# No carriage return but at the end of a line: to ripgrep it is no white space anywhere else.
_PIECES = ["a", "b", ".", "\r\n", "\n", "\t", " ", "é", "\ufeff", "AB"]
_TEXT = st.lists(st.sampled_from(_PIECES), max_size=30).map(lambda pieces: "".join(pieces).encode())


@needs_ripgrep
@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    contents=st.lists(_TEXT, min_size=1, max_size=3),
    pattern=st.sampled_from(["a", "^a", "a$", "a.b", "é", r"\s", "[ab]+", "^$", "b|é", r"\bab"]),
    context=st.integers(0, 2),
    most=st.integers(0, 2),
    counting=st.booleans(),
    ignore_case=st.booleans(),
)
def test_both_engines_give_the_same(
    tmp_path: Path, contents: list[bytes], pattern: str, context: int, most: int, counting: bool, ignore_case: bool
) -> None:
    if most or counting:
        context = 0  # past the last match that was wanted, ripgrep goes by its version
    query = Query(pattern=pattern, context=context, most=most, counting=counting, ignore_case=ignore_case)
    first = hits(tmp_path, contents, query)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", "/nonexistent")
        assert hits(tmp_path, contents, query) == first
