"""Frames that differ from the last one only in a piece of plain text: known by their first and last bytes, without parsing.

A model's answer is mostly such frames. Where the bytes before and after the text are those of a frame that was parsed and
understood, and the text between them needs no unescaping, the frame means the same with that text. Anything else is not matched,
and whoever reads other frames in between must forget.
"""

from __future__ import annotations


class Shortcut:
    def __init__(self) -> None:
        self._head = b""
        self._tail = b""

    def learn(self, frame: bytes, text: str) -> None:
        """frame was understood as this text and nothing else that changes; it is remembered if the text stands in it once."""
        needle = b'"' + text.encode("utf-8", "replace") + b'"'
        self._head = b""
        if is_plain(text) and frame.count(needle) == 1:
            start = frame.index(needle) + 1
            self._head, self._tail = frame[:start], frame[start + len(needle) - 2 :]

    def forget(self) -> None:
        self._head = b""

    def text_in(self, frame: bytes) -> str | None:
        """The text of a frame that is like the one learned, else None."""
        head, tail = self._head, self._tail
        if not head or not frame.startswith(head) or not frame.endswith(tail) or len(frame) < len(head) + len(tail):
            return None
        try:
            text = frame[len(head) : -len(tail)].decode("utf-8")
        except UnicodeDecodeError:
            return None
        return text if is_plain(text) else None


def is_plain(text: str) -> bool:
    """Whether JSON writes this text as it is: not empty, no quote, no backslash, nothing that cannot be printed."""
    return bool(text) and text.isprintable() and '"' not in text and "\\" not in text
