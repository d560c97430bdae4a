"""Frames that differ from the last one only in a piece of plain text: known by their first and last bytes, without parsing.

A model's answer is mostly such frames. Where the bytes before and after the text are those of a frame that was parsed and
understood, and the text between them needs no unescaping, the frame means the same with that text. Anything else is not matched.
This finds the text and holds no state of the answer: the decoder decides whether the last parsed frame may be compared with, and adds
the text itself.
"""

from __future__ import annotations


class Shortcut:
    """A block is a frame's lines; a frame is a block and the blank line behind it."""

    def __init__(self) -> None:
        self._head = b""
        self._tail = b""
        self._end = b""

    def learn(self, block: bytes, text: str) -> None:
        """block was understood as this text and nothing else that changes; it is remembered if the text stands in it once."""
        needle = b'"' + text.encode("utf-8", "replace") + b'"'
        self._head = b""
        # No escapes anywhere: else the text might stand escaped where it is meant, and plain where it is not.
        if is_plain(text) and b"\\" not in block and block.count(needle) == 1:
            start = block.index(needle) + 1
            self._head, self._tail = block[:start], block[start + len(needle) - 2 :]
            self._end = self._tail + b"\n\n"

    def text_in(self, block: bytes) -> str | None:
        """The text of a block that is like the one learned, else None."""
        return self._between(block, self._tail) if self._head and block.startswith(self._head) else None

    def text_in_frame(self, frame: bytes) -> str | None:
        """The same for a whole frame."""
        return self._between(frame, self._end) if self._head and frame.startswith(self._head) else None

    def _between(self, data: bytes, tail: bytes) -> str | None:
        size = len(self._head)
        if not data.endswith(tail) or len(data) < size + len(tail):
            return None
        try:
            text = data[size : -len(tail)].decode("utf-8")
        except UnicodeDecodeError:
            return None
        # is_plain(), written out: this runs for every frame of every stream
        return text if text.isprintable() and '"' not in text and "\\" not in text and text else None


def is_plain(text: str) -> bool:
    """Whether JSON writes this text as it is: not empty, no quote, no backslash, nothing that cannot be printed."""
    return bool(text) and text.isprintable() and '"' not in text and "\\" not in text
