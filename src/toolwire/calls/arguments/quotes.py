"""Reads one text between quotes, with the mistakes of models: other quotes, raw line ends, escapes that JSON does not have.

A text ends at its quote, also at a wrong one; it is never ended where no quote is. A quote inside that lost its backslash is recognized
where what follows cannot follow a text, and only if such quotes come in pairs: in "He said "no", and left" the comma makes the second look
like an end, so the first has no partner, and the text is refused.
"""

from __future__ import annotations

import json
import re
from typing import Literal, NoReturn, TypeAlias

Place: TypeAlias = Literal["key", "member", "item"]

ENDS = {'"': '"', "'": "'", "`": "`", "“": "”", "”": "”", "‘": "’", "’": "’"}
_SIMPLE = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_PLAIN = {end: re.compile(rf"[^\\{end}]+") for end in ENDS.values()}
_AFTER = {  # what may follow a text: a colon follows a key; a comma, an end, a comment or nothing follows a value
    "key": re.compile(r"\s*[:=：]"),
    "member": re.compile(r"\s*(?:[,，}\]]|\)(?![\"'])|;\s|//|/\*|#|\Z)"),
    "item": re.compile(r"\s*(?:[,，}\]]|\)(?![\"'])|;\s|//|/\*|#|\Z)"),
}
_NEXT_KEY = re.compile(r"\s+(?:([\"'])[^\"'\\\n]{1,80}\1|([\w$.-]{1,80}))\s*[:=：]")
_NEXT_ITEM = re.compile(r"\s+\"")
_APOSTROPHE = re.compile(r"(?<=\w)['’](?=\w)")
_OPENING = re.compile(r"[\s(=].[^\s,:;=]", re.DOTALL)
_CLOSING = re.compile(r"[^\s,:;=\[{(].[\s.!?)\"'”’`;]", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f]")
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "/": "/"}
_HEX = re.compile(r"[0-9a-fA-F]{4}")
_BYTE = re.compile(r"[0-9a-fA-F]{2}")
_PAIR = re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_LONG = '"""'


class NotLoose(ValueError):
    """No JSON, not even loosely, or more than one meaning."""


class QuoteReader:
    """Reads the texts of one document; names are those that may follow as keys where a comma was forgotten."""

    def __init__(self, document: str, names: frozenset[str], repairs: dict[str, None], steps: Steps) -> None:
        self._document = document
        self._names = names
        self._repairs = repairs
        self._steps = steps
        self._has_escape = False  # an escape for another character
        self._has_backslash = False  # and one that JSON does not have, so a backslash was meant
        self.position = 0

    def read(self, start: int, place: Place) -> str:
        """The text whose opening quote is at start; afterwards position is behind its end."""
        if self._document.startswith(_LONG, start) and place != "key":
            return self._long(start)
        if (found := self._simple(start, place)) is not None:
            return found
        opening = self._document[start]
        self.position = start + 1
        self._has_escape = self._has_backslash = False
        text = "".join(self._pieces(ENDS[opening], place))
        if opening == "`" and text.count('"') % 2:
            self._fail("which of the quotes are the text's is not sure")
        if self._has_escape and self._has_backslash:  # in "\bin\data" it is unknown which backslashes were meant
            self._fail("a text with escapes and backslashes")
        if opening != '"':
            self._repairs["syntax.quotes"] = None
        if _CONTROL.search(self._document, start, self.position):
            self._repairs["syntax.control"] = None
        self.position += 1
        return text

    def _simple(self, start: int, place: Place) -> str | None:
        """One that needs no care, raw line ends at most: nearly all, and the long ones above all."""
        found = _SIMPLE.match(self._document, start)
        if found is None and self._document[start] == '"':
            self._fail("a text does not end")
        if found is None or not _AFTER[place].match(self._document, found.end()):
            return None
        try:
            text: str = json.loads(found.group(), strict=False)
        except ValueError:
            return None
        self._steps.take()
        self.position = found.end()
        if _CONTROL.search(found.group()):
            self._repairs["syntax.control"] = None
        return text

    def _pieces(self, end: str, place: Place) -> list[str]:
        pieces: list[str] = []
        inner = 0
        while True:
            self._steps.take()
            if found := _PLAIN[end].match(self._document, self.position):
                pieces.append(found.group())
                self.position = found.end()
            mark = self._document[self.position : self.position + 1]
            if mark == "":
                self._fail("a text does not end")
            if mark == "\\":
                pieces.append(self._escaped(end))
                continue
            if self._is_end(end, place):
                break
            if _APOSTROPHE.match(self._document, self.position) is None:
                self._check_inner(inner % 2 == 0, is_first=not pieces)
                inner += 1
            pieces.append(mark)
            self.position += 1
            self._repairs["syntax.inner_quotes"] = None
        if inner % 2:
            self._fail("a quote inside a text has no partner")
        return pieces

    def _check_inner(self, is_opening: bool, is_first: bool) -> None:
        """A quote inside a text opens before a word or closes behind one; where it does neither, a comma may be lost."""
        if is_opening and not is_first and not _OPENING.match(self._document, self.position - 1):
            self._fail("a quote that may be an end")
        if not is_opening and not _CLOSING.match(self._document, self.position - 1):
            self._fail("a quote that may be an end")

    def _is_end(self, end: str, place: Place) -> bool:
        after = self.position + 1
        if _AFTER[place].match(self._document, after):
            return True
        if place == "key":
            self._fail("expected a colon")
        if self._document.startswith((" ", "\n", "\t", "\r"), after):
            found = _NEXT_KEY.match(self._document, after)
            if found and (found.group(1) or found.group(2) in self._names):
                return True
            if place == "item" and end == '"' and _NEXT_ITEM.match(self._document, after):
                return True
        if _NEXT_ITEM.match(self._document, after):
            self._fail("two texts with nothing between them")
        return False

    def _long(self, start: int) -> str:
        """Python's long text: everything up to the next three quotes."""
        start += len(_LONG)
        end = self._document.find(_LONG, start)
        found = self._document[start:end]
        is_short = "\n" not in found and '"' in found  # it may be two texts with too many quotes
        if end < 0 or "\\" in found or is_short or self._document.startswith('"', end + len(_LONG)):
            self._fail("a long text that does not end, or not surely there")
        self.position = end + len(_LONG)
        self._repairs["syntax.quotes"] = None
        return found

    def _escaped(self, end: str) -> str:
        letter = self._document[self.position + 1 : self.position + 2]
        self.position += 2
        if letter == "":
            self._fail("a text does not end")
        if letter in _ESCAPES:
            self._has_escape = self._has_escape or letter not in '"/'
            return _ESCAPES[letter]
        if letter in ("'", end):
            self._repairs["syntax.escape"] = None
            return letter
        if letter == "u" and (found := _HEX.match(self._document, self.position)):
            return self._code_point(found)
        if letter == "x" and _BYTE.match(self._document, self.position):
            return self._byte(end)
        self._repairs["syntax.escape"] = None
        self._has_backslash = True
        return f"\\{letter}"

    def _byte(self, end: str) -> str:
        """Python writes it so between its own quotes; between JSON's it may be a backslash that was not doubled."""
        if end != "'":
            self._fail("an escape of another language")
        self._has_escape = True
        self.position += 2
        return chr(int(self._document[self.position - 2 : self.position], 16))

    def _code_point(self, found: re.Match[str]) -> str:
        self._has_escape = True
        self.position = found.end()
        high = int(found.group(), 16)
        pair = _PAIR.match(self._document, self.position) if 0xD800 <= high < 0xDC00 else None
        if pair is None:
            return chr(high)
        self.position = pair.end()
        return chr(0x10000 + ((high - 0xD800) << 10) + int(pair.group(1), 16) - 0xDC00)

    def _fail(self, words: str) -> NoReturn:
        raise NotLoose(f"{words} at character {self.position}")


class Steps:
    """How much work was done: reading loosely is Python's, so its time is bounded by steps and not by length alone."""

    def __init__(self, count: int) -> None:
        self._most = count
        self.taken = 0

    def take(self) -> None:
        self.taken += 1
        if self.taken > self._most:
            raise NotLoose("it takes too long to read")
