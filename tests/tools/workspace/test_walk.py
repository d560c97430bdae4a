from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.tools.workspace.using import Box
from toolwire.tools.workspace.confinement import Root
from toolwire.tools.workspace.limits import Budget, Limits
from toolwire.tools.workspace.walk import Walk

pytestmark = pytest.mark.slow


def files(
    box: Box, *, limits: Limits | None = None, path: str = ".", with_ignored: bool = False
) -> tuple[list[str], str]:
    root = Root(box.root)
    walk = Walk(root, limits or Limits(), Budget(5), with_ignored=with_ignored)
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


def test_a_walk_that_is_too_deep_or_too_wide_says_so(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.file("a/b/c/d", "")
    for number in range(20):
        box.file(f"wide/{number}")
    found, stopped = files(box, limits=Limits(depth=2))
    assert "a/b/c/d" not in found
    assert "more than 2 deep" in stopped
    found, stopped = files(box, limits=Limits(scanned=10))
    assert len(found) <= 10
    assert stopped == "stopped after 10 files and folders"


def test_leaving_a_walk_closes_its_folders(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.file("a/b/c/d")
    before = len(os.listdir("/dev/fd"))
    root = Root(box.root)
    with root.folder(".") as place:
        walk = Walk(root, Limits(), Budget(5), with_ignored=False).files_below(place)
        assert next(walk).name == "d"
        del walk
    assert len(os.listdir("/dev/fd")) == before
