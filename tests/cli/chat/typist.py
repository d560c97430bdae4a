"""A person at a terminal: starts `toolwire chat` on a pseudo-terminal, types, and reads what the screen shows."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
# The terminal must be the child's own, or Ctrl-C reaches nobody.
_OWN_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
CTRL_C, CTRL_D, UP = "\x03", "\x04", "\x1b[A"
SEQUENCE = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)", re.DOTALL)
_SECONDS = 90.0


class Typist:
    """`screen` is what a person has before them: escape sequences carried out, as far as we use any."""

    def __init__(self, process: subprocess.Popen[bytes], terminal: int) -> None:
        self.process = process
        self._terminal = terminal
        self.raw = ""
        self._read_until = 0

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def press(self, key: str) -> None:
        """A key that is no letter, after the moment a person takes: a signal between a prompt and its reading is lost to Python."""
        time.sleep(0.2)
        self.type(key)

    def enter(self, line: str) -> None:
        self.type(line + "\r")

    def expect(self, text: str) -> str:
        """Waits until this appears after what was expected before; gives what came up to its end."""
        return self.expect_one_of(text)

    def expect_one_of(self, *texts: str) -> str:
        deadline = time.monotonic() + _SECONDS
        wanted = re.compile("|".join(map(re.escape, texts)))
        while (found := wanted.search(self.raw, self._read_until)) is None:
            if time.monotonic() > deadline or not self._more():
                raise AssertionError(f"expected {texts!r}, found {self.raw[self._read_until :]!r}")
        before, self._read_until = self._read_until, found.end()
        return self.raw[before : self._read_until]

    def leave(self) -> int:
        """Reads to the end, and gives the exit code."""
        while self._more():
            pass
        return self.process.wait(_SECONDS)

    @property
    def screen(self) -> str:
        return rendered(self.raw)

    def _more(self) -> bool:
        ready, _, _ = select.select([self._terminal], [], [], _SECONDS)
        if not ready:
            return False
        try:
            data = os.read(self._terminal, 65536)
        except OSError:  # the other side is closed
            return False
        self.raw += data.decode("utf-8", "replace")
        return bool(data)


def rendered(raw: str) -> str:
    """The lines as they stand in the end; \\r and the erasing of a line are all that moves anything."""
    lines, column = [""], 0
    for piece in re.split(f"({SEQUENCE.pattern}|[\r\n])", raw, flags=re.DOTALL):
        if piece == "\n":
            lines.append("")
            column = 0
        elif piece == "\r":
            column = 0
        elif piece == "\x1b[K":
            lines[-1] = lines[-1][:column]
        elif piece and not piece.startswith("\x1b"):
            lines[-1] = lines[-1][:column] + piece + lines[-1][column + len(piece) :]
            column += len(piece)
    return "\n".join(lines)


def scripted(folder: Path, *turns: Mapping[str, Any], **more: Any) -> Path:
    """A configuration whose only model says these turns."""
    (folder / "script.json").write_text(json.dumps({"turns": turns, **more}))
    path = folder / "toolwire.toml"
    path.write_text('[backends.play]\nkind = "scripted"\nscript = "script.json"\n')
    return path


def environment(folder: Path, **more: str) -> dict[str, str]:
    """Nothing of this machine: no keys, no servers, no home."""
    home = {"HOME": str(folder), "XDG_STATE_HOME": str(folder / "state"), "PATH": os.environ["PATH"]}
    return {**home, "PYTHONPATH": f"{ROOT / 'src'}", "TERM": "xterm-256color", "LANG": "C.UTF-8", **more}


@contextmanager
def typing(folder: Path, *arguments: str, columns: int = 80, is_plain: bool = True, **environ: str) -> Iterator[Typist]:
    import fcntl
    import termios

    terminal, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    command = [
        sys.executable,
        "-c",
        _OWN_TERMINAL,
        "-m",
        "toolwire",
        "chat",
        *(["--plain"] if is_plain else []),
        *arguments,
    ]
    process = subprocess.Popen(
        command, stdin=inner, stdout=inner, stderr=inner, cwd=folder, env=environment(folder, **environ), start_new_session=True
    )  # fmt: skip
    os.close(inner)
    try:
        yield Typist(process, terminal)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        os.close(terminal)


def piped(folder: Path, *arguments: str, typed: str | None = None, **environ: str) -> subprocess.CompletedProcess[str]:
    """The same command without a terminal."""
    command = [sys.executable, "-m", "toolwire", "chat", *arguments]
    given = {"input": typed} if typed is not None else {"stdin": subprocess.DEVNULL}
    return subprocess.run(
        command, cwd=folder, env=environment(folder, **environ), capture_output=True, text=True, timeout=30, check=False, **given
    )  # type: ignore[call-overload,no-any-return] # fmt: skip
