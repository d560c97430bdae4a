"""Where text goes: a terminal that may have colours and whose last line may be written anew, or a pipe that has neither.

Text is only appended, and the last line replaced, so that nothing flickers and the terminal's own scrolling works. Every text is made
safe here, whoever it comes from.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from typing import TextIO

from .escape import cut, one_line, safe

_STYLES = {"": "", "dim": "2", "bold": "1", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_IN_A_PIPE = 200  # columns of a line that is shortened, where there is no screen to tell
_UNKNOWN = 80  # columns of a terminal that does not say how wide it is
_NARROWEST = 16
_ERASE = "\r\x1b[K"


class Terminal:
    """has_screen: the last line can be written anew. has_colour: styles are shown."""

    def __init__(self, stream: TextIO, *, has_screen: bool = False, has_colour: bool = False) -> None:
        self._stream = stream
        self.has_screen = has_screen
        self.has_colour = has_colour
        self._is_open = False  # something stands on the last line
        self._is_live = False  # and it may be replaced
        self._held = ""

    @property
    def columns(self) -> int:
        if not self.has_screen:
            return _IN_A_PIPE
        try:
            found = os.get_terminal_size(self._stream.fileno()).columns
        except (OSError, ValueError):
            found = shutil.get_terminal_size().columns
        return max(found or _UNKNOWN, _NARROWEST)

    def write(self, text: str, style: str = "") -> None:
        """Words as they come: where one piece ends says nothing."""
        self.clear()
        text = self._held + text
        # Half of a line's end: what follows decides whether it is one.
        self._held = "\r" if text.endswith("\r") else ""
        text = text.removesuffix("\r") if self._held else text
        if text:
            self._put(self._styled(safe(text), style))
            self._is_open = not text.endswith("\n")

    def line(self, text: str = "", style: str = "") -> None:
        """A line, or several, of its own."""
        self.fresh()
        self._put(self._styled(safe(text), style) + "\n")

    def short(self, text: str, style: str = "", tail: str = "") -> None:
        """One line, cut to what the screen has beside its tail."""
        self.line(cut(one_line(text), self.columns - 1 - len(tail)) + tail, style)

    def live(self, text: str, style: str = "") -> None:
        """A last line that the next word replaces; nowhere but on a screen."""
        if not self.has_screen:
            return
        if not self._is_live:
            self.fresh()
        # One column stays free: a line that fills the last one is two lines in some terminals.
        self._put(_ERASE + self._styled(cut(one_line(text), self.columns - 1), style))
        self._is_live = self._is_open = True

    def clear(self) -> None:
        """Takes a live line away."""
        if self._is_live:
            self._put(_ERASE)
            self._is_live = self._is_open = False

    def fresh(self) -> None:
        """What follows stands at the beginning of a line."""
        self.clear()
        self._held = ""
        if self._is_open:
            self._put("\n")
            self._is_open = False

    def note_echo(self) -> None:
        """The terminal itself has written something, such as ^C."""
        if self.has_screen and not self._is_live:
            self._is_open = True

    def _styled(self, text: str, style: str) -> str:
        code = _STYLES[style]
        return f"\x1b[{code}m{text}\x1b[0m" if code and self.has_colour and text.strip() else text

    def _put(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def terminal_on(stream: TextIO, environ: Mapping[str, str] = os.environ) -> Terminal:
    """What this stream can do, by what it is and by what the environment says of it."""
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")
    has_screen = stream.isatty() and environ.get("TERM", "dumb") not in ("dumb", "")
    return Terminal(stream, has_screen=has_screen, has_colour=has_screen and not environ.get("NO_COLOR"))
