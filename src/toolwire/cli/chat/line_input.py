"""Lines that a person types, with editing and history where the platform has readline."""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType
from typing import Any

from platformdirs import user_state_path

_KEPT = 1000  # lines of history


def history_path() -> Path:
    return user_state_path("toolwire", appauthor=False) / "chat_history"


class TypedLines:
    """problem says why there is no history, "" where there is one or none was wanted."""

    def __init__(self, history: Path | None, *, has_colour: bool = False) -> None:
        self._readline = _readline()
        self._has_colour = has_colour
        self._history = history if self._readline is not None else None
        self.problem = ""
        if self._readline is not None:
            self._readline.set_auto_history(False)
        if self._history is not None:
            try:
                self._open(self._history)
            except OSError as error:
                self.problem = f"lines are not remembered: {error.strerror or error} ({self._history})"
                self._history = None

    def ask(self, prompt: str, prefill: str = "") -> str:
        """One line; a backslash at its end asks for another. Raises EOFError and KeyboardInterrupt."""
        lines = [self._line(self._coloured(prompt), prefill)]
        while lines[-1].endswith("\\"):
            lines[-1] = lines[-1].removesuffix("\\")
            lines.append(self._line("... "))
        return "\n".join(lines)

    def remember(self, line: str) -> None:
        """For the arrow keys, now and next time."""
        readline = self._readline
        if readline is None or not line.strip():
            return
        readline.add_history(line)
        if self._history is not None:
            try:
                readline.append_history_file(1, str(self._history))
            except OSError:
                self._history = None

    def _line(self, prompt: str, prefill: str = "") -> str:
        readline = self._readline
        if readline is not None and prefill:
            readline.set_startup_hook(lambda: readline.insert_text(prefill))
        try:
            typed = input(prompt)
        finally:
            if readline is not None and prefill:
                readline.set_startup_hook(None)
        # Bytes that are no text came as halves of characters, which no request can hold.
        return typed.encode("utf-8", "surrogateescape").decode("utf-8", "replace")

    def _coloured(self, prompt: str) -> str:
        # Readline counts columns; between \1 and \2 is what takes none.
        return f"\1\x1b[1m\2{prompt}\1\x1b[0m\2" if self._has_colour and self._readline is not None else prompt

    def _open(self, path: Path) -> None:
        readline: Any = self._readline
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        path.chmod(0o600)
        readline.clear_history()
        readline.read_history_file(str(path))
        if readline.get_current_history_length() > 2 * _KEPT:
            readline.set_history_length(_KEPT)
            readline.write_history_file(str(path))
            path.chmod(0o600)


def _readline() -> ModuleType | None:
    try:
        import readline
    except ImportError:  # not on every platform
        return None
    return readline
