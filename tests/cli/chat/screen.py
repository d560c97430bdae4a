"""`toolwire chat` in tmux: keys are typed, pastes are bracketed, and the screen is read as a user sees it."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.chat.typist import environment

_SECONDS = 90.0


class Screen:
    def __init__(self, socket: Path) -> None:
        self._socket = socket

    def type(self, text: str) -> None:
        self._tmux("send-keys", "-l", text)

    def key(self, *names: str) -> None:
        self._tmux("send-keys", *names)

    def paste(self, text: str) -> None:
        """As a terminal does it for a program that has switched on bracketed paste."""
        subprocess.run(["tmux", "-S", self._socket, "load-buffer", "-"], input=text, text=True, check=True)
        self._tmux("paste-buffer", "-p", "-r")

    def resize(self, columns: int, rows: int) -> None:
        self._tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def text(self) -> str:
        """The visible lines."""
        return self._tmux("capture-pane", "-p")

    def styled(self) -> str:
        """The visible lines, with the escape sequences of their styles."""
        return self._tmux("capture-pane", "-p", "-e")

    def wait(self, wanted: str) -> str:
        """The screen as soon as it has this text."""
        deadline = time.monotonic() + _SECONDS
        while wanted not in (shown := self.text()):
            if time.monotonic() > deadline:
                raise AssertionError(f"expected {wanted!r} on the screen:\n{shown}")
            time.sleep(0.05)
        return shown

    def _tmux(self, *arguments: str) -> str:
        command = ["tmux", "-S", str(self._socket), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=_SECONDS).stdout


@contextmanager
def chat_screen(folder: Path, *arguments: str, columns: int = 80, rows: int = 40, **environ: str) -> Iterator[Screen]:
    """tmux with a server of its own, which ends with the test."""
    socket = Path(tempfile.mkdtemp(dir=folder)) / "tmux"  # a server that ends may still hold the last one
    variables = [f"{name}={value}" for name, value in environment(folder, TERM="screen-256color", **environ).items()]
    command = shlex.join(["env", "-i", *variables, sys.executable, "-m", "toolwire", "chat", *arguments])
    start = ["tmux", "-S", str(socket), "-f", os.devnull, "new-session", "-d", "-x", str(columns), "-y", str(rows)]
    subprocess.run(
        [*start, f"{command}; cat"], cwd=folder, check=True, env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    )
    try:
        yield Screen(socket)
    finally:
        subprocess.run(["tmux", "-S", str(socket), "kill-server"], check=False)


def has_tmux() -> bool:
    return shutil.which("tmux") is not None
