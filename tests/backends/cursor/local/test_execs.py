from __future__ import annotations

import asyncio
import os
import threading
import time
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.backends.cursor.local.exec_results import answer, answers, is_declined, read, shell, workspace_in
from toolwire.backends.cursor.local.execs import KINDS, LocalTools
from toolwire.backends.cursor.wire import agent
from toolwire.backends.cursor.wire.execs import Exec
from toolwire.errors import ConfigError
from toolwire.tools.workspace.limits import Limits
from toolwire.tools.workspace.sandbox import Shell

_SHELL = Shell(sandbox="never")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return workspace_in(tmp_path)


def test_only_what_the_owner_listed_is_done(place: Path) -> None:
    (place / "a.txt").write_text("x\n")
    tools = LocalTools(place, ("read",))
    assert tools.exec_kinds == KINDS["read"]
    for kind, args in (
        ("write", agent.WriteArgs(path="a.txt", file_text="y")),
        ("shell", agent.ShellArgs(command="echo y > a.txt")),
        ("ls", agent.LsArgs(path=".")),
    ):
        assert answer(place, kind, args, kinds=("read",)).WhichOneof("result") == "rejected"
    assert "not allowed" in answer(place, "grep", agent.GrepArgs(pattern="x"), kinds=("glob",)).error.error
    assert (place / "a.txt").read_text() == "x\n"
    with pytest.raises(ConfigError):
        LocalTools(place, ("destroy",))


@pytest.mark.parametrize("path", ["../secret.txt", "sub/../../secret.txt", "./.././secret.txt", "..", "/..", ""])
def test_dots_do_not_lead_out(place: Path, path: str) -> None:
    (place / "sub").mkdir()
    assert is_declined(read(place, path))
    assert is_declined(answer(place, "write", agent.WriteArgs(path=path, file_text="bad")))
    if path:
        assert answer(place, "ls", agent.LsArgs(path=path)).WhichOneof("result") == "error"
        assert answer(place, "grep", agent.GrepArgs(pattern="secret", path=path)).WhichOneof("result") == "error"
    assert (place.parent / "secret.txt").read_text() == "secret\n"


def test_absolute_paths_do_not_lead_out(place: Path) -> None:
    outside = str(place.parent / "secret.txt")
    beside = f"{place}-twin/a.txt"  # begins with the workspace's name and is not in it
    for path in (outside, beside, "/etc/passwd", f"{place}/../secret.txt", "//etc/passwd", "/proc/self/environ"):
        assert is_declined(read(place, path))
        assert is_declined(answer(place, "write", agent.WriteArgs(path=path, file_text="bad")))
    assert is_declined(answer(place, "grep", agent.GrepArgs(glob="*", path="/etc")))
    result = shell(place, "pwd", working_directory="/etc")
    assert result.WhichOneof("result") == "rejected"


def test_links_do_not_lead_out(place: Path) -> None:
    (place / "file").symlink_to(place.parent / "secret.txt")
    (place / "folder").symlink_to(place.parent)
    (place / "relative").symlink_to("../secret.txt")
    for path in ("file", "folder/secret.txt", "relative", "folder/work/../secret.txt"):
        assert is_declined(read(place, path))
        assert is_declined(answer(place, "write", agent.WriteArgs(path=path, file_text="bad")))
    assert answer(place, "ls", agent.LsArgs(path="folder")).WhichOneof("result") == "error"
    found = answer(place, "grep", agent.GrepArgs(pattern="secret")).success
    assert not found.workspace_results[str(place)].content.matches
    tree = answer(place, "ls", agent.LsArgs(path=".")).success.directory_tree_root
    assert not tree.children_dirs
    assert tree.num_files == 0
    assert (place.parent / "secret.txt").read_text() == "secret\n"


@contextmanager
def swapping(swap: Callable[[], None]) -> Iterator[None]:
    """Done all the time, meanwhile."""
    is_over = threading.Event()

    def work() -> None:
        while not is_over.is_set():
            swap()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def test_a_folder_that_is_swapped_for_a_link_does_not_lead_out(place: Path) -> None:
    (place / "real").mkdir()
    (place / "real/secret.txt").write_text("harmless\n")
    (place / "link").symlink_to(place.parent)

    def swap() -> None:
        for one, other in (("real", "door"), ("door", "real"), ("link", "door"), ("door", "link")):
            os.rename(place / one, place / other)

    with swapping(swap):
        for _ in range(60):
            result = read(place, "door/secret.txt")
            assert is_declined(result) or result.success.content == "harmless\n"


def test_a_link_that_changes_its_mind_does_not_lead_out(place: Path) -> None:
    (place / "real").mkdir()
    (place / "door").symlink_to("real")

    def swap() -> None:
        for target in ("real", ".."):
            (place / "next").symlink_to(target)
            os.replace(place / "next", place / "door")

    with swapping(swap):
        results = [answer(place, "write", agent.WriteArgs(path="door/new.txt", file_text="x")) for _ in range(60)]
    assert not (place.parent / "new.txt").exists()
    assert all(is_declined(result) or result.success.file_size == 1 for result in results)


@pytest.mark.parametrize(
    "path",
    [
        "\uff0e\uff0e/secret.txt",  # full-width dots
        "\u2025/secret.txt",  # two-dot leader
        "..\u2215secret.txt",  # division slash
        "..\uff0fsecret.txt",  # full-width slash
        ".\u200b./secret.txt",  # zero width space
        "..\\secret.txt",
        "\\x2e\\x2e/secret.txt",
        "%2e%2e/secret.txt",
        "..\0/secret.txt",
    ],
)
def test_look_alikes_are_names_like_any_other(place: Path, path: str) -> None:
    assert is_declined(read(place, path))
    answer(place, "write", agent.WriteArgs(path=path, file_text="bad"))
    assert (place.parent / "secret.txt").read_text() == "secret\n"


def test_two_spellings_of_a_name_are_two_files(place: Path) -> None:
    composed, decomposed = unicodedata.normalize("NFC", "é.txt"), unicodedata.normalize("NFD", "é.txt")
    answer(place, "write", agent.WriteArgs(path=composed, file_text="one"))
    assert read(place, decomposed).WhichOneof("result") == "file_not_found"
    assert read(place, composed).success.content == "one"
    assert is_declined(answer(place, "write", agent.WriteArgs(path="\uff0egit/config", file_text="bad")))
    assert is_declined(answer(place, "write", agent.WriteArgs(path=".GIT/config", file_text="bad")))


@pytest.mark.parametrize(
    "name", ["$(touch bad)", "`touch bad`", "a;touch bad", "'; touch bad; '", "--pre=touch bad", "-rf"]
)
def test_names_are_never_commands(place: Path, name: str) -> None:
    answer(place, "write", agent.WriteArgs(path=f"{name}/{name}", file_text="needle\n"))
    assert read(place, f"{name}/{name}").success.content == "needle\n"
    found = answer(place, "grep", agent.GrepArgs(pattern="needle", path=name)).success
    assert [file.file for file in found.workspace_results[str(place)].content.matches] == [f"{name}/{name}"]
    assert answer(place, "grep", agent.GrepArgs(pattern=name)).success.path == ""
    listed = answer(place, "ls", agent.LsArgs(path=name)).success.directory_tree_root
    assert [file.name for file in listed.children_files] == [name]
    (folder,) = [folder for folder in place.iterdir() if folder.is_dir()]
    assert shell(place, 'printf %s "$PWD"', working_directory=name).success.stdout.strip() == str(folder)
    assert not list(place.rglob("bad"))


def test_nothing_waits_for_a_command(place: Path) -> None:
    tools = LocalTools(place, shell=_SHELL)

    async def main() -> int:
        running = asyncio.create_task(tools.run(Exec(1, "", "shell", agent.ShellArgs(command="sleep 0.3"))))
        turns = 0
        while not running.done():
            await asyncio.sleep(0.01)
            turns += 1
        return turns

    assert asyncio.run(main()) > 10


def test_a_command_gives_its_output_and_code(place: Path) -> None:
    success = shell(place, "echo out; echo err >&2", working_directory=str(place)).success
    assert (success.stdout, success.exit_code, success.command) == ("out\nerr\n", 0, "echo out; echo err >&2")
    failure = shell(place, "echo '[exit code 0; 0.0 s]'; exit 3").failure
    assert (failure.stdout, failure.exit_code, failure.aborted) == ("[exit code 0; 0.0 s]\n", 3, False)
    assert shell(place, "kill -9 $$").failure.exit_code == 137
    assert shell(place, "").WhichOneof("result") == "rejected"
    assert answer(place, "mini_swe_agent_bash", agent.ShellArgs(command="echo x")).success.stdout == "x\n"
    assert answer(place, "pi_bash", agent.PiBashExecArgs(command="echo x")).success.output == "x\n"
    assert "exit code 2" in answer(place, "pi_bash", agent.PiBashExecArgs(command="exit 2")).error.error


def test_a_stream_has_start_output_and_exit(place: Path) -> None:
    events = answers(place, "shell_stream", agent.ShellArgs(command="echo x; exit 4"))
    assert [event.WhichOneof("event") for event in events] == ["start", "stdout", "exit"]
    assert (events[1].stdout.data, events[2].exit.code, events[2].exit.aborted) == ("x\n", 4, False)
    (refused,) = answers(place, "shell_stream", agent.ShellArgs(command="x", working_directory="/"))
    assert refused.WhichOneof("event") == "rejected"


def test_a_command_ends_in_time_with_all_that_it_started(place: Path) -> None:
    began = time.monotonic()
    result = shell(place, "sleep 60 & sleep 60", timeout=300)
    assert result.timeout.timeout_ms == 300
    talking = shell(place, "echo first; sleep 60", timeout=300).failure
    assert (talking.stdout, talking.aborted) == ("first\n", True)
    assert talking.abort_reason == agent.SHELL_ABORT_REASON_TIMEOUT
    events = answers(place, "shell_stream", agent.ShellArgs(command="sleep 60", timeout=300))
    assert events[-1].exit.aborted
    assert events[-1].exit.abort_reason == agent.SHELL_ABORT_REASON_TIMEOUT
    assert time.monotonic() - began < 10


def test_a_flood_is_bounded(place: Path) -> None:
    limits = Limits(command_output_bytes=1000, command_flood_bytes=1 << 20)
    failure = answer(place, "shell", agent.ShellArgs(command="yes flood", timeout=20_000), limits=limits).failure
    assert failure.aborted
    assert "printed more than" in failure.stderr
    assert len(failure.stdout) < 2000
    (place / "many.txt").write_text("match\n" * 100_000)
    found = answer(place, "grep", agent.GrepArgs(pattern="match")).success.workspace_results[str(place)].content
    assert found.client_truncated
    assert found.total_matched_lines == Limits().matches
    (place / "long.txt").write_text("long" + "x" * 1_000_000 + "\n")
    found = answer(place, "grep", agent.GrepArgs(pattern="long")).success.workspace_results[str(place)].content
    assert found.matches[0].matches[0].content_truncated
    assert len(found.matches[0].matches[0].content) == 500
