"""JSON as models write it when they slip: read where one meaning is possible, refused where there are two.

Taken: 'single quotes', unquoted keys, True and None, commas before a closer, line breaks and other control characters inside
texts, escapes that JSON does not have, closers left out where an outer one follows. What is never done: end a text that does
not end, guess where a quote inside a text was meant, make a value of a bare word, invent a member. A closer that is missing at
the very end is taken as written and reported in `unclosed`, because only who knows the schema can say whether something was
lost there.
"""

from __future__ import annotations

import re
from typing import NoReturn

from ...types import Json, JsonObject
from ...wire.exact import BadJson, decode
from ..schemas.positions import Path

DEEPEST = 60
_SPACE = re.compile(r"[\s\ufeff]*")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.+-])")
_WORD = re.compile(r"[A-Za-z_$][\w$-]*")
_WORDS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_PLAIN = {'"': re.compile(r'[^"\\]+'), "'": re.compile(r"[^'\\]+")}
_CONTROL = re.compile(r"[\x00-\x1f]")
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "/": "/"}
_HEX = re.compile(r"[0-9a-fA-F]{4}")
_PAIR = re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_CLOSERS = {"{": "}", "[": "]"}


class NotLoose(ValueError):
    """No JSON, not even loosely, or more than one meaning."""


class Loose:
    """Reads one value from start on. Afterwards: repairs it needed, where it ended, and what was left open there."""

    def __init__(self, text: str, start: int = 0) -> None:
        self._text = text
        self._open: list[str] = []
        self.position = start
        self._has_escape = False  # in the text that is being read: one that stands for another character
        self._has_backslash = False  # and one that JSON does not have, so a backslash was meant
        self.repairs: dict[str, None] = {}  # a set that keeps its order
        self.unclosed: list[Path] = []
        self.ends_in_number = False

    def value(self) -> Json:
        return self._value(())

    def members(self) -> JsonObject:
        """The members of an object that lacks its opening brace."""
        self._open.append("{")
        return self._members(())

    def _value(self, path: Path) -> Json:
        self._skip()
        self.ends_in_number = False
        mark = self._peek()
        if mark in _CLOSERS:
            return self._container(mark, path)
        if mark in _PLAIN:
            return self._string(mark)
        if found := _NUMBER.match(self._text, self.position):
            self.position = found.end()
            self.ends_in_number = True
            return _number(found.group())
        return self._word()

    def _container(self, mark: str, path: Path) -> Json:
        if len(self._open) >= DEEPEST:
            self._fail("it nests too deep")
        self.position += 1
        self._open.append(mark)
        return self._members(path) if mark == "{" else self._items(path)

    def _members(self, path: Path) -> JsonObject:
        found: JsonObject = {}
        while not self._ended("}", path, is_first=not found):
            key = self._key()
            if key in found:
                self._fail("a key is there twice")
            self._skip()
            if self._peek() != ":":
                self._fail("expected a colon")
            self.position += 1
            found[key] = self._value((*path, key))
        return found

    def _items(self, path: Path) -> list[Json]:
        found: list[Json] = []
        while not self._ended("]", path, is_first=not found):
            found.append(self._value((*path, len(found))))
        return found

    def _ended(self, closer: str, path: Path, *, is_first: bool) -> bool:
        """Whether the container ends here; if not, the comma is behind us."""
        self._skip()
        if not is_first and self._peek() == ",":
            self.position += 1
            self._skip()
            if self._peek() != closer:
                return self._peek() == "" and self._fail("it ends after a comma")
            self.repairs["syntax.comma"] = None
        mark = self._peek()
        if mark == closer:
            self.position += 1
        elif mark == "" and not is_first:
            self.unclosed.append(path)
            self.repairs["syntax.closed"] = None
        elif mark in "}]" and mark and mark in (_CLOSERS[outer] for outer in self._open[:-1]) and not is_first:
            self.repairs["syntax.closed"] = None
        elif is_first and mark:
            return False
        else:
            self._fail("expected a comma or an end")
        if mark:
            self.ends_in_number = False
        self._open.pop()
        return True

    def _key(self) -> str:
        mark = self._peek()
        if mark in _PLAIN:
            return self._string(mark)
        found = _WORD.match(self._text, self.position)
        if found is None:
            self._fail("expected a key")
        self.position = found.end()
        self.repairs["syntax.key"] = None
        return found.group()

    def _word(self) -> Json:
        found = _WORD.match(self._text, self.position)
        if found is None or found.group() not in _WORDS:
            self._fail("expected a value")
        self.position = found.end()
        if found.group()[0].isupper():
            self.repairs["syntax.literal"] = None
        return _WORDS[found.group()]

    def _string(self, quote: str) -> str:
        start = self.position = self.position + 1
        self._has_escape = self._has_backslash = False
        pieces: list[str] = []
        while True:
            if found := _PLAIN[quote].match(self._text, self.position):
                pieces.append(found.group())
                self.position = found.end()
            mark = self._peek()
            if mark == quote:
                break
            if mark == "":
                self._fail("a text does not end")
            pieces.append(self._escaped())
        text = self._text[start : self.position]
        self.position += 1
        if self._has_escape and self._has_backslash:  # in "\\bin\\data" nobody knows which backslashes were meant
            self._fail("a text with escapes and backslashes")
        if quote == "'":
            self.repairs["syntax.quotes"] = None
        if _CONTROL.search(text):
            self.repairs["syntax.control"] = None
        return "".join(pieces)

    def _escaped(self) -> str:
        letter = self._text[self.position + 1 : self.position + 2]
        self.position += 2
        if letter in _ESCAPES and letter:
            self._has_escape = self._has_escape or letter not in '"/'
            return _ESCAPES[letter]
        found = _HEX.match(self._text, self.position) if letter == "u" else None
        if found is None and letter:
            self.repairs["syntax.escape"] = None
            self._has_backslash = self._has_backslash or letter != "'"
            return letter if letter == "'" else f"\\{letter}"
        if found is None:
            self._fail("a text does not end")
        self._has_escape = True
        self.position = found.end()
        high = int(found.group(), 16)
        pair = _PAIR.match(self._text, self.position) if 0xD800 <= high < 0xDC00 else None
        if pair is None:
            return chr(high)
        self.position = pair.end()
        return chr(0x10000 + ((high - 0xD800) << 10) + int(pair.group(1), 16) - 0xDC00)

    def _skip(self) -> None:
        found = _SPACE.match(self._text, self.position)
        self.position = found.end() if found else self.position

    def _peek(self) -> str:
        return self._text[self.position : self.position + 1]

    def _fail(self, words: str) -> NoReturn:
        raise NotLoose(f"{words} at character {self.position}")


def _number(text: str) -> Json:
    try:
        return decode(text)
    except BadJson as error:
        raise NotLoose(str(error)) from None
