"""The command as a process: streams that are closed, full or left by their reader, and an interrupt while it loads."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.chat.typist import environment, scripted
from toolwire.cli import main
from toolwire.cli.app import run
from toolwire.cli.entry import drop_unwritten, open_closed_streams

FULL = Path("/dev/full")
ANSWER = "Hello.\n"
needs_full = pytest.mark.skipif(not FULL.exists(), reason="only some systems have a device that is always full")


def shell(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    """TOOLWIRE in the command is the program, whose output is kept back as in a pipe of a person."""
    scripted(folder, {"text": "Hello."})
    environ = {**environment(folder), "TOOLWIRE": f"{sys.executable} -m toolwire"}
    environ.pop("PYTHONUNBUFFERED", None)
    script = f"set -o pipefail; {command.replace('TOOLWIRE', '$TOOLWIRE')}"
    return subprocess.run(
        ["bash", "-c", script], cwd=folder, env=environ, capture_output=True, text=True, timeout=30, check=False
    )


def test_main_exits_with_the_code(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["nonsense"])
    assert caught.value.code == 2
    assert "Unknown command" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "code", "out", "err"),
    [
        ("chat hi <&-", 0, ANSWER, "model play/scripted"),
        ("chat <&-", 2, "", "chat: found an empty prompt"),
        ("chat hi >&- </dev/null", 2, "", "chat: standard output is closed"),
        ("chat hi 2>&- </dev/null", 0, ANSWER, ""),
        ("nonsense 2>&-", 2, "", ""),
        ("models >&-", 0, "", ""),
    ],
)
def test_a_stream_may_be_closed(command: str, code: int, out: str, err: str, tmp_path: Path) -> None:
    done = shell(tmp_path, f"TOOLWIRE {command}")
    assert (done.returncode, done.stdout) == (code, out)
    assert err in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("command", ["models --json", "connect", "--help"])
def test_a_closed_pipe_is_no_error(command: str, tmp_path: Path) -> None:
    done = shell(tmp_path, f"TOOLWIRE {command} | true")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
@needs_full
@pytest.mark.parametrize("command", ["connect", "--help", "chat hi </dev/null"])
def test_unwritable_output_is_one_line(command: str, tmp_path: Path) -> None:
    done = shell(tmp_path, f"TOOLWIRE {command} >{FULL}")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("toolwire: the output cannot be written: ")
    assert "Traceback" not in done.stderr
    assert "ignored" not in done.stderr


@pytest.mark.slow
@needs_full
def test_unwritable_stderr_leaves_the_exit_code(tmp_path: Path) -> None:
    assert shell(tmp_path, f"TOOLWIRE nonsense 2>{FULL}").returncode == 2


def test_an_interrupt_while_it_loads_is_quiet(tmp_path: Path) -> None:
    """The first module that only the commands need stands for all of them: there Ctrl-C comes."""
    # What is started in the background has the signal ignored, and so have we then.
    heard = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    (tmp_path / "cyclopts.py").write_text(f"{heard}signal.raise_signal(signal.SIGINT)\n")
    environ = environment(tmp_path)
    environ["PYTHONPATH"] = os.pathsep.join((str(tmp_path), environ["PYTHONPATH"]))
    command = [sys.executable, "-m", "toolwire", "stats"]
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_an_interrupt_before_the_command_begins_is_quiet(tmp_path: Path) -> None:
    """Python's own start cannot be changed; from the first module of the command line on, Ctrl-C prints nothing."""
    (tmp_path / "sitecustomize.py").write_text(
        "import signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "class Finder:\n"
        "    @staticmethod\n"
        "    def find_spec(name, path=None, target=None):\n"
        "        if name == 'toolwire.cli.entry':\n"
        "            signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder)\n"
    )
    environ = environment(tmp_path)
    environ["PYTHONPATH"] = os.pathsep.join((str(tmp_path), environ["PYTHONPATH"]))
    command = [sys.executable, "-m", "toolwire", "stats"]
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_a_closed_stream_becomes_an_empty_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    open_closed_streams()
    with sys.stdin as stdin, sys.stdout as stdout, sys.stderr as stderr:
        assert stdin.read() == ""
        assert stdout.write("\udc80") == 1
        assert os.get_inheritable(stderr.fileno())


def test_an_open_stream_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    given = io.StringIO()
    monkeypatch.setattr(sys, "stdout", given)
    open_closed_streams()
    assert sys.stdout is given


def test_what_cannot_be_written_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w", encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        stream.write("words")
        drop_unwritten()
        stream.flush()
        assert os.path.samestat(os.fstat(stream.fileno()), os.stat(os.devnull))
    monkeypatch.undo()


def test_faults_that_are_not_of_the_output_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(2, "No such file", "a.txt")

    monkeypatch.setattr(sys, "stdout", Broken())
    with pytest.raises(FileNotFoundError):
        run(["connect"])
