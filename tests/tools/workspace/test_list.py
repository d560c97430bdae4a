from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from tests.tools.workspace.using import Box
from toolwire.tools.workspace import Limits

pytestmark = pytest.mark.slow


def test_a_tree_with_sizes(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.file("a/b/c.txt", "x" * 2000)
    box.file("z.txt", "12345")
    (box.root / "link").symlink_to("/etc/passwd")
    os.mkfifo(box.root / "pipe")
    assert box.text("list").splitlines() == [
        "./",
        "  a/",
        "    b/",
        "  link -> /etc/passwd",
        "  pipe  (no file)",
        "  z.txt  5 B",
    ]
    assert box.text("list", path="a", depth=5).splitlines() == ["a/", "  b/", "    c.txt  2.0 kB"]


def test_ignored_folders_are_named_and_opened_when_asked(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.file(".gitignore", "node_modules/\n*.log\n")
    box.file("node_modules/m.js")
    box.file("a.log")
    box.file(".git/config")
    lines = box.text("list").splitlines()
    assert "  node_modules/ (ignored)" in lines
    assert "  a.log  0 B (ignored)" in lines
    assert "    m.js  0 B" not in lines
    assert "    m.js  0 B" in box.text("list", include_ignored=True).splitlines()
    assert "    config  0 B" not in box.text("list", include_ignored=True).splitlines()


def test_what_does_not_fit_is_counted(tmp_path: Path) -> None:
    box = Box(tmp_path, limits=Limits(entries=10))
    for number in range(30):
        box.file(f"f{number:02}")
    box.file("a/b")
    text = box.text("list")
    assert "  a/" in text
    assert "[21 more here; use glob with a pattern]" in text
    assert "not every folder is shown" in text
    short = Box(tmp_path, limits=Limits(output_characters=50))
    assert "lines left out" in short.text("list")
    assert len(short.text("list")) < 200


def test_glob_gives_the_newest_first(tmp_path: Path) -> None:
    box = Box(tmp_path)
    for age, path in enumerate(["src/new.py", "src/deep/middle.py", "old.py"]):
        os.utime(box.file(path), (1_000_000 - age, 1_000_000 - age))
    box.file("other.txt")
    assert box.text("glob", pattern="*.py").splitlines() == ["src/new.py", "src/deep/middle.py", "old.py"]
    assert box.text("glob", pattern="*.py", path="src/deep") == "src/deep/middle.py"
    assert box.text("glob", pattern="deep/*.py", path="src") == "src/deep/middle.py"
    assert box.text("glob", pattern="*.rs").startswith("[no file matches")


def test_glob_leaves_out_what_is_ignored_and_links(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.file(".gitignore", "build/\n")
    box.file("build/a.py")
    (box.root / "b.py").symlink_to(box.canary)
    assert box.text("glob", pattern="*.py").startswith("[no file")
    assert box.text("glob", pattern="*.py", include_ignored=True) == "build/a.py"


def test_glob_says_how_many_there_are(tmp_path: Path) -> None:
    box = Box(tmp_path, limits=Limits(entries=5))
    for number in range(12):
        box.file(f"{number}.py")
    lines = box.text("glob", pattern="*.py").splitlines()
    assert len(lines) == 6
    assert lines[-1].startswith("[the newest 5 of 12 files;")
    assert "seconds" in Box(tmp_path, limits=Limits(seconds=0)).text("glob", pattern="*.py")


def test_a_folder_is_needed(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.file("a")
    for name, more in (("list", {}), ("glob", {"pattern": "*"})):
        assert "folder was expected" in box.refusal(name, path="a", **more)
        assert "nothing at" in box.refusal(name, path="b", **more)


@pytest.mark.slow
def test_a_hundred_thousand_files_in_one_folder(tmp_path: Path) -> None:
    box = Box(tmp_path)
    folder = box.root / "many"
    folder.mkdir()
    for number in range(100_000):
        os.close(os.open(folder / f"{number:06}.txt", os.O_CREAT | os.O_WRONLY))
    box.file("many/last.py", "needle")

    async def main() -> None:
        started = time.monotonic()
        listed, found, searched = await asyncio.gather(
            box.start("list"), box.start("glob", pattern="*.py"), box.start("grep", pattern="needle", glob="*.py")
        )
        assert time.monotonic() - started < 20
        assert "99,002 more here" in str(listed)
        assert "many/last.py" in str(found)
        assert "many/last.py:1:needle" in str(searched)

    asyncio.run(main())
