from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.backends.cursor.local_running import answer, is_declined, read, workspace_in
from toolwire.backends.cursor.wire import agent
from toolwire.tools.workspace.limits import Limits

pytestmark = pytest.mark.slow


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return workspace_in(tmp_path)


def test_a_file_is_read_to_the_byte(place: Path) -> None:
    (place / "a.txt").write_bytes("eins\r\nzwei ü\nno break".encode())
    success = read(place, "a.txt").success
    assert success.content.encode() == (place / "a.txt").read_bytes()
    assert (success.total_lines, success.file_size, success.truncated) == (3, 22, False)
    assert read(place, str(place / "a.txt")).success.content == success.content


def test_lines_are_read_by_offset_and_limit(place: Path) -> None:
    (place / "a.txt").write_text("1\n2\n3\n4\n")
    result = answer(place, "read", agent.ReadArgs(path="a.txt", offset=2, limit=2)).success
    assert (result.content, result.range_applied, result.total_lines) == ("2\n3\n", True, 4)
    assert answer(place, "read", agent.ReadArgs(path="a.txt", offset=-1)).success.content == "4\n"
    assert answer(place, "pi_read", agent.PiReadExecArgs(path="a.txt", offset=4)).success.output == "4\n"


def test_a_missing_file_is_told_as_such(place: Path) -> None:
    assert read(place, "none.txt").WhichOneof("result") == "file_not_found"
    assert read(place, "none/none.txt").WhichOneof("result") == "file_not_found"
    assert answer(place, "pi_read", agent.PiReadExecArgs(path="none")).WhichOneof("result") == "error"


def test_a_file_is_written_with_its_folders(place: Path) -> None:
    args = agent.WriteArgs(path="deep/er/a.txt", file_text="a\nb", return_file_content_after_write=True)
    success = answer(place, "write", args).success
    assert (place / "deep/er/a.txt").read_text() == "a\nb"
    assert (success.lines_created, success.file_size, success.file_content_after_write) == (2, 3, "a\nb")
    written = answer(place, "write", agent.WriteArgs(path="b.txt", file_bytes="ü".encode())).success
    assert (place / "b.txt").read_text() == "ü"
    assert written.file_size == 2
    assert is_declined(answer(place, "write", agent.WriteArgs(path="c.bin", file_bytes=b"\xff\xfe")))
    assert "wrote" in answer(place, "pi_write", agent.PiWriteExecArgs(path="d.txt", content="d")).success.output


def test_several_edits_are_made_or_none(place: Path) -> None:
    (place / "a.txt").write_text("one two three\n")
    edits = [agent.PiEditReplacement(old_text="one", new_text="1"), agent.PiEditReplacement(old_text="x", new_text="y")]
    result = answer(place, "pi_edit", agent.PiEditExecArgs(path="a.txt", edits=edits))
    assert result.WhichOneof("result") == "error"
    assert (place / "a.txt").read_text() == "one two three\n"
    edits[1].old_text = "three"
    assert answer(place, "pi_edit", agent.PiEditExecArgs(path="a.txt", edits=edits)).success.output
    assert (place / "a.txt").read_text() == "1 two y\n"


def test_huge_files_are_not_read_whole(place: Path) -> None:
    with (place / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    assert "bytes" in read(place, "sparse").error.error
    (place / "large.txt").write_text("line\n" * 1_000_000)
    assert "offset and limit" in read(place, "large.txt").error.error
    part = answer(place, "read", agent.ReadArgs(path="large.txt", offset=999_999, limit=5)).success
    assert (part.content, part.total_lines) == ("line\nline\n", 1_000_000)
    assert answer(place, "grep", agent.GrepArgs(pattern="line", path="sparse")).WhichOneof("result") == "error"
    too_much = agent.WriteArgs(path="b", file_text="x" * 2000)
    assert is_declined(answer(place, "write", too_much, limits=Limits(file_bytes=1000)))


def test_binary_files_are_told_as_such(place: Path) -> None:
    (place / "a.bin").write_bytes(b"needle\0\x01\x02" * 100)
    (place / "latin.txt").write_bytes("grün".encode("latin-1"))
    (place / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(50))
    assert read(place, "a.bin").WhichOneof("result") == "invalid_file"
    assert read(place, "latin.txt").WhichOneof("result") == "invalid_file"
    assert read(place, "a.png").success.data.startswith(b"\x89PNG")
    assert is_declined(read(place, "a.png", limits=Limits(image_bytes=10)))
    assert "binary" in answer(place, "pi_read", agent.PiReadExecArgs(path="a.bin")).error.error
    found = answer(place, "grep", agent.GrepArgs(pattern="needle")).success
    assert not found.workspace_results[str(place)].content.matches


def test_no_pipe_or_device_is_opened(place: Path) -> None:
    os.mkfifo(place / "pipe")
    assert is_declined(read(place, "pipe"))
    assert is_declined(answer(place, "write", agent.WriteArgs(path="pipe", file_text="x")))
