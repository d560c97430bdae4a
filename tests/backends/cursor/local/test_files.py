from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.backends.cursor.local.exec_results import answer, is_declined, read, workspace_in
from toolwire.backends.cursor.wire import agent
from toolwire.tools.workspace.limits import Limits


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


def test_a_missing_file_is_reported_as_missing(place: Path) -> None:
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


def test_binary_files_are_reported_as_such(place: Path) -> None:
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


def test_a_folder_is_a_tree_with_counts(place: Path) -> None:
    (place / "src/inner").mkdir(parents=True)
    for name in ("a.py", "src/b.py", "src/inner/c.txt", "src/inner/Makefile", "src/x.log"):
        (place / name).touch()
    (place / ".gitignore").write_text("*.log\n")
    root = answer(place, "ls", agent.LsArgs(path=str(place))).success.directory_tree_root
    assert root.abs_path == str(place)
    assert root.children_were_processed
    assert {file.name for file in root.children_files} == {".gitignore", "a.py"}
    (source,) = root.children_dirs
    assert (source.abs_path, source.num_files) == (f"{place}/src", 3)
    assert dict(root.full_subtree_extension_counts) == {".py": 2, ".txt": 1, "": 2}
    assert root.num_files == 5
    ignoring = answer(place, "ls", agent.LsArgs(path=".", ignore=["src"])).success.directory_tree_root
    assert not ignoring.children_dirs
    assert answer(place, "pi_ls", agent.PiLsExecArgs()).success.output.startswith("src/")


def test_a_tree_has_a_bound(place: Path) -> None:
    for number in range(30):
        (place / f"{number}.txt").touch()
    root = answer(place, "ls", agent.LsArgs(path="."), limits=Limits(entries=10)).success.directory_tree_root
    assert len(root.children_files) == 10
    assert not root.children_were_processed
    assert root.num_files == 30


def test_lines_are_found_by_file(place: Path) -> None:
    (place / "a.py").write_text("x\nneedle 1\ny\n")
    (place / "b.txt").write_text("needle 2\nNeedle 3\n")
    found = answer(place, "grep", agent.GrepArgs(pattern="needle", context=1)).success
    content = found.workspace_results[str(place)].content
    assert [file.file for file in content.matches] == ["a.py", "b.txt"]
    assert [(line.line_number, line.is_context_line) for line in content.matches[0].matches] == [
        (1, True),
        (2, False),
        (3, True),
    ]
    assert content.total_matched_lines == 2
    counted = answer(
        place, "grep", agent.GrepArgs(pattern="needle", output_mode="count", case_insensitive=True)
    ).success
    assert counted.workspace_results[str(place)].count.total_matches == 3
    files = answer(place, "grep", agent.GrepArgs(pattern="needle", output_mode="files_with_matches", glob="*.py"))
    assert list(files.success.workspace_results[str(place)].files.files) == ["a.py"]
    typed = answer(place, "grep", agent.GrepArgs(pattern="needle", type="python", path="."))
    assert typed.success.workspace_results[str(place)].content.total_matched_lines == 1
    pi = answer(place, "pi_grep", agent.PiGrepExecArgs(pattern="needle 1", literal=True))
    assert pi.success.output == "a.py:2:needle 1"


def test_a_search_without_pattern_is_for_names(place: Path) -> None:
    (place / "src").mkdir()
    (place / "src/a.py").touch()
    (place / "b.txt").touch()
    found = answer(place, "grep", agent.GrepArgs(glob="**/*.py")).success
    assert list(found.workspace_results[str(place)].files.files) == ["src/a.py"]
    assert answer(place, "pi_find", agent.PiFindExecArgs(pattern="*.txt")).success.output == "b.txt"


def test_a_pattern_that_cannot_be_read_is_an_error(place: Path) -> None:
    (place / "a.txt").write_text("x\n")
    assert is_declined(answer(place, "grep", agent.GrepArgs(pattern="(")))
    assert is_declined(answer(place, "grep", agent.GrepArgs(pattern="a\nb")))
    assert is_declined(answer(place, "grep", agent.GrepArgs(pattern="x", output_mode="poem")))
