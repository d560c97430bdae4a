"""Cursor: thinking that some models write into their text, between <think> and </think>.

Only at the beginning of a run of text, where a model that thinks so does it; a <think> in the middle of prose or code is a word like
any other, and stays. What may still become a mark is held back, never more than that.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["text", "thought"]
Piece: TypeAlias = tuple[Kind, str]

_OPENS, _CLOSES = "<think>", "</think>"
_MOST_BLANKS = 256  # before a mark; more of them are text
_BLANKS = re.compile(r"\s*")


class Splitter:
    """One run of text: feed() what comes of it, close() where something else begins."""

    def __init__(self) -> None:
        self._state: Literal["start", "text", "thought"] = "start"
        self._held = ""
        self._is_behind = False  # a thought: the line breaks between it and the text belong to neither

    def feed(self, text: str) -> list[Piece]:
        pieces: list[Piece] = []
        text, self._held = self._held + text, ""
        place = 0
        while place < len(text):
            if self._state == "start":
                place = self._begin(text, place, pieces)
            elif self._state == "thought":
                place = self._think(text, place, pieces)
            else:
                pieces.append(("text", text[place:]))
                break
        return pieces

    def close(self) -> list[Piece]:
        """What is held back was no mark; the next run begins anew."""
        kind: Kind = "thought" if self._state == "thought" else "text"
        held = self._held.lstrip("\r\n") if self._is_behind and kind == "text" else self._held
        self._state, self._held, self._is_behind = "start", "", False
        return [(kind, held)] if held else []

    def _begin(self, text: str, place: int, pieces: list[Piece]) -> int:
        """Decides what the run begins with, and gives back the place behind that."""
        found = _BLANKS.match(text, place)
        word = place if found is None else found.end()
        if text.startswith(_OPENS, word):
            self._state = "thought"
            return word + len(_OPENS)
        if word - place <= _MOST_BLANKS and _OPENS.startswith(text[word : word + len(_OPENS)]):
            self._held = text[place:]
            return len(text)
        self._state = "text"
        said = text[place:].lstrip("\r\n") if self._is_behind else text[place:]
        self._is_behind = False
        if said:
            pieces.append(("text", said))
        return len(text)

    def _think(self, text: str, place: int, pieces: list[Piece]) -> int:
        closes = text.find(_CLOSES, place)
        end = closes if closes >= 0 else len(text) - _begun(text[place:][-len(_CLOSES) :])
        if closes >= 0:
            self._state, self._is_behind = "start", True
        else:
            self._held = text[end:]
        if end > place:
            pieces.append(("thought", text[place:end]))
        return len(text) if closes < 0 else closes + len(_CLOSES)


def _begun(text: str) -> int:
    """How many of the last characters may be the beginning of the closing mark."""
    return next((size for size in range(len(_CLOSES) - 1, 0, -1) if text.endswith(_CLOSES[:size])), 0)
