"""Cursor: thinking that some models write into their text, between <think> and </think>.

Only at the beginning of a run of text, where a model that thinks so does it; a <think> in the middle of prose or code is a word like
any other, and stays. What may still become a mark is held back, never more than that.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["text", "thought"]
Piece: TypeAlias = tuple[Kind, str]

_OPENS, _CLOSES = "<think>", "</think>"
_MOST_BLANKS = 256  # before a mark; more of them are text


class Splitter:
    """One run of text: feed() what comes of it, close() where something else begins."""

    def __init__(self) -> None:
        self._state: Literal["start", "text", "thought"] = "start"
        self._held = ""
        self._is_behind = False  # a thought: the line breaks between it and the text belong to neither

    def feed(self, text: str) -> list[Piece]:
        pieces: list[Piece] = []
        text, self._held = self._held + text, ""
        while text:
            if self._state == "start":
                text = self._begin(text, pieces)
            elif self._state == "thought":
                text = self._think(text, pieces)
            else:
                pieces.append(("text", text))
                break
        return pieces

    def close(self) -> list[Piece]:
        """What is held back was no mark; the next run begins anew."""
        kind: Kind = "thought" if self._state == "thought" else "text"
        held = self._held.lstrip("\r\n") if self._is_behind and kind == "text" else self._held
        self._state, self._held, self._is_behind = "start", "", False
        return [(kind, held)] if held else []

    def _begin(self, text: str, pieces: list[Piece]) -> str:
        """Decides what the run begins with, and gives back what is behind that."""
        word = text.lstrip()
        if word.startswith(_OPENS):
            self._state = "thought"
            return word[len(_OPENS) :]
        if len(text) - len(word) <= _MOST_BLANKS and _OPENS.startswith(word):
            self._held = text
            return ""
        self._state = "text"
        said = text.lstrip("\r\n") if self._is_behind else text
        self._is_behind = False
        if said:
            pieces.append(("text", said))
        return ""

    def _think(self, text: str, pieces: list[Piece]) -> str:
        thought, mark, rest = text.partition(_CLOSES)
        if not mark:
            kept = _begun(text)
            thought, self._held = text[: len(text) - kept], text[len(text) - kept :]
        else:
            self._state, self._is_behind = "start", True
        if thought:
            pieces.append(("thought", thought))
        return rest


def _begun(text: str) -> int:
    """How many of the last characters may be the beginning of the closing mark."""
    return next((size for size in range(len(_CLOSES) - 1, 0, -1) if text.endswith(_CLOSES[:size])), 0)
