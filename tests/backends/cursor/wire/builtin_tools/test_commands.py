from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests.backends.cursor.wire.client_tools import BASH, client, fits, map_to_client, result
from tests.thorough import examples
from toolwire.backends.cursor.wire import agent
from toolwire.backends.cursor.wire.builtin_tools.commands import MAX_LENGTH, command_of, framed_output, in_folder
from toolwire.backends.cursor.wire.builtin_tools.mapper import map_exec
from toolwire.backends.cursor.wire.builtin_tools.requests import ToolRequest
from toolwire.backends.cursor.wire.execs import Exec

NAMES = [
    "plain.txt",
    "it's",
    'a "quoted" name',
    "$(touch bad)",
    "`touch bad`",
    "; touch bad;",
    "-rf",
    "--help",
    "two\nlines",
    "back\\slash",
    "sp  ace*?[x]",
    "ümlaut",
    "!history",
    "~",
]


def run(command: str, folder: Path, shell: str = "bash") -> str:
    done = subprocess.run(
        [shell, "-c", command], cwd=folder, capture_output=True, text=True, errors="replace", timeout=20, check=False
    )
    return done.stdout + done.stderr


def run_command(kind: str, args: Any, folder: Path, *, wrapped: bool = False, shell: str = "bash") -> Any:
    """Run as the client would, and answered with what it printed."""
    call = map_to_client(kind, args, [BASH])
    output = run(call.args["command"], folder, shell)
    if wrapped:
        output = f"Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\n{output}"
    return result(call, output)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_files_of_any_name_are_written_read_listed_found_and_deleted(tmp_path: Path, name: str) -> None:
    path, text = f"{name}/{name}", f"needle '{name}' $(touch bad)\nlast"
    assert run_command("write", agent.WriteArgs(path=path, file_text=text), tmp_path).success.file_size == len(
        text.encode()
    )
    assert (tmp_path / name / name).read_text() == text
    assert run_command("read", agent.ReadArgs(path=path), tmp_path, wrapped=True).success.content == text
    tree = run_command("ls", agent.LsArgs(path=name), tmp_path).success.directory_tree_root
    assert [file.name for file in tree.children_files] == name.split("\n")
    hits = run_command("grep", agent.GrepArgs(pattern="needle", path=name), tmp_path).success
    assert "needle" in hits.workspace_results[name].content.matches[0].matches[0].content
    found = (
        run_command("grep", agent.GrepArgs(glob="*", path=name), tmp_path).success.workspace_results[name].files.files
    )
    assert "\n".join(found).endswith(name)
    assert run_command("delete", agent.DeleteArgs(path=path), tmp_path).success.deleted_file == path
    assert not (tmp_path / name / name).exists()
    assert not list(tmp_path.rglob("bad"))


@pytest.mark.parametrize("name", NAMES)
def test_a_command_begins_in_a_folder_of_any_name(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    assert run(in_folder("pwd -P # no more", name), tmp_path) == f"{tmp_path / name}\n"
    assert "bad" not in run(in_folder("touch bad", "missing"), tmp_path) or not (tmp_path / "bad").exists()
    assert not list(tmp_path.rglob("bad"))


@pytest.mark.slow
@examples(15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(codec="utf-8"), max_size=300))
def test_any_text_is_written_and_read_to_the_byte(tmp_path: Path, text: str) -> None:
    if "\0" not in text:
        assert run_command("write", agent.WriteArgs(path="f", file_text=text), tmp_path).success.file_size == len(
            text.encode()
        )
        assert (tmp_path / "f").read_bytes() == text.encode()
    if not set(text) & set("\0\r"):
        assert run_command("read", agent.ReadArgs(path="f"), tmp_path).success.content == text


def test_bytes_are_written_as_they_are(tmp_path: Path) -> None:
    data = bytes(range(256))
    assert run_command("write", agent.WriteArgs(path="deep/f", file_bytes=data), tmp_path).success.file_size == 256
    assert (tmp_path / "deep/f").read_bytes() == data


def test_a_file_with_our_own_marks_is_read_whole(tmp_path: Path) -> None:
    text = "toolwire-end 0\ntoolwire-begin 1 1\ntoolwire-none\n\n"
    (tmp_path / "f").write_text("x" + text)
    assert run_command("read", agent.ReadArgs(path="f"), tmp_path).success.content == "x" + text


def test_some_lines_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("1\n2\n3\n4\n")
    part = run_command("read", agent.ReadArgs(path="f", offset=2, limit=2), tmp_path).success
    assert (part.content, part.range_applied, part.total_lines, part.file_size) == ("2\n3\n", True, 4, 8)
    assert run_command("read", agent.ReadArgs(path="f", offset=3), tmp_path).success.content == "3\n4\n"
    assert not run_command("read", agent.ReadArgs(path="f", offset=-2), tmp_path).success.range_applied


def test_what_is_not_there_is_reported_as_such(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    assert run_command("read", agent.ReadArgs(path="none"), tmp_path).WhichOneof("result") == "file_not_found"
    assert "folder" in run_command("read", agent.ReadArgs(path="folder"), tmp_path).error.error
    assert run_command("delete", agent.DeleteArgs(path="none"), tmp_path).WhichOneof("result") == "file_not_found"
    assert run_command("write", agent.WriteArgs(path="folder", file_text="x"), tmp_path).WhichOneof("result") == "error"


def test_a_file_that_came_in_part_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("line\n" * 1000)
    call = map_to_client("read", agent.ReadArgs(path="f"), [BASH])
    output = run(call.args["command"], tmp_path)
    assert result(call, output).success.content == "line\n" * 1000
    middle = output[:500] + "\n[... omitted 900 of 1000 lines ...]\n" + output[-500:]
    for cut in (middle, output[:500], output[-500:], output.replace("line\n", "line \n"), ""):
        assert result(call, cut).WhichOneof("result") == "error"


def test_a_binary_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"\xff\xfe\0\1")
    assert run_command("read", agent.ReadArgs(path="f"), tmp_path).WhichOneof("result") == "error"


@pytest.mark.slow
def test_lines_and_names_are_searched_as_asked(tmp_path: Path) -> None:
    (tmp_path / "src/deep").mkdir(parents=True)
    (tmp_path / "src/deep/a.py").write_text("Needle\nother\n")
    (tmp_path / "src/b.ts").write_text("needle\n")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/c.py").write_text("needle\n")

    def files(**args: Any) -> set[str]:
        found = run_command("grep", agent.GrepArgs(**args), tmp_path).success.workspace_results["."].files.files
        return {file.removeprefix("./") for file in found}

    assert files(glob="**/*.py") == {"src/deep/a.py"}
    assert files(glob="src/**/*.py") == {"src/deep/a.py"}
    assert files(glob="*.{py,ts}") == {"src/deep/a.py", "src/b.ts"}
    assert files(glob="none*") == set()
    assert files(pattern="needle", case_insensitive=True, output_mode="files_with_matches") >= {
        "src/b.ts",
        "src/deep/a.py",
    }
    counted = run_command("grep", agent.GrepArgs(pattern="needle", output_mode="count", glob="*.ts"), tmp_path).success
    assert counted.workspace_results["."].count.total_matches == 1
    nothing = run_command("grep", agent.GrepArgs(pattern="absent"), tmp_path).success
    assert not nothing.workspace_results["."].content.matches


@pytest.fixture(params=["rg", "grep"])
def engine(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """With ripgrep on PATH and without it."""
    if request.param == "rg" and shutil.which("rg") is None:
        pytest.skip("ripgrep is not installed")
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "dash", "grep", "head", "tail", "find", "ls", *(["rg"] if request.param == "rg" else [])):
        if (found := shutil.which(name)) is not None:
            (tools / name).symlink_to(found)
    monkeypatch.setenv("PATH", str(tools))
    return str(request.param)


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "dash"])
@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    ("kind", "args", "words"),
    [
        ("grep", agent.GrepArgs(pattern="[", path="work"), r"unclosed|Unmatched|Invalid|parse error"),
        ("grep", agent.GrepArgs(pattern="needle", path="work/none"), "No such file"),
        ("grep", agent.GrepArgs(glob="*.py", path="work/none"), "No such file"),
        ("ls", agent.LsArgs(path="work/none"), "No such file"),
        ("pi_grep", agent.PiGrepExecArgs(pattern="[", path="work"), r"unclosed|Unmatched|Invalid|parse error"),
    ],
)
def test_a_search_that_fails_is_an_error_and_no_match(
    tmp_path: Path, shell: str, kind: str, args: Any, words: str
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "work").mkdir()
    (tmp_path / "work/a.py").write_text("needle\n")
    found = run_command(kind, args, tmp_path, shell=shell)
    assert found.WhichOneof("result") == "error"
    assert re.search(words, found.error.error)
    assert "toolwire" not in found.error.error


@pytest.mark.slow
@pytest.mark.usefixtures("engine")
def test_a_search_that_finds_more_than_is_shown_or_nothing_is_a_success(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work/a.py").write_text("needle\n" * 100_000)
    found = run_command("grep", agent.GrepArgs(pattern="needle", path="work", head_limit=7), tmp_path).success
    assert found.workspace_results["work"].content.total_matched_lines == 7
    none = run_command("grep", agent.GrepArgs(pattern="hay", path="work"), tmp_path).success
    assert not none.workspace_results["work"].content.matches
    assert run_command("pi_grep", agent.PiGrepExecArgs(pattern="hay", path="work"), tmp_path).success.output == ""


def test_what_matches_beside_a_file_that_cannot_be_searched_is_found(tmp_path: Path) -> None:
    call = map_to_client("grep", agent.GrepArgs(pattern="x"), [BASH])
    output = "toolwire-begin\na.py:1:x\n\ntoolwire-errors\ngrep: b.py: Permission denied\n2\ntoolwire-end 2\n"
    [file] = result(call, output).success.workspace_results["."].content.matches
    assert [match.content for match in file.matches] == ["x"]


def test_what_is_too_long_for_a_command_is_none() -> None:
    assert command_of(ToolRequest("write", {"path": "a", "content": "x" * MAX_LENGTH})) is None
    assert (
        map_exec(Exec(1, "", "write", agent.WriteArgs(path="a", file_text="x" * MAX_LENGTH)), client("codex"), fits)
        is None
    )
    assert command_of(ToolRequest("read", {"path": "a\0b"})) is None
    assert command_of(ToolRequest("glob", {"pattern": "{a,b}{c,d}{e,f}{g,h}{i,j}"})) is None
    assert command_of(ToolRequest("fetch", {"url": "http://x"})) is None


def test_output_without_a_beginning_or_an_end_is_not_ours() -> None:
    assert framed_output("toolwire-begin\nx\n") is None
    assert framed_output("x\ntoolwire-end 0\n") is None
    assert framed_output("toolwire-begin\n" * 100_000) is None
    terminal = framed_output("toolwire-begin 3 1\r\nx\r\n\r\ntoolwire-end 0\r\n")
    assert terminal is not None
    assert (terminal.text, terminal.size) == ("x\n", 3)
    nothing = framed_output("toolwire-begin\ntoolwire-end 0")
    assert nothing is not None
    assert nothing.text == ""
    whole = framed_output("noise\ntoolwire-begin\nx\n\ntoolwire-end 1\nmore noise")
    assert whole is not None
    assert (whole.text, whole.code) == ("x\n", 1)
