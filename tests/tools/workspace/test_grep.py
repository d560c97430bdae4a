from __future__ import annotations

import asyncio
import os
import shutil
import stat
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests.thorough import examples
from tests.tools.workspace.box import CANARY, Box, needs_proc, open_below
from toolwire.tools.workspace import Limits
from toolwire.tools.workspace.grep import Hit, Query, find_lines
from toolwire.tools.workspace.limits import Budget
from toolwire.tools.workspace.messages import ToolRefused

pytestmark = pytest.mark.slow

engines = pytest.mark.usefixtures("_engine")


@pytest.fixture(params=["own", "ripgrep"])
def _engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each engine that this machine has."""
    if request.param == "own":
        monkeypatch.setenv("PATH", "/nonexistent")
    elif shutil.which("rg") is None:
        pytest.skip("there is no ripgrep (rg) on PATH here")


@engines
def test_lines_files_and_counts(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.file("a.py", "import os\nx = 1\nimport re\n")
    box.file("b/c.txt", "Import this\n")
    assert box.text("grep", pattern="^import").splitlines() == ["a.py:1:import os", "a.py:3:import re"]
    assert box.text("grep", pattern="^import", ignore_case=True, mode="files").splitlines() == ["a.py", "b/c.txt"]
    assert box.text("grep", pattern="^import", ignore_case=True, mode="count").splitlines() == ["a.py:2", "b/c.txt:1"]
    assert box.text("grep", pattern="import", ignore_case=True, glob="*.txt") == "b/c.txt:1:Import this"
    assert box.text("grep", pattern="x =", context=1).splitlines() == [
        "a.py-1-import os",
        "a.py:2:x = 1",
        "a.py-3-import re",
    ]
    assert box.text("grep", pattern="nowhere") == "[no line matches]"


@engines
def test_one_file_is_searched_also_when_it_is_ignored(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.file(".gitignore", "*.log\n")
    box.file("a.log", "needle\n")
    assert box.text("grep", pattern="needle") == "[no line matches]"
    assert box.text("grep", pattern="needle", path="a.log") == "a.log:1:needle"
    assert box.text("grep", pattern="needle", include_ignored=True) == "a.log:1:needle"


@needs_proc
@engines
def test_more_files_than_are_opened_at_once(tmp_path: Path) -> None:
    box = Box(tmp_path)
    for number in range(600):
        box.file(f"{number:03}", f"needle {number}\n")
    before = open_below(tmp_path)
    assert box.text("grep", pattern=r"needle \d*7$", mode="files").count("\n") == 59
    assert open_below(tmp_path) == before


@engines
def test_binary_links_and_other_things_are_left_out(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.file("a.bin", b"canary\0")
    (box.root / "link").symlink_to(box.canary)
    (box.root / "folder").symlink_to(box.outside)
    os.mkfifo(box.root / "pipe")
    assert box.text("grep", pattern="canary") == "[no line matches]"
    assert CANARY not in box.refusal("grep", pattern="canary", path="link")


@engines
def test_limits_are_reported(tmp_path: Path) -> None:
    box = Box(tmp_path, limits=Limits(matches=5, file_bytes=1000, line_characters=40, entries=3))
    for number in range(6):
        box.file(f"{number}", "needle\n" * 3)
    box.file("large", "needle\n" * 1000)
    box.file("long", "needle" + "x" * 500)
    lines = box.text("grep", pattern="needle").splitlines()
    assert len([line for line in lines if ":needle" in line]) == 5
    assert "[there are more; use a narrower pattern, a glob or a folder as path]" in lines
    assert "[1 files of more than 1,000 bytes were not searched]" in box.text("grep", pattern="nothing")
    assert "more characters in this line" in box.text("grep", pattern="needle", path="long")
    assert box.text("grep", pattern="needle", mode="files").startswith("0\n1\n2\n[there are more;")
    assert "more than 1,000 bytes" in box.refusal("grep", pattern="needle", path="large")
    small = Box(tmp_path, limits=Limits(output_characters=20))
    assert "there are more" in small.text("grep", pattern="needle")


@pytest.mark.parametrize("pattern", ["", "a\nb", "a\0b", "\ud800", "x" * 2001, "(", "a{2,1}"])
def test_invalid_patterns_are_refused(tmp_path: Path, pattern: str) -> None:
    box = Box(tmp_path)
    box.file("a", "a")
    box.refusal("grep", pattern=pattern)
    assert "expected" in box.refusal("grep", pattern="a", mode="all")


def test_a_pattern_that_takes_for_ever_ends_in_time(tmp_path: Path) -> None:
    box = Box(tmp_path, limits=Limits(seconds=0.3))
    box.file("a", "a" * 3000 + "!\n")
    started = time.monotonic()
    assert "stopped after 0.3 seconds" in box.text("grep", pattern=r"(?=(a+)+$)(a+)+$")
    assert time.monotonic() - started < 2


def test_a_cancelled_search_is_over_at_once(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.file("a", "a" * 3000 + "!\n")

    async def main() -> float:
        task = asyncio.create_task(box.start("grep", pattern=r"(?=(a+)+$)(a+)+$"))
        await asyncio.sleep(0.1)
        started = time.monotonic()
        task.cancel()
        await asyncio.wait({task})
        return time.monotonic() - started

    assert asyncio.run(main()) < 1


RIPGREP = shutil.which("rg")
needs_ripgrep = pytest.mark.skipif(RIPGREP is None, reason="there is no ripgrep (rg) on PATH here")


def hits(folder: Path, contents: Sequence[bytes], query: Query, seconds: float = 10) -> list[Hit]:
    files = list[int]()
    try:
        for index, content in enumerate(contents):
            (folder / str(index)).write_bytes(content)
            files.append(os.open(folder / str(index), os.O_RDONLY))
        return find_lines(str(folder), query, files, Budget(seconds))
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


def test_a_pattern_that_no_engine_accepts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolRefused, match=r"no regular expression: .*\.$"):
        hits(tmp_path, [b"a"], Query(pattern="a("))


def test_of_a_long_line_only_the_beginning_is_kept(tmp_path: Path) -> None:
    (found,) = hits(tmp_path, [b"b" + b"a" * 5_000_000 + b"\n"], Query(pattern="^b"))
    assert found.text.startswith("baaa")
    assert len(found.text) < 10_000


def test_the_engine_stops_after_enough_matches(tmp_path: Path) -> None:
    found = hits(tmp_path, [b"a\n" * 200_000], Query(pattern="a", enough=10))
    assert 10 <= len(found) < 200_000


@pytest.mark.usefixtures("_own")
@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(.*)*x", "^(([a-z])+.)+[A-Z]([a-z])+$"])
def test_an_engine_that_takes_for_ever_is_killed(tmp_path: Path, pattern: str) -> None:
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
@examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
