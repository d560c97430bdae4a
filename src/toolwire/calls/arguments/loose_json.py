"""Reads JSON with the mistakes of models: accepted where one meaning is possible, refused where there are two.

Accepted: 'single', “smart” and `backtick` quotes, unquoted keys, a text without quotes before the next key, True and None, tuples,
comments, missing or extra commas, other characters for commas and colons, line ends inside texts, escapes that JSON does not have, +5 and
.5, missing or wrong closers where an outer one follows. Never done: ending a text that has no end, splitting a list of bare words,
inventing a member. A closer that is missing at the very end is added and reported in `unclosed`, because only the schema shows whether
something was lost there.
"""

from __future__ import annotations

import re
from typing import NoReturn

from ...types import Json, JsonObject
from ...wire.exact_json import BadJson, decode
from ..schemas.keywords import Path
from .quotes import ENDS, NotLoose, Place, QuoteReader, Steps

__all__ = ["Loose", "NotLoose"]

DEEPEST = 60
MOST_STEPS = 8_000
_SPACE = re.compile(r"(?:[\s\ufeff\u200b-\u200d\u2060]+|//[^\n]*\n|#[^\n]*\n|/\*.*?\*/)*", re.DOTALL)
_NUMBER = re.compile(r"([+-]?)((?:0|[1-9]\d*+)?+)(\.?)(\d*+)((?:[eE][+-]?\d++)?+)(?![\w.+-])")
_COMMENT = re.compile(r"[/#]")
_CONTENT = re.compile(r"[\"{}\[\]]|\d\s*,")
_THREE_DIGITS = re.compile(r"\d{3}(?!\d)")
_WORD = re.compile(r"[A-Za-z_$][\w$-]*")
_WORDS = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("null", "Null", "NULL", "None")),
}
_BARE = re.compile(r"(\w(?:[\w ./@+-]{0,200}\w)?)\s{0,80}(?:\}|,\s{0,80}[\"']?([\w$-]{1,80})[\"']?\s{0,80}:)")
_LETTER = re.compile(r"[^\W\d_]|[-/]")
_NO_TEXTS = frozenset({"true", "false", "null", "none", "nan", "infinity", "undefined", "nil", "void"})
_CLOSERS = {"{": "}", "[": "]", "(": ")"}
_COMMAS = (",", "，", ";")
_COLON = re.compile(r"=>|[:：=]")
_KEY_IN_LIST = re.compile(r"\"([^\"\\]{1,80})\"\s*:")
_NOTHING: frozenset[str] = frozenset()


class Loose:
    """Reads one value from start on. Afterwards: repairs it needed, where it ended, and what was left open there.

    names are those of the properties that the schema knows, at any depth.
    """

    def __init__(self, text: str, start: int = 0, names: frozenset[str] = _NOTHING, steps: Steps | None = None) -> None:
        self._text = text
        self._names = names
        self._open: list[str] = []
        self._steps = Steps(MOST_STEPS) if steps is None else steps
        self.position = start
        self.repairs: dict[str, None] = {}  # a set that keeps its order
        self.unclosed: list[Path] = []
        self.ends_in_number = False
        self.last_text = ""
        self.mended: list[Path] = []  # containers whose closer was another, or was missing before what followed
        self._is_at_key = False
        self._quoting = QuoteReader(text, names, self.repairs, self._steps)

    @property
    def steps(self) -> int:
        return self._steps.taken

    def value(self) -> Json:
        return self._value((), "item")

    def members(self) -> JsonObject:
        """The members of an object that lacks its opening brace."""
        self._open.append("{")
        return self._members(())

    def text(self) -> str:
        """One text and nothing else."""
        return self._string("item")

    def _value(self, path: Path, place: Place) -> Json:
        self._skip()
        self._steps.take()
        self.ends_in_number = False
        mark = self._peek()
        if mark in _CLOSERS:
            return self._container(mark, path)
        if mark in ENDS:
            return self._string(place)
        found = _NUMBER.match(self._text, self.position)
        if found and (found.group(2) or found.group(4)):
            return self._number(found)
        if place == "member" and (bare := self._bare()):
            return bare
        return self._word()

    def _container(self, mark: str, path: Path) -> Json:
        if len(self._open) >= DEEPEST:
            self._fail("it nests too deep")
        self.position += 1
        self._open.append(mark)
        if mark == "{":
            return self._doubled(path)
        return self._items(path, _CLOSERS[mark])

    def _doubled(self, path: Path) -> JsonObject:
        """An object, also with its braces doubled as in a template."""
        self._skip()
        if self._peek() != "{":
            return self._members(path)
        self.position += 1
        self.repairs["syntax.braces"] = None
        found = self._members(path)
        if self._peek() == "}" and not self.unclosed:
            self.position += 1
        return found

    def _members(self, path: Path) -> JsonObject:
        found: JsonObject = {}
        while not self._ended("}", path, is_first=not found):
            key = self._key()
            if key in found:
                self._fail("a key is there twice")
            self._colon()
            found[key] = self._value((*path, key), "member")
        return found

    def _colon(self) -> None:
        self._skip()
        found = _COLON.match(self._text, self.position)
        if found is None:
            self._fail("expected a colon")
        if found.group() != ":":
            self.repairs["syntax.colon"] = None
        self.position = found.end()

    def _items(self, path: Path, closer: str) -> list[Json]:
        found: list[Json] = []
        start = self.position
        while not self._ended(closer, path, is_first=not found):
            if found and not isinstance(found[-1], dict) and self._is_key():
                self._open.pop()
                self._mend(path)
                self._is_at_key = True
                return found
            found.append(self._value((*path, len(found)), "item"))
        if closer == ")":
            self.repairs["syntax.tuple"] = None
            if len(found) == 1 and self._text[start : self.position].rstrip(") \n")[-1:] != ",":
                self._fail("brackets around one value")
        return found

    def _is_key(self) -> bool:
        """A list has no keys: at a known key, the list before it was not closed."""
        found = _KEY_IN_LIST.match(self._text, self.position)
        return found is not None and found.group(1) in self._names and "{" in self._open

    def _ended(self, closer: str, path: Path, *, is_first: bool) -> bool:
        """Whether the container ends here; if not, the comma is behind us."""
        self._skip()
        has_comma = not is_first and self._commas(closer)
        mark = self._peek()
        if mark == "":
            self._end_of_text(path, is_first or has_comma)
        elif mark in _CLOSERS.values():
            self._close(mark, closer, path, is_first or has_comma)
        elif is_first or has_comma or self._is_at_key:
            self._is_at_key = False
            return False
        else:
            self._without_comma(mark, closer)
            return False
        self._open.pop()
        return True

    def _commas(self, closer: str) -> bool:
        """Goes over the comma; over several in an object, where nothing between them can be a member."""
        start = self.position
        while self._peek() in _COMMAS and self._peek() and (closer == "}" or self.position == start):
            self.position += 1
            self._skip()
        between = self._text[start : self.position].strip()
        if between and (between != "," or self._peek() in _CLOSERS.values()):
            self.repairs["syntax.comma"] = None
        return bool(between)

    def _end_of_text(self, path: Path, is_in_the_middle: bool) -> None:
        if is_in_the_middle:
            self._fail("it ends where something should follow")
        self.unclosed.append(path)
        self.repairs["syntax.closed"] = None

    def _close(self, mark: str, closer: str, path: Path, is_in_the_middle: bool) -> None:
        is_of_outer = mark in (_CLOSERS[outer] for outer in self._open[:-1])
        if mark != closer:
            if is_in_the_middle or (len(self._open) > 1 and not is_of_outer):
                self._fail("the end of something else")
            self._mend(path)
        if mark == closer or not is_of_outer:
            self.position += 1
        self.ends_in_number = False

    def _mend(self, path: Path) -> None:
        """A missing comma beside a missing closer is one doubt too many."""
        if "syntax.no_comma" in self.repairs:
            self._fail("neither closers nor commas can be trusted")
        self.mended.append(path)
        self.repairs["syntax.bracket"] = None

    def _without_comma(self, mark: str, closer: str) -> None:
        """A value has ended and another begins; but 10 500 may be one number."""
        if self.ends_in_number and closer != "}" and _THREE_DIGITS.match(self._text, self.position):
            self._fail("one number or two")
        if self.mended or self._text[self.position - 1] not in " \t\r\n":
            self._fail("expected a comma or an end")
        if closer != "}" and mark == "'":
            self._fail("one text or two")
        self.repairs["syntax.no_comma"] = None

    def _key(self) -> str:
        self._steps.take()
        if self._peek() in ENDS:
            return self._string("key")
        found = _WORD.match(self._text, self.position)
        if found is None:
            self._fail("expected a key")
        self.position = found.end()
        if self._peek() in ('"', "'"):
            self.position += 1
        self.repairs["syntax.key"] = None
        return found.group()

    def _bare(self) -> str:
        """A text without quotes: all up to the closing brace or to the next key, if the schema knows it; else ""."""
        found = _BARE.match(self._text, self.position)
        if found is None or "//" in found.group(1) or not _LETTER.search(found.group(1)):
            return ""
        if found.group(1).split()[0].lower() in _NO_TEXTS:
            return ""
        if found.group(2) and found.group(2) not in self._names:
            return ""
        self.position = found.end(1)
        self.repairs["syntax.bare"] = None
        return found.group(1)

    def _word(self) -> Json:
        found = _WORD.match(self._text, self.position)
        word = found.group() if found else ""
        if found is None or word not in _WORDS:
            self._fail("expected a value")
        self.position = found.end()
        if word not in ("true", "false", "null"):
            self.repairs["syntax.literal"] = None
        return _WORDS[word]

    def _number(self, found: re.Match[str]) -> Json:
        sign, whole, point, fraction, exponent = found.groups()
        self.position = found.end()
        self.ends_in_number = True
        written = f"{'-' if sign == '-' else ''}{whole or '0'}{f'.{fraction or 0}' if point else ''}{exponent}"
        if fraction and not point:
            self._fail("a number that begins with zero")
        if written != found.group():
            self.repairs["syntax.number"] = None
        try:
            return decode(written)
        except BadJson as error:
            raise NotLoose(str(error)) from None

    def _string(self, place: Place) -> str:
        found = self._quoting.read(self.position, place)
        self.position = self._quoting.position
        self.last_text = found
        return found

    def _skip(self) -> None:
        found = _SPACE.match(self._text, self.position)
        if found and found.end() > self.position:
            if _COMMENT.search(found.group()):
                self._comment(found.group())
            self.position = found.end()

    def _comment(self, words: str) -> None:
        """One that holds quotes, brackets or a list of numbers may have swallowed what was meant."""
        if _CONTENT.search(words):
            self._fail("a comment or a member")
        self.repairs["syntax.comment"] = None

    def _peek(self) -> str:
        return self._text[self.position : self.position + 1]

    def _fail(self, words: str) -> NoReturn:
        raise NotLoose(f"{words} at character {self.position}")
