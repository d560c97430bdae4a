"""Tracks the position in a text: on its line, in code or in thinking. A call counts only where a reader would not take it for a quotation.

Fences follow CommonMark: closed by the same letter, at least as often, and nothing else on that line; but any indentation, list marks and
quotation marks may precede one. Inline code ends with its line at the latest. Thinking lasts from its tag to its closing tag.
"""

from __future__ import annotations

import re

_HEAD = 64  # letters of a line that may precede a fence
_LAST = 32  # letters in which the end of a sentence must show
_BEFORE_FENCE = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*[ \t>]*")
_BEFORE_CLOSING = re.compile(r"[ \t>]*")
_SENTENCE_END = re.compile(r"[.!?…。！？][\"'”’»)\]*_]*\s*\Z")


class TextPosition:
    """is_blank: only whitespace precedes this place on its line, or since the last block. thought: the tag of the open thinking."""

    def __init__(self) -> None:
        self.is_blank = True
        self.thought = ""
        self._head = ""
        self._last = ""
        self._run = ""  # backticks or tildes that may not be all yet: the letter
        self._count = 0
        self._code = 0  # so many backticks opened inline code on this line
        self._opening = 0  # so many began this line, so that a fence opens if no more follow
        self._fence = ("", 0)
        self._is_closing = False

    @property
    def is_code(self) -> bool:
        if self._run:
            self._end_run()
        return bool(self._fence[0]) or self._code > 0

    @property
    def ends_sentence(self) -> bool:
        return _SENTENCE_END.search(self._last) is not None

    def plain(self, text: str) -> None:
        """Goes over letters that are neither backticks nor tildes, or do not count as such."""
        if self._run and text:
            self._end_run()
        start, end = text.find("\n"), text.rfind("\n")
        if start < 0:
            self._on_line(text)
            return
        self._on_line(text[:start])
        self._end_line()
        self._on_line(text[end + 1 :])

    def ticks(self, letter: str, count: int) -> None:
        """Goes over backticks or tildes, which may go on in the next piece."""
        if self._run and letter != self._run:
            self._end_run()
        self._run = letter
        self._count += count

    def behind_block(self) -> None:
        """A block has ended here: what follows is as free as at the start of a line."""
        self.is_blank = True
        self._head = self._last = ""

    def _on_line(self, text: str) -> None:
        if not text:
            return
        if not text.isspace():
            self.is_blank = self._is_closing = False
        if len(self._head) < _HEAD:
            self._head += text[: _HEAD - len(self._head)]
        self._last = text[-_LAST:] if len(text) >= _LAST else (self._last + text)[-_LAST:]

    def _end_line(self) -> None:
        if self._opening:
            self._fence = ("`", self._opening)
        elif self._is_closing:
            self._fence = ("", 0)
        self._code = self._opening = 0
        self._is_closing = False
        self.is_blank = True
        self._head = self._last = ""

    def _end_run(self) -> None:
        letter, count = self._run, self._count
        self._run, self._count = "", 0
        head = self._head
        self._on_line(letter * min(count, _HEAD))
        if self.thought:
            return
        if self._fence[0]:
            is_first = len(head) < _HEAD and _BEFORE_CLOSING.fullmatch(head) is not None
            self._is_closing = is_first and letter == self._fence[0] and count >= self._fence[1]
        elif letter == "`":
            self._ticked(count, head)
        elif count >= 3 and not self._code and _is_before_fence(head):
            self._fence = (letter, count)

    def _ticked(self, count: int, head: str) -> None:
        self._opening = count if not self._code and count >= 3 and _is_before_fence(head) else 0
        if not self._code:
            self._code = count
        elif self._code == count:
            self._code = 0


def _is_before_fence(head: str) -> bool:
    return len(head) < _HEAD and _BEFORE_FENCE.fullmatch(head) is not None
