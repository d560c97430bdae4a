from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.server.harness import wait_until
from toolwire.tools.workspace.limits import Budget
from toolwire.tools.workspace.programs import Ended, find_program, is_secret, program_environment, run

pytestmark = pytest.mark.slow

# Ignores every signal that can be ignored, and kills the process that reads its output.
_STUBBORN = "trap '' HUP INT TERM; echo $$ > stubborn; echo ready; while true; do sleep 60; done"
_KILLED = """
import os, signal, sys
from toolwire.tools.workspace.limits import Budget
from toolwire.tools.workspace.programs import program_environment, run
def feed(data):
    os.kill(os.getpid(), signal.SIGKILL)
run(["/bin/bash", "-c", sys.argv[1]], Budget(60), feed, folder=sys.argv[2], variables=program_environment())
"""
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="strays are found by /proc")


def ended(folder: Path, script: str, *, seconds: float = 10, with_strays: bool = True) -> tuple[Ended, bytes]:
    printed = bytearray()

    def take(piece: bytes) -> bool:
        printed.extend(piece)
        return len(printed) < 1_000_000

    arguments = ["/bin/bash", "-c", script]
    result = run(
        arguments, Budget(seconds), take, folder=str(folder), variables=program_environment(), with_strays=with_strays
    )
    return result, bytes(printed)


def is_alive(folder: Path, name: str) -> bool:
    """Whether the process that wrote its number there is running."""
    number = int((folder / name).read_text())
    for _ in range(40):
        try:
            if Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] in "ZX":
                return False
        except OSError:
            return False
        time.sleep(0.005)
    return True


def test_output_and_code(tmp_path: Path) -> None:
    assert ended(tmp_path, "echo out; echo err >&2; pwd; exit 7") == (Ended(code=7), f"out\nerr\n{tmp_path}\n".encode())
    assert ended(tmp_path, "kill -9 $$")[0].code == -signal.SIGKILL
    assert ended(tmp_path, "cat")[0].code == 0


def test_a_program_that_takes_too_long_is_stopped_with_its_children(tmp_path: Path) -> None:
    started = time.monotonic()
    result, printed = ended(tmp_path, "echo begun; sleep 60 & echo $! > child; sleep 60", seconds=0.3)
    assert time.monotonic() - started < 2
    assert result == Ended(code=None)
    assert printed == b"begun\n"
    assert not is_alive(tmp_path, "child")


@on_linux
def test_its_group_is_ended_without_looking_for_strays(tmp_path: Path) -> None:
    assert ended(tmp_path, "sleep 60 & echo $! > child; sleep 60", seconds=0.2, with_strays=False)[0].code is None
    assert not is_alive(tmp_path, "child")


def test_a_program_that_closes_its_output_is_still_stopped(tmp_path: Path) -> None:
    assert ended(tmp_path, "exec >&- 2>&-; sleep 60", seconds=0.2)[0].code is None


@on_linux
def test_children_in_the_background_are_killed_and_reported(tmp_path: Path) -> None:
    started = time.monotonic()
    result, printed = ended(tmp_path, "sleep 60 & echo $! > child; echo done")
    assert (result, printed) == (Ended(code=0, left_running=True), b"done\n")
    assert time.monotonic() - started < 2
    assert not is_alive(tmp_path, "child")


@on_linux
def test_a_child_in_a_session_of_its_own_is_killed(tmp_path: Path) -> None:
    script = "setsid bash -c 'echo $$ > stray; sleep 60' >/dev/null 2>&1 & while [ ! -s stray ]; do sleep 0.01; done"
    assert ended(tmp_path, script)[0].left_running
    assert not is_alive(tmp_path, "stray")


@on_linux
def test_a_program_that_forks_and_forks_is_ended_with_all_of_them(tmp_path: Path) -> None:
    script = 'f() { [ "$1" -gt 0 ] && { f $(($1 - 1)) & f $(($1 - 1)) & }; echo $BASHPID >> all; sleep 60; }; f 5'
    assert ended(tmp_path, script, seconds=0.5)[0].code is None
    numbers = (tmp_path / "all").read_text().split()
    assert len(numbers) > 10
    alive = subprocess.run(
        ["ps", "-o", "pid=,args=", "-p", ",".join(numbers)], capture_output=True, text=True, check=False
    )
    assert "sleep 60" not in alive.stdout


def test_taking_enough_stops_a_flood(tmp_path: Path) -> None:
    started = time.monotonic()
    result, printed = ended(tmp_path, "yes")
    assert result.code is None
    assert len(printed) < 1_200_000
    assert time.monotonic() - started < 2


def test_a_program_sees_no_secret(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in (
        "OPENAI_API_KEY",
        "GITHUB_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "MY_PASSWORD",
        "LC_KEY",
        "BASH_ENV",
        "LD_PRELOAD_X",
    ):
        monkeypatch.setenv(name, "hidden-value")
    monkeypatch.setenv("LC_TIME", "C")
    assert b"hidden-value" not in ended(tmp_path, "env")[1]
    assert b"LC_TIME=C" in ended(tmp_path, "env")[1]
    assert "CI" in program_environment(["CI"], {"CI": "1"})
    assert "A_TOKEN" not in program_environment(["A_TOKEN"], {"A_TOKEN": "1"})
    assert is_secret("x_api_key")
    assert not is_secret("PATH")


def test_no_descriptor_of_ours_is_handed_on(tmp_path: Path) -> None:
    with (tmp_path / "a").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        assert str(tmp_path / "a").encode() not in ended(tmp_path, "ls -l /dev/fd/ /proc/$$/fd 2>/dev/null")[1]


def test_a_program_in_the_root_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = tmp_path / "root" / "bin"
    outside = tmp_path / "bin"
    for folder in (inside, outside):
        folder.mkdir(parents=True)
    (inside / "tool").write_text("#!/bin/sh\n")
    (inside / "tool").chmod(0o755)
    (outside / "link").symlink_to(inside / "tool")
    monkeypatch.setenv("PATH", f"{inside}:{outside}:/usr/bin:/bin")
    assert find_program("tool", str(tmp_path / "root")) is None
    assert find_program("link", str(tmp_path / "root")) is None
    assert find_program("bash", str(tmp_path / "root")) is not None
    assert find_program("no-such-program", str(tmp_path / "root")) is None


@on_linux
def test_a_program_ends_with_a_gateway_that_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _KILLED, _STUBBORN, str(tmp_path)]
    done = subprocess.run(command, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL
    wait_until(lambda: not is_alive(tmp_path, "stubborn"))
