from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.thorough import examples
from toolwire.tools.workspace.messages import ToolRefused
from toolwire.tools.workspace.patterns import IgnoreFile, Patterns, is_ignored


@pytest.mark.parametrize(
    ("pattern", "path", "is_match"),
    [
        ("*.py", "a.py", True),
        ("*.py", "deep/down/a.py", True),
        ("*.py", "a.pyc", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/b/a.py", False),
        ("src/*.py", "x/src/a.py", False),
        ("/a.py", "a.py", True),
        ("/a.py", "b/a.py", False),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/b/c/a.py", True),
        ("**/b/*.py", "a/b/c.py", True),
        ("**", "a/b", True),
        ("a/**", "a/b/c", True),
        ("a/**", "a", False),
        ("a/**/b/**/c", "a/x/b/y/b/c", True),
        ("*.{js,ts}", "a/b.ts", True),
        ("{src,test}/{a,b}.py", "test/b.py", True),
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("[a-c].txt", "b.txt", True),
        ("[!a-c].txt", "b.txt", False),
        ("[^a-c].txt", "d.txt", True),
        (r"\*.txt", "a.txt", False),
        (r"\*.txt", "*.txt", True),
        ("[", "[", True),
        ("./src/a", "src/a", True),
        (".*", ".env", True),
    ],
)
def test_what_a_pattern_means(pattern: str, path: str, is_match: bool) -> None:
    assert Patterns(pattern).matches(path.split("/")) is is_match


@pytest.mark.parametrize("pattern", ["", "/", "../*", "a/../b", "x" * 1001, "{a,b}" * 8])
def test_a_pattern_that_is_refused(pattern: str) -> None:
    with pytest.raises(ToolRefused, match=r"\.$"):
        Patterns(pattern)


@pytest.mark.parametrize("pattern", ["*a" * 400 + "b", "**/" * 300 + "b", "?*" * 400 + "b", "**/a*/" * 150 + "b"])
def test_no_pattern_takes_long(pattern: str) -> None:
    started = time.process_time()
    Patterns(pattern).matches(["a" * 255] * 100)
    assert time.process_time() - started < 0.5


def ignored(text: str, path: str, *, is_folder: bool = False) -> bool:
    return is_ignored([IgnoreFile(text, 0)], path.split("/"), is_folder=is_folder)


def test_ignore_lines() -> None:
    text = "# comment\n*.log\n!keep.log\nbuild/\n/only-here\na/b\n\\#odd\ntrailing   \n"
    assert ignored(text, "x/y.log")
    assert not ignored(text, "x/keep.log")
    assert ignored(text, "x/build", is_folder=True)
    assert not ignored(text, "x/build")
    assert ignored(text, "only-here")
    assert not ignored(text, "x/only-here")
    assert ignored(text, "a/b")
    assert not ignored(text, "x/a/b")
    assert ignored(text, "#odd")
    assert ignored(text, "trailing")


def test_the_deepest_file_decides() -> None:
    files = [IgnoreFile("*.log\n", 0), IgnoreFile("!a.log\n/b.txt\n", 1)]
    assert not is_ignored(files, ["x", "a.log"], is_folder=False)
    assert is_ignored(files, ["x", "c.log"], is_folder=False)
    assert is_ignored(files, ["x", "b.txt"], is_folder=False)
    assert not is_ignored(files, ["x", "y", "b.txt"], is_folder=False)


@pytest.mark.parametrize("line", ["//?", "//a", "a//", "!//a", "a//b"])
def test_a_line_with_an_empty_name_means_nothing(line: str) -> None:
    assert not ignored(line, "a", is_folder=True)
    assert not ignored(line, "a/b", is_folder=False)
    assert ignored(f"a\n{line}", "a", is_folder=True)


_LINES = st.lists(
    st.text("ab*?/!.[]-", min_size=1, max_size=6).filter(lambda line: not line.startswith("#")), min_size=1, max_size=4
)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("git") is None, reason="git is the judge, and there is none here")
@examples(150)
@given(lines=_LINES, path=st.lists(st.text("ab.", min_size=1, max_size=3), min_size=1, max_size=3))
def test_git_agrees(lines: list[str], path: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    if any(name in (".", "..") for name in path):
        return
    folder = tmp_path_factory.mktemp("git")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    (folder / ".gitignore").write_text("\n".join(lines) + "\n")
    file = folder.joinpath(*path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("")
    judged = subprocess.run(["git", "check-ignore", "-q", "--no-index", "/".join(path)], cwd=folder, check=False)
    ours = any(
        ignored("\n".join(lines), "/".join(path[:depth]), is_folder=depth < len(path))
        for depth in range(1, len(path) + 1)
    )
    assert ours == (judged.returncode == 0), Path(*path)
