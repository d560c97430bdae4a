"""`toolwire completion`: the scripts complete commands and options in the real shells."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from toolwire.cli.app import COMMANDS, run

pytestmark = pytest.mark.slow
NAMES = {place.rpartition(":")[2] for place in COMMANDS}

# Each prints what the shell would offer for a line, one word a line. The line is in $LINE.
BASH = """
source "$SCRIPT"
read -ra COMP_WORDS <<< "$LINE"
[[ $LINE == *" " ]] && COMP_WORDS+=("")
COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
_toolwire toolwire
printf '%s\\n' "${COMPREPLY[@]}"
"""
FISH = 'source "$SCRIPT"; complete --do-complete "$LINE" | string replace --regex "\\t.*" ""'
# zsh completes only in its line editor: it runs in a terminal, prints each match, and exits after the completion.
ZSH = """
PS1=
autoload -Uz compinit && compinit -u -D
source "$SCRIPT"
compadd() {
  [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\\ * ]] && { builtin compadd "$@"; return }
  local -a hits
  builtin compadd -A hits "$@"
  for hit in $hits; do print -r -- "HIT:$hit"; done
}
comppostfuncs=(exit)
print READY
"""
SECONDS = 120


def script_of(shell: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert run(["completion", shell]) == 0
    path = folder / f"toolwire.{shell}"
    path.write_text(capsys.readouterr().out, encoding="utf-8")
    return path


def offered(shell: str, script: Path, line: str) -> list[str]:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(script.parent),
        "TERM": "dumb",
        "SCRIPT": str(script),
        "LINE": line,
    }
    if shell == "zsh":
        return zsh_matches(program, environment, line)
    command = [program, "--norc", "-c", BASH] if shell == "bash" else [program, "--no-config", "-c", FISH]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert found.stderr == ""
    return found.stdout.split()


def zsh_matches(program: str, environment: dict[str, str], line: str) -> list[str]:
    setup = Path(environment["SCRIPT"]).with_name("setup.zsh")
    setup.write_text(ZSH, encoding="utf-8")
    terminal, inside = pty.openpty()
    command = [program, "-f", "-i"]
    with subprocess.Popen(
        command, env=environment, stdin=inside, stdout=inside, stderr=inside, start_new_session=True
    ) as process:
        os.close(inside)
        try:
            os.write(terminal, f"source {setup}\n".encode())
            read_until(terminal, b"READY\r\n")
            os.write(terminal, f"{line}\t".encode())
            shown = read_until(terminal, None)
        finally:
            os.close(terminal)
            process.kill()
    return re.findall(r"HIT:(\S+)", shown.decode())


def read_until(terminal: int, end: bytes | None) -> bytes:
    """What is shown until this text, or until the shell exits."""
    shown, deadline = b"", time.monotonic() + SECONDS
    while (end is None or end not in shown) and (left := deadline - time.monotonic()) > 0:
        if select.select([terminal], [], [], left)[0]:
            try:
                shown += os.read(terminal, 65536)
            except OSError:  # Linux: the shell has exited
                return shown
    assert time.monotonic() < deadline, shown
    return shown


@pytest.mark.parametrize("shell", ["bash", "fish", "zsh"])
def test_commands_and_options_are_offered(shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = script_of(shell, tmp_path, capsys)
    commands = offered(shell, script, "toolwire ")
    assert set(commands) >= NAMES
    options = offered(shell, script, "toolwire serve --")
    assert {"--port", "--workers"} <= {option.partition("=")[0] for option in options}
    assert "--mcp" not in options  # an option of another command


@pytest.mark.parametrize("shell", ["bash", "fish", "zsh"])
def test_choices_of_an_argument_are_offered(shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = offered(shell, script_of(shell, tmp_path, capsys), "toolwire completion ")
    assert {"bash", "fish", "zsh"} <= set(words)


def test_an_unknown_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", "tcsh"]) == 2
    assert "toolwire completion --help" in capsys.readouterr().err


def test_a_closed_pipe_is_no_error() -> None:
    command = f"{sys.executable} -m toolwire completion bash | head -n 1"
    found = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=120, check=True)
    assert found.stderr == ""
    assert found.stdout.startswith("# Bash completion")
