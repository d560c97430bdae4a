"""Output to a terminal or pipe, and lines typed by the user.

Output appends text and replaces only the last line, so that nothing flickers and the terminal's own scrolling works. All text is escaped here:
foreign text cannot move the cursor, change colours, reorder or hide what the user reads.
"""

from __future__ import annotations

import os
import re
import shutil
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, TextIO

from platformdirs import user_state_path
from rich.cells import cell_len

_STYLES = {"": "", "dim": "2", "bold": "1", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_PIPE_COLUMNS = 200
_DEFAULT_COLUMNS = 80
_DEFAULT_ROWS = 24
_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_MIN_COLUMNS = 16
_ERASE = "\r\x1b[K"
# Control characters, Unicode line separators, characters that reorder or hide text, and lone surrogates. Joiners (emoji, Persian) and
# direction marks stay: ordinary text contains them.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u180e\u200b\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_LINE_ENDS = re.compile(r"[ \t]*[\r\n]\s*")
_MORE = "..."
_MAX_HISTORY = 1000  # lines


class Terminal:
    """has_screen: the last line can be replaced. has_colour: styles are shown."""

    def __init__(self, stream: TextIO, *, has_screen: bool = False, has_colour: bool = False) -> None:
        self._stream = stream
        self.has_screen = has_screen
        self.has_colour = has_colour
        self._is_open = False  # the last line is not empty
        self._is_live = False  # the last line may be replaced
        self._live_lines: list[str] = []  # the lines above it that are replaced with it
        self._held = ""

    @property
    def columns(self) -> int:
        if not self.has_screen:
            return _PIPE_COLUMNS
        try:
            found = os.get_terminal_size(self._stream.fileno()).columns
        except (OSError, ValueError):
            found = shutil.get_terminal_size().columns
        return max(found or _DEFAULT_COLUMNS, _MIN_COLUMNS)

    def write(self, text: str, style: str = "") -> None:
        """Appends a piece of streamed text."""
        self.clear()
        text = self._held + text
        # Possibly the first half of a line end.
        self._held = "\r" if text.endswith("\r") else ""
        text = text.removesuffix("\r") if self._held else text
        if text:
            self._put(self._styled(safe(text), style))
            self._is_open = not text.endswith("\n")

    def line(self, text: str = "", style: str = "") -> None:
        """Writes whole lines."""
        self.fresh()
        self._put(self._styled(safe(text), style) + "\n")

    def wrapped(self, text: str) -> str:
        """The text with its long lines broken between words, where there is a screen."""
        if not self.has_screen:
            return text
        columns = self.columns - 1
        lines = text.split("\n")
        return "\n".join(line if len(line) <= columns else _folded(line, columns) for line in lines)

    def short(self, text: str, style: str = "", tail: str = "") -> None:
        """Writes one line, cut to the width of the screen minus the tail."""
        self.line(cut(one_line(text), self.columns - 1 - len(tail)) + tail, style)

    def live(self, text: str, style: str = "") -> None:
        """Shows a last line that the next output replaces. Does nothing without a screen."""
        if not self.has_screen:
            return
        if not self._is_live:
            self.fresh()
        # One column stays free: some terminals wrap a line that fills the last one.
        self._put(self._erasure() + self._styled(cut(one_line(text), self.columns - 1), style))
        self._live_lines = []
        self._is_live = self._is_open = True

    @property
    def rows(self) -> int:
        try:
            return os.get_terminal_size(self._stream.fileno()).lines or _DEFAULT_ROWS
        except (OSError, ValueError):
            return shutil.get_terminal_size().lines

    def rendered(self, lines: Sequence[str]) -> None:
        """Writes lines of our own renderer, which has escaped foreign text."""
        self.fresh()
        self._put("".join(f"{line}\n" for line in lines))

    def preview(self, lines: Sequence[str]) -> None:
        """Shows lines of our own renderer that the next output replaces. Does nothing without a screen."""
        if not self.has_screen or not lines:
            return
        if not self._is_live:
            self.fresh()
        self._put(self._erasure() + "\n".join(lines))
        self._live_lines = list(lines[:-1])
        self._is_live = self._is_open = True

    def clear(self) -> None:
        """Removes a live line, or a preview."""
        if self._is_live:
            self._put(self._erasure())
            self._live_lines = []
            self._is_live = self._is_open = False

    def _erasure(self) -> str:
        """A terminal that became narrower has wrapped the lines above."""
        if not self._live_lines:
            return _ERASE
        columns = self.columns
        height = sum(max(1, -(-cell_len(_STYLE.sub("", line)) // columns)) for line in self._live_lines)
        return f"\x1b[{height}A\r\x1b[J"

    def fresh(self) -> None:
        """Starts a new line unless at the start of one."""
        self.clear()
        self._held = ""
        if self._is_open:
            self._put("\n")
            self._is_open = False

    def note_echo(self) -> None:
        """Records that the terminal itself wrote something, such as ^C."""
        if self.has_screen and not self._is_live:
            self._is_open = True

    def _styled(self, text: str, style: str) -> str:
        code = _STYLES[style]
        return f"\x1b[{code}m{text}\x1b[0m" if code and self.has_colour and text.strip() else text

    def _put(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


class TypedLines:
    """Lines that the user types, with editing and history if the platform has readline.

    problem: why there is no history, "" if there is one or none is needed.
    """

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
                self.problem = f"the input history is not saved: {error.strerror or error} ({self._history})"
                self._history = None

    def ask(self, prompt: str, prefill: str = "") -> str:
        """One line, or several if each but the last ends in a backslash. Raises EOFError and KeyboardInterrupt."""
        lines = [self._line(self._coloured(prompt), prefill)]
        while lines[-1].endswith("\\"):
            lines[-1] = lines[-1].removesuffix("\\")
            lines.append(self._line("... "))
        return "\n".join(lines)

    def remember(self, line: str) -> None:
        """Adds the line to the history, in memory and on disk."""
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
        # Invalid bytes arrive as lone surrogates, which no request can contain.
        return typed.encode("utf-8", "surrogateescape").decode("utf-8", "replace")

    def _coloured(self, prompt: str) -> str:
        # Readline counts columns, except between \1 and \2.
        return f"\1\x1b[1m\2{prompt}\1\x1b[0m\2" if self._has_colour and self._readline is not None else prompt

    def _open(self, path: Path) -> None:
        readline: Any = self._readline
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        path.chmod(0o600)
        readline.clear_history()
        readline.read_history_file(str(path))
        if readline.get_current_history_length() > 2 * _MAX_HISTORY:
            readline.set_history_length(_MAX_HISTORY)
            readline.write_history_file(str(path))
            path.chmod(0o600)


def terminal_on(stream: TextIO, environ: Mapping[str, str] = os.environ) -> Terminal:
    """Detects screen and colour from the stream and the environment."""
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")
    has_screen = stream.isatty() and environ.get("TERM", "dumb") not in ("dumb", "")
    return Terminal(stream, has_screen=has_screen, has_colour=has_screen and not environ.get("NO_COLOR"))


def history_path() -> Path:
    return user_state_path("toolwire", appauthor=False) / "chat_history"


def safe(text: str) -> str:
    """Escapes everything that acts on a terminal except line ends and tabs."""
    return _CONTROL.sub(_escaped, text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """Escaped text on one line."""
    return safe(_LINE_ENDS.sub(" ", text).replace("\t", "    "))


def json_safe(text: str) -> str:
    """Equivalent JSON in which everything that acts on a terminal is escaped."""
    return _CONTROL.sub(lambda match: json_escape(match.group()), text)


def json_escape(char: str) -> str:
    """The \\u escape, as a surrogate pair beyond the first plane."""
    code = ord(char)
    if code < 0x10000:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


def cut(text: str, columns: int) -> str:
    """Shortens an escaped line to these columns; "..." marks the cut."""
    # The first condition bounds text with many characters of zero width.
    if len(text) <= 4 * columns and cell_len(text) <= columns:
        return text
    head = text[: max(columns - len(_MORE), 0)]
    while head and cell_len(head) > columns - len(_MORE):
        head = head[:-1]
    return head + _MORE


def _folded(line: str, columns: int) -> str:
    indent = line[: len(line) - len(line.lstrip(" "))]
    return textwrap.fill(line, columns, subsequent_indent=indent, break_on_hyphens=False)


def _escaped(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _readline() -> ModuleType | None:
    try:
        import readline
    except ImportError:  # not on every platform
        return None
    return readline
