from __future__ import annotations

import asyncio
import fcntl
import os
import time
from pathlib import Path

import pytest

from tests.tools.workspace.using import Box, text_of
from toolwire.tools.workspace import Limits, workspace
from toolwire.tools.workspace.confinement import Root
from toolwire.tools.workspace.limits import Budget, Stopped
from toolwire.tools.workspace.messages import Refused
from toolwire.tools.workspace.write import Write, delete, write

pytestmark = pytest.mark.slow


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def test_a_new_file_gets_its_folders_and_the_usual_mode(tmp_path: Path) -> None:
    box = Box(tmp_path)
    assert box.text("write", path="a/b/c.txt", content="hé\n") == "wrote a/b/c.txt (4 B, new)."
    assert (box.root / "a/b/c.txt").read_bytes() == "hé\n".encode()
    mask = os.umask(0)
    os.umask(mask)
    assert (box.root / "a/b/c.txt").stat().st_mode & 0o777 == 0o666 & ~mask
    assert names(box.root / "a/b") == ["c.txt"]


def test_a_file_that_is_replaced_keeps_its_mode(tmp_path: Path) -> None:
    box = Box(tmp_path)
    place = box.file("run.sh", "old")
    place.chmod(0o750)
    assert box.text("write", path="run.sh", content="new!") == "wrote run.sh (4 B, replaced, before 3 B)."
    box.text("edit", path="run.sh", old_text="new", new_text="newer")
    assert place.read_text() == "newer!"
    assert place.stat().st_mode & 0o777 == 0o750


def test_a_hard_link_to_something_else_is_replaced_not_written_through(tmp_path: Path) -> None:
    box = Box(tmp_path)
    os.link(box.canary, box.root / "hard")
    box.text("write", path="hard", content="mine")
    assert (box.root / "hard").read_text() == "mine"
    assert box.is_untouched()


def test_what_is_not_replaced(tmp_path: Path) -> None:
    box = Box(tmp_path, limits=Limits(file_bytes=10))
    (box.root / "folder").mkdir()
    os.mkfifo(box.root / "pipe")
    box.file("locked", "x").chmod(0o444)
    box.file("file", "x")
    assert "no regular file" in box.refusal("write", path="folder", content="x")
    assert "is a folder" in box.refusal("write", path=".", content="x")
    assert "no regular file" in box.refusal("write", path="pipe", content="x")
    assert "read-only" in box.refusal("write", path="locked", content="x")
    assert "read-only" in box.refusal("edit", path="locked", old_text="x", new_text="y")
    assert "a file where a folder was expected" in box.refusal("write", path="file/x", content="x")
    assert "expected at most 10" in box.refusal("write", path="new", content="x" * 11)
    assert "surrogate" in box.refusal("write", path="new", content="\ud800")
    assert names(box.root) == ["file", "folder", "locked", "pipe"]


def test_edit_makes_no_file_and_no_folder(tmp_path: Path) -> None:
    box = Box(tmp_path)
    assert "nothing at" in box.refusal("edit", path="a/b", old_text="x", new_text="y")
    assert names(box.root) == []


def test_edit_tells_what_it_did(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.file("a", "1\n2\n2\n")
    assert box.text("edit", path="a", old_text="1", new_text="0") == "edited a: 1 passage, in line 1."
    assert "found 2 matches" in box.refusal("edit", path="a", old_text="2", new_text="3")
    assert (
        box.text("edit", path="a", old_text="2", new_text="3", replace_all=True)
        == "edited a: 2 passages, the first in line 2."
    )
    assert (box.root / "a").read_text() == "0\n3\n3\n"


def test_edits_of_one_file_at_once_all_arrive(tmp_path: Path) -> None:
    box = Box(tmp_path)
    place = box.file("a", "".join(f"<{number}>\n" for number in range(40)))
    others = {runnable.tool.name: runnable for runnable in workspace(box.root, allow=("edit",))}

    async def main() -> None:
        tools = (box.tools["edit"], others["edit"])
        outputs = await asyncio.gather(
            *(
                tools[number % 2].run({"path": "a", "old_text": f"<{number}>", "new_text": f"[{number}]"})
                for number in range(40)
            )
        )
        assert [text_of(output) for output in outputs if output.is_error] == []

    asyncio.run(main())
    assert place.read_text() == "".join(f"[{number}]\n" for number in range(40))
    assert names(box.root) == ["a"]


def test_a_folder_that_another_program_has_locked_is_refused_in_the_end(tmp_path: Path) -> None:
    box = Box(tmp_path, limits=Limits(seconds=0.1))
    folder = os.open(box.root, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        assert "try again" in box.refusal("write", path="a", content="x")
    finally:
        os.close(folder)
    assert names(box.root) == []


@pytest.mark.parametrize("delay", [0, 0.001, 0.003, 0.006, 0.01, 0.02])
def test_a_cancelled_write_leaves_the_old_file_or_the_new_one(tmp_path: Path, delay: float) -> None:
    box = Box(tmp_path)
    old, new = "old" * 1000, "new" * 3_000_000
    place = box.file("a", old)

    async def main() -> None:
        task = asyncio.create_task(box.start("write", path="a", content=new))
        await asyncio.sleep(delay)
        task.cancel()
        await asyncio.wait({task})
        at_once = place.read_text()
        assert at_once in (old, new)
        assert names(box.root) == ["a"]
        await asyncio.sleep(0.02)
        assert place.read_text() == at_once

    asyncio.run(main())


def test_a_write_that_is_given_up_just_before_its_end_does_not_happen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = Box(tmp_path)
    place = box.file("a", "old")
    budget = Budget(10)
    monkeypatch.setattr(os, "fsync", lambda file: budget.give_up())
    with pytest.raises(Stopped):
        write(Root(box.root), Limits(), budget, Write(path="a", content="new"))
    assert place.read_text() == "old"
    assert names(box.root) == ["a"]


def test_a_write_that_waits_for_others_can_be_cancelled(tmp_path: Path) -> None:
    box = Box(tmp_path)
    folder = os.open(box.root, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)

    async def main() -> float:
        task = asyncio.create_task(box.start("write", path="a", content="x"))
        await asyncio.sleep(0.05)
        started = time.monotonic()
        task.cancel()
        await asyncio.wait({task})
        return time.monotonic() - started

    try:
        assert asyncio.run(main()) < 1
    finally:
        os.close(folder)
    assert names(box.root) == []


def test_a_file_is_deleted_and_of_a_link_only_the_link(tmp_path: Path) -> None:
    box = Box(tmp_path)
    root = Root(box.root)
    box.file("a.txt", "four")
    box.file(".git/config", "x")
    (box.root / "link").symlink_to("a.txt")
    (box.root / "out").symlink_to(box.canary)
    (box.root / "folder").mkdir()
    assert delete(root, Budget(5), "link") == len("a.txt")
    assert delete(root, Budget(5), "out") > 0
    assert delete(root, Budget(5), "a.txt") == 4
    for path in ("a.txt", "folder", ".", ".git/config", "../outside/canary.txt", str(box.canary)):
        with pytest.raises(Refused):
            delete(root, Budget(5), path)
    assert names(box.root) == [".git", "folder"]
    assert box.is_untouched()


def test_nothing_is_deleted_after_it_was_given_up(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.file("a.txt")
    budget = Budget(5)
    budget.give_up()
    with pytest.raises(Stopped):
        delete(Root(box.root), budget, "a.txt")
    assert names(box.root) == ["a.txt"]
