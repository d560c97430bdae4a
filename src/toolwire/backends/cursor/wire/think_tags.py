"""Thinking that some models write into their text, between <think> and </think>.

A tag counts only at the start of a run of text; a <think> in the middle of prose or code is text. Only characters that may still
become a tag are held back.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["text", "thought"]
Piece: TypeAlias = tuple[Kind, str]

_OPEN, _CLOSE = "<think>", "</think>"
_MAX_WHITESPACE = 256  # before a tag; more is text
_WHITESPACE = re.compile(r"\s*")


class ThinkTagSplitter:
    """One run of text: feed() its pieces, close() at its end."""

    def __init__(self) -> None:
        self._state: Literal["start", "text", "thought"] = "start"
        self._held = ""
        self._is_after_thought = False  # line breaks between a thought and the text are dropped

    def feed(self, text: str) -> list[Piece]:
        pieces: list[Piece] = []
        text, self._held = self._held + text, ""
        position = 0
        while position < len(text):
            if self._state == "start":
                position = self._start(text, position, pieces)
            elif self._state == "thought":
                position = self._think(text, position, pieces)
            else:
                pieces.append(("text", text[position:]))
                break
        return pieces

    def close(self) -> list[Piece]:
        """The held text was no tag; the next feed() starts another run."""
        kind: Kind = "thought" if self._state == "thought" else "text"
        held = self._held.lstrip("\r\n") if self._is_after_thought and kind == "text" else self._held
        self._state, self._held, self._is_after_thought = "start", "", False
        return [(kind, held)] if held else []

    def _start(self, text: str, position: int, pieces: list[Piece]) -> int:
        """Decides what the run begins with; returns the position after it."""
        found = _WHITESPACE.match(text, position)
        word = position if found is None else found.end()
        if text.startswith(_OPEN, word):
            self._state = "thought"
            return word + len(_OPEN)
        if word - position <= _MAX_WHITESPACE and _OPEN.startswith(text[word : word + len(_OPEN)]):
            self._held = text[position:]
            return len(text)
        self._state = "text"
        rest = text[position:].lstrip("\r\n") if self._is_after_thought else text[position:]
        self._is_after_thought = False
        if rest:
            pieces.append(("text", rest))
        return len(text)

    def _think(self, text: str, position: int, pieces: list[Piece]) -> int:
        close = text.find(_CLOSE, position)
        end = close if close >= 0 else len(text) - _partial_close(text[position:][-len(_CLOSE) :])
        if close >= 0:
            self._state, self._is_after_thought = "start", True
        else:
            self._held = text[end:]
        if end > position:
            pieces.append(("thought", text[position:end]))
        return len(text) if close < 0 else close + len(_CLOSE)


def _partial_close(text: str) -> int:
    """How many of the last characters may be the start of the closing tag."""
    return next((size for size in range(len(_CLOSE) - 1, 0, -1) if text.endswith(_CLOSE[:size])), 0)
