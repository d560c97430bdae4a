from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from tests.tools.workspace.box import Box, needs_proc, open_below
from toolwire.tools.workspace import Limits
from toolwire.tools.workspace.confinement import Root, Scope
from toolwire.tools.workspace.folders import Walk
from toolwire.tools.workspace.limits import Budget


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


def files(
    box: Box, *, limits: Limits | None = None, path: str = ".", with_ignored: bool = False
) -> tuple[list[str], str]:
    root = Root(box.root)
    walk = Walk(Scope(root, limits or Limits(), Budget(5)), with_ignored=with_ignored)
    with root.folder(path) as place:
        found = ["/".join(entry.parts) for entry in walk.files_below(place)]
    return found, walk.stopped


def test_files_in_order_without_links_and_git(tmp_path: Path) -> None:
    box = Box(tmp_path)
    for path in ("b", "a/z", "a/b/c", ".git/config", ".hidden"):
        box.file(path)
    (box.root / "link").symlink_to(box.outside)
    (box.root / "a" / "up").symlink_to("..")
    os.mkfifo(box.root / "pipe")
    assert files(box) == ([".hidden", "a/b/c", "a/z", "b"], "")


def test_ignore_files_of_the_folders_above_count_but_none_above_the_root(tmp_path: Path) -> None:
    box = Box(tmp_path)
    (tmp_path / ".gitignore").write_text("*\n")
    box.file(".gitignore", "*.log\nnode_modules/\n")
    box.file("a/.gitignore", "!keep.log\n")
    for path in ("a/x.log", "a/keep.log", "a/b/y.log", "node_modules/m.js", "c"):
        box.file(path)
    assert files(box)[0] == [".gitignore", "a/.gitignore", "a/keep.log", "c"]
    assert files(box, path="a/b")[0] == []
    assert files(box, path="node_modules")[0] == ["node_modules/m.js"]
    assert "a/b/y.log" in files(box, with_ignored=True)[0]


def test_an_ignore_file_that_is_a_link_is_not_read(tmp_path: Path) -> None:
    box = Box(tmp_path)
    (box.outside / "rules").write_text("*\n")
    (box.root / ".gitignore").symlink_to(box.outside / "rules")
    box.file("a")
    assert files(box)[0] == ["a"]


def test_a_walk_that_hits_a_limit_reports_it(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.file("a/b/c/d", "")
    for number in range(20):
        box.file(f"wide/{number}")
    found, stopped = files(box, limits=Limits(depth=2))
    assert "a/b/c/d" not in found
    assert stopped == "depth"
    found, stopped = files(box, limits=Limits(scanned=10))
    assert len(found) <= 10
    assert stopped == "scanned"


@needs_proc
def test_leaving_a_walk_closes_its_folders(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.file("a/b/c/d")
    before = open_below(tmp_path)
    root = Root(box.root)
    with root.folder(".") as place:
        walk = Walk(Scope(root, Limits(), Budget(5))).files_below(place)
        assert next(walk).name == "d"
        del walk
    assert open_below(tmp_path) == before
