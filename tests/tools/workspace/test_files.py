from __future__ import annotations

import asyncio
import base64
import fcntl
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.workspace.box import Box, text_of
from toolwire.tools.workspace import Limits, workspace
from toolwire.tools.workspace.confinement import Root, Scope
from toolwire.tools.workspace.files import FilePreview, Replacement, delete, preview_write, replace_text, write
from toolwire.tools.workspace.limits import Budget, Stopped
from toolwire.tools.workspace.messages import ToolRefused
from toolwire.types import Media

_IMAGES = {
    "image/png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    "image/jpeg": b"\xff\xd8\xff\xe0\0\x10JFIF",
    "image/gif": b"GIF89a\x01\0\x01\0",
    "image/webp": b"RIFF\x10\0\0\0WEBPVP8 ",
}


@pytest.mark.parametrize(
    ("path", "before"),
    [("a.txt", b"one\n"), ("new.txt", None), ("no/such/folder/new.txt", None), ("{root}/a.txt", b"one\n")],
)
def test_a_write_can_be_previewed(path: str, before: bytes | None, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    scope = Scope(Root(tmp_path), Limits(), Budget(5.0))
    path = path.format(root=tmp_path)
    assert preview_write(scope, path, "two\n") == FilePreview(path=path, before=before, after=b"two\n")
    assert sorted(os.listdir(tmp_path)) == ["a.txt"]


@pytest.mark.parametrize("path", ["../outside.txt", "/etc/passwd", "folder"])
def test_a_write_that_would_fail_has_no_preview(path: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(ToolRefused):
        preview_write(Scope(Root(tmp_path), Limits(), Budget(5.0)), path, "two")


def test_lines_have_numbers(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.file("a.txt", "one\ntwo\n\nfour")
    assert box.text("read", path="a.txt") == "     1\tone\n     2\ttwo\n     3\t\n     4\tfour"


def test_a_page_has_the_offset_of_the_next_one(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.file("a.txt", "".join(f"{number}\n" for number in range(1, 11)))
    assert (
        box.text("read", path="a.txt", offset=3, limit=2)
        == "     3\t3\n     4\t4\n[lines 3 to 4 of 10; go on with offset 5]"
    )
    assert "go on" not in box.text("read", path="a.txt", offset=9.0, limit=20)
    assert "has 10 lines, found offset 11" in box.refusal("read", path="a.txt", offset=11)


def test_every_line_of_a_long_file_is_on_some_page(tmp_path: Path) -> None:
    box = Box(tmp_path, limits=Limits(lines=7, output_characters=60))
    lines = [f"line {number} " + "x" * (number % 13) for number in range(100)]
    box.file("a.txt", "\n".join(lines))
    seen, offset = list[str](), 1
    while True:
        text = box.text("read", path="a.txt", offset=offset)
        seen += [line.split("\t", 1)[1] for line in text.splitlines() if "\t" in line]
        if "go on" not in text:
            break
        offset = int(text.rpartition("offset ")[2].rstrip("]"))
    assert seen == lines


def test_a_long_line_is_cut_with_a_note(tmp_path: Path) -> None:
    box = Box(tmp_path, limits=Limits(line_characters=10))
    box.file("a.txt", "x" * 5000)
    assert box.text("read", path="a.txt") == "     1\txxxxxxxxxx [... 4,990 more characters in this line]"


def test_one_line_comes_however_little_may_be_given(tmp_path: Path) -> None:
    box = Box(tmp_path, limits=Limits(output_characters=1))
    box.file("a.txt", "one\ntwo\n")
    assert box.text("read", path="a.txt").startswith("     1\tone\n[lines 1 to 1 of 2")


@pytest.mark.parametrize(
    ("data", "shown", "note"),
    [
        (b"", "[the file is empty]", ""),
        (b"\xef\xbb\xbfone\n", "     1\tone", "byte order mark"),
        (b"one\r\ntwo\r\n", "     1\tone\n     2\ttwo", "CRLF"),
        (b"caf\xe9\n", "     1\tcaf\ufffd", "no UTF-8"),
        ("\ufeffhé\n".encode("utf-16-le"), "     1\thé", "UTF-16"),
        (b"GIF89a is a format\n", "     1\tGIF89a is a format", ""),
    ],
)
def test_texts_of_all_kinds(tmp_path: Path, data: bytes, shown: str, note: str) -> None:
    box = Box(tmp_path)
    box.file("a", data)
    text = box.text("read", path="a")
    assert text.startswith(shown)
    assert note in text[len(shown) :]


@pytest.mark.parametrize(("mime", "data"), _IMAGES.items())
def test_images_come_as_images(tmp_path: Path, mime: str, data: bytes) -> None:
    box = Box(tmp_path, limits=Limits(image_bytes=1000))
    box.file("pictures/a.dat", data)
    output = box.use("read", path="pictures/a.dat")
    assert output.parts[1] == Media(kind="image", mime=mime, data=base64.b64encode(data).decode(), name="a.dat")
    assert text_of(output).startswith(f"pictures/a.dat: {mime}, ")
    box.file("b", data + b"\0" * 1000)
    assert "not shown" in text_of(box.use("read", path="b"))
    assert len(box.use("read", path="b").parts) == 1


def test_other_binary_files_are_reported_by_type_and_size(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.file("a.pdf", b"%PDF-1.7\n\0\1\2")
    box.file("a.bin", b"ab\0cd")
    assert "application/pdf, 12 B" in box.text("read", path="a.pdf")
    assert "application/octet-stream, 5 B" in box.text("read", path="a.bin")


def test_too_large_a_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    box = Box(tmp_path, limits=Limits(file_bytes=10))
    box.file("a", "x" * 11)
    assert "expected at most 10" in box.refusal("read", path="a")
    assert "is a folder" in box.refusal("read", path="")
    (box.root / "f").mkdir()
    assert "is a folder" in box.refusal("read", path="f")


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


def test_edit_reports_what_it_did(tmp_path: Path) -> None:
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


def test_a_write_cancelled_just_before_its_end_does_not_happen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    box = Box(tmp_path)
    place = box.file("a", "old")
    budget = Budget(10)
    monkeypatch.setattr(os, "fsync", lambda file: budget.cancel())
    with pytest.raises(Stopped):
        write(Scope(Root(box.root), Limits(), budget), "a", "new")
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
    scope = Scope(Root(box.root), Limits(), Budget(5))
    box.file("a.txt", "four")
    box.file(".git/config", "x")
    (box.root / "link").symlink_to("a.txt")
    (box.root / "out").symlink_to(box.canary)
    (box.root / "folder").mkdir()
    assert delete(scope, "link") == len("a.txt")
    assert delete(scope, "out") > 0
    assert delete(scope, "a.txt") == 4
    for path in ("a.txt", "folder", ".", ".git/config", "../outside/canary.txt", str(box.canary)):
        with pytest.raises(ToolRefused):
            delete(scope, path)
    assert names(box.root) == [".git", "folder"]
    assert box.is_untouched()


def test_nothing_is_deleted_after_cancellation(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.file("a.txt")
    budget = Budget(5)
    budget.cancel()
    with pytest.raises(Stopped):
        delete(Scope(Root(box.root), Limits(), budget), "a.txt")
    assert names(box.root) == ["a.txt"]


def edited(data: bytes, old: str, new: str, *, everywhere: bool = False) -> Replacement:
    return replace_text(data, old, new, everywhere=everywhere, most=1 << 24)


def test_one_passage() -> None:
    assert edited(b"a\nb\nc\n", "b\n", "B\n") == Replacement(data=b"a\nB\nc\n", count=1, line=2)
    assert edited(b"a b a", "a", "x", everywhere=True) == Replacement(data=b"x b x", count=2, line=1)


def test_the_number_of_matches_is_reported() -> None:
    with pytest.raises(ToolRefused, match="found 3 matches, in lines 1, 2, 2; expected 1"):
        edited(b"a\na a\n", "a", "b")
    with pytest.raises(ToolRefused, match=r"found 0 matches, expected 1.*without line numbers"):
        edited(b"a\n", "z", "b")
    with pytest.raises(ToolRefused, match=r"found 11 matches.* and more"):
        edited(b"a\n" * 11, "a", "b")


def test_passages_that_overlap_are_ambiguous() -> None:
    with pytest.raises(ToolRefused, match="found 2 matches"):
        edited(b"aaa", "aa", "b")


def test_a_match_with_other_white_space_is_reported() -> None:
    with pytest.raises(ToolRefused, match="other white space begins in line 2"):
        edited(b"x\n    if a:\n        b\n", "if a:\n  b\n", "c")


@pytest.mark.parametrize(("old", "new"), [("", "a"), ("a", "a"), ("a\ud800", "b"), ("a", "\udfff")])
def test_what_makes_no_sense_is_refused(old: str, new: str) -> None:
    with pytest.raises(ToolRefused, match=r"\.$"):
        edited(b"a", old, new)


def test_line_ends_stay_what_they_are() -> None:
    assert edited(b"a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz").data == b"x\r\ny\r\nz\r\nc\r\n"
    assert edited(b"a\r\nb\r\n", "b", "b\nc").data == b"a\r\nb\r\nc\r\n"
    assert edited(b"a\r\nb\nc\n", "b\nc", "x\ny").data == b"a\r\nx\ny\n"
    assert edited(b"a\r\nb\nc\n", "a\nb", "x\ny").data == b"x\r\ny\nc\n"


def test_bytes_that_are_no_text_stay() -> None:
    assert edited(b"\xef\xbb\xbf\xff\xfe a", "a", "b").data == b"\xef\xbb\xbf\xff\xfe b"
    with pytest.raises(ToolRefused, match="UTF-16"):
        edited("\ufeffab".encode("utf-16-le"), "a", "c")


def test_a_file_never_grows_past_its_bound() -> None:
    with pytest.raises(ToolRefused, match="more than 100 bytes"):
        replace_text(b"a" * 20, "a", "b" * 20, everywhere=True, most=100)


@given(st.binary(max_size=60), st.text("ab\r\n\xe9", min_size=1, max_size=4), st.text("ab\n", max_size=4))
def test_only_the_passage_changes(data: bytes, old: str, new: str) -> None:
    try:
        result = edited(data, old, new)
    except ToolRefused:
        return
    assert result.count == 1
    start = next(
        (at for at, (x, y) in enumerate(zip(data, result.data, strict=False)) if x != y),
        min(len(data), len(result.data)),
    )
    assert data[:start] == result.data[:start]
    assert abs(len(data) - len(result.data)) <= 2 * (len(old.encode()) + len(new.encode()))


def test_a_passage_that_nearly_matches_everywhere_takes_no_time() -> None:
    started = time.monotonic()
    with pytest.raises(ToolRefused):
        edited(b"a\n" * 500_000, "a\n" * 20_000 + "b\n", "c")
    with pytest.raises(ToolRefused):
        edited(b"a" * 1_000_000, "a" * 1000, "c")
    assert time.monotonic() - started < 2
