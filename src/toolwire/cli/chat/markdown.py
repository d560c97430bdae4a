"""Markdown on a terminal while it streams.

Complete blocks are rendered once and stay. The last, incomplete block is a preview that the next piece of text replaces, so scrolling and copying
work as for any output. The text is escaped before it is rendered: only the renderer writes escape sequences.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from io import StringIO

from .terminal import Terminal, safe

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_TRAILING = re.compile(r" +((?:\x1b\[[0-9;]*m)*)$")
_MAX_PENDING = 32_768  # characters of one block; a longer one is rendered in pieces
_REDRAW_SECONDS = 0.08
_REDRAW_SHARE = 8  # a preview takes at most one part of so many of the time
_ROWS_FREE = 3


class MarkdownStream:
    """feed() appends text; flush() ends the block, before anything else is written."""

    def __init__(self, terminal: Terminal, clock: Callable[[], float] = time.monotonic) -> None:
        self._terminal = terminal
        self._clock = clock
        self._pending = ""
        self._next_draw = 0.0
        self._has_block = False

    @property
    def is_pending(self) -> bool:
        return bool(self._pending)

    def begin(self) -> None:
        """A new text begins: no empty line before its first block."""
        self._has_block = False

    def feed(self, text: str) -> None:
        self._pending += text
        done, self._pending = split_blocks(self._pending)
        if len(self._pending) > _MAX_PENDING:
            done, self._pending = done + self._pending, ""
        self._write(done)
        if self._pending and self._clock() >= self._next_draw:
            self._preview()

    def flush(self) -> None:
        done, self._pending = self._pending, ""
        self._write(done)
        self._has_block = self._has_block and bool(done)

    def _write(self, text: str) -> None:
        if text.strip():
            lines = render_markdown(text, self._terminal.columns - 1)
            self._terminal.rendered([""] * self._has_block + lines)
            self._has_block = True

    def _preview(self) -> None:
        begun = self._clock()
        lines = [""] * self._has_block + render_markdown(self._pending, self._terminal.columns - 1)
        self._terminal.preview(lines[-max(self._terminal.rows - _ROWS_FREE, 1) :])
        now = self._clock()
        self._next_draw = now + max(_REDRAW_SECONDS, (now - begun) * _REDRAW_SHARE)


def split_blocks(text: str) -> tuple[str, str]:
    """The complete blocks, and the rest. A block ends with an empty line that is not inside a code fence, or with the fence."""
    end = place = 0
    fence = ""
    for line in text.splitlines(keepends=True):
        if not line.endswith("\n"):
            break
        place += len(line)
        found = _FENCE.match(line)
        if fence:
            if found and found[1].startswith(fence) and not found[2].strip():
                fence, end = "", place
        elif found:
            fence = found[1]
        elif not line.strip():
            end = place
    return text[:end], text[end:]


def render_markdown(text: str, columns: int) -> list[str]:
    """Lines with colours. Links are written out, so that a model cannot hide where they lead."""
    from rich.console import Console
    from rich.markdown import Markdown

    stream = StringIO()
    console = Console(
        file=stream,
        force_terminal=True,
        color_system="standard",
        width=max(columns, 8),
        legacy_windows=False,
        highlight=False,
        emoji=False,
        markup=False,
    )
    console.print(Markdown(safe(text), hyperlinks=False, code_theme="ansi_dark"))
    lines = [_TRAILING.sub(r"\1", line) for line in stream.getvalue().split("\n")]
    while lines and not _visible(lines[-1]):
        lines.pop()
    while lines and not _visible(lines[0]):
        lines.pop(0)
    return lines


def _visible(line: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", line).strip()
