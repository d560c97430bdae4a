"""Reads text that arrives in pieces as if it were whole: the one lexer under all grammars.

A grammar is a script: a generator that reads a Tape and yields wherever it needs text that has not arrived yet. Nothing depends on where a
piece ends, so cutting the text elsewhere cannot change the result. Every reader visits each letter a bounded number of times, and looks
ahead no further than its longest mark.

A script reports what it found by opened, grew, closed, whole and broken. Each complete call is a checkpoint: an error after it costs only
what follows it. NoCall: this is text. UnreadableCall: this is meant as a call, and cannot be read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from typing import Literal, Protocol, TypeAlias, TypeVar

from .base import CallBroken, CallClosed, CallGrew, CallOpened, Piece, ToolLookup

Found = TypeVar("Found")
Steps: TypeAlias = Generator[None, None, Found]

LONGEST_NAME = 128
_MOST_BLANKS = 64
_BLANKS = re.compile(r"\s*")
_ON_LINE = re.compile(r"[^\S\n]*")
_WORD = re.compile(r"[\w.:/-]*")
_STRAYS = re.compile(r"[\s\]})]*")


class NoCall(Exception):
    """It is text after all."""


class UnreadableCall(Exception):
    """It is meant as a call, and cannot be read as one."""

    def __init__(self, why: str, name: str = "", raw: str = "") -> None:
        super().__init__(why)
        self.why = why
        self.name = name
        self.raw = raw


class Mark(Protocol):
    """Something to search for. longest: letters of the longest match."""

    @property
    def pattern(self) -> re.Pattern[str]: ...

    @property
    def longest(self) -> int: ...


class Marks:
    """Literal texts that mean something; none is the beginning of another, and none begins inside another."""

    def __init__(self, *texts: str) -> None:
        self.texts = texts
        self.longest = max(map(len, texts))
        self.pattern = re.compile("|".join(map(re.escape, texts)))


class Tape:
    """The text that has arrived and is not read yet, and the span since the last complete call.

    is_exact: only valid calls of known tools count, so an unreadable one is text. must_close: so is one without an end of its own.
    """

    def __init__(self, opener: str, known: ToolLookup, *, is_exact: bool = False, must_close: bool = False) -> None:
        self.opener = opener
        self.known = known
        self.is_exact = is_exact
        self.must_close = must_close
        self.is_instructed = known.is_instructed and not is_exact
        self.size = 0  # letters read
        self.pieces: list[Piece] = []
        self.name = ""  # of the call that is open
        self.has_found = False
        self._raw: list[str] = []
        self._span = [opener]
        self._text = ""
        self._at = 0
        self._is_over = False

    def add(self, text: str) -> None:
        self._text = self._text[self._at :] + text
        self._at = 0

    def end(self) -> None:
        self._is_over = True

    @property
    def rest(self) -> str:
        return self._text[self._at :]

    @property
    def span(self) -> str:
        """All that was read since the last whole call, as it came."""
        return "".join(self._span)

    # What a script has found.

    def opened(self, name: str) -> None:
        self.name = name
        self.pieces.append(CallOpened(name))

    def grew(self, text: str) -> None:
        self._raw.append(text)
        self.pieces.append(CallGrew(text))

    @property
    def raw(self) -> str:
        return "".join(self._raw)

    def closed(self, *repairs: str) -> None:
        self.whole(self.name, self.raw, *repairs)

    def whole(self, name: str, raw: str, *repairs: str) -> None:
        self.pieces.append(CallClosed(name=name, raw=raw, repairs=repairs))
        self.checkpoint()

    def broken(self, why: str, name: str, raw: str) -> None:
        name, raw = (self.name, self.raw) if self.name else (name, raw)
        self.pieces.append(CallBroken(text=self.span, why=why, name=name, raw=raw))
        self.checkpoint()

    def checkpoint(self) -> None:
        """What was read so far belongs to the block, whatever follows."""
        self.name = ""
        self.has_found = True
        self._raw.clear()
        self._span.clear()

    # Reading.

    def more(self) -> Steps[bool]:
        """Waits for more text; False where none will come."""
        if not self._is_over:
            yield
        return not self._is_over

    def take(self, end: int) -> str:
        text = self._text[self._at : end]
        if text:
            self._span.append(text)
            self.size += len(text)
        self._at = end
        return text

    def put_back(self, text: str) -> None:
        """The last letters that were read, and are not part of the block."""
        span = self.span
        self._span = [span[: len(span) - len(text)]]
        self.size -= len(text)
        self._text, self._at = text + self.rest, 0

    def peek(self) -> Steps[str]:
        """The next letter, not read yet; "" at the end."""
        while self._at >= len(self._text):
            if not (yield from self.more()):
                return ""
        return self._text[self._at]

    def take_by(self, read: Callable[[str, int], int], limit: int | None = None) -> str:
        """Reads as far as this function does, which gets the text and a position, at most so many letters."""
        text = self._text if limit is None else self._text[: self._at + limit]
        return self.take(read(text, self._at))

    def ahead(self, count: int) -> Steps[str]:
        """The next letters but blanks, not read yet; fewer at the end, and behind too many blanks."""
        while True:
            window = self._text[self._at : self._at + _MOST_BLANKS + count]
            found = "".join(window.split())[:count]
            if len(found) == count or len(window) == _MOST_BLANKS + count or not (yield from self.more()):
                return found

    def blanks(self) -> Steps[None]:
        while True:
            end = _end(_BLANKS, self._text, self._at)
            self.take(end)
            if end < len(self._text) or not (yield from self.more()):
                return

    def word(self) -> Steps[str]:
        """A name, as far as its letters go; NoCall where it is too long to be one."""
        found = ""
        while True:
            found += self.take(min(_end(_WORD, self._text, self._at), self._at + LONGEST_NAME + 1))
            if len(found) > LONGEST_NAME:
                raise NoCall
            if self._at < len(self._text) or not (yield from self.more()):
                return found

    def past(self, marks: Marks, strays: bool = False) -> Steps[str]:
        """The mark that comes next, behind blanks at most (and closers that belong to nothing); "" if none does, and nothing is read."""
        blanks = _STRAYS if strays else _BLANKS
        while True:
            end = _end(blanks, self._text, self._at, self._at + _MOST_BLANKS)
            if end - self._at == _MOST_BLANKS:
                return ""
            found = marks.pattern.match(self._text, end)
            if found is not None:
                self.take(found.end())
                return found.group()
            left = self._text[end : end + marks.longest]
            if not any(mark.startswith(left) for mark in marks.texts) or not (yield from self.more()):
                return ""

    def upto(self, marks: Mark, limit: int = 0) -> Steps[tuple[str, str]]:
        """The text before the next mark, and the mark, both read; mark "" at the end of all text, or where none comes within limit."""
        parts: list[str] = []
        left = limit
        while True:
            last = self._at + left + marks.longest if limit else len(self._text)
            found = marks.pattern.search(self._text, self._at, last)
            if found is not None:
                parts.append(self.take(found.start()))
                self.take(found.end())
                return "".join(parts), found.group()
            if limit and len(self._text) >= last:
                parts.append(self.take(self._at + left))
                return "".join(parts), ""
            safe = max(self._at, len(self._text) - marks.longest + 1)
            left -= safe - self._at
            parts.append(self.take(safe))
            if not (yield from self.more()):
                parts.append(self.take(len(self._text)))
                return "".join(parts), ""

    def coming(self, marks: Marks, limit: int) -> Steps[str]:
        """The first mark within so many letters; nothing is read. "" where none comes."""
        seen = 0
        while True:
            found = marks.pattern.search(self._text, self._at + seen, self._at + limit)
            if found is not None:
                return found.group()
            length = len(self._text) - self._at
            seen = max(seen, length - marks.longest + 1)
            if length >= limit or not (yield from self.more()):
                return ""

    def ends_line(self) -> Steps[bool]:
        """Whether nothing but blanks follows on this line; nothing is read."""
        while True:
            end = _end(_ON_LINE, self._text, self._at, self._at + _MOST_BLANKS)
            if end < len(self._text):
                return self._text[end] == "\n"
            if not (yield from self.more()):
                return True

    def flow(self, marks: Marks, piece: Callable[[str], Piece]) -> Steps[None]:
        """Gives all text before the next mark as it comes; the mark is not read."""
        while True:
            found = marks.pattern.search(self._text, self._at)
            safe = len(self._text) - marks.longest + 1 if found is None else found.start()
            if text := self.take(max(self._at, safe)):
                self.pieces.append(piece(text))
                self.checkpoint()
            if found is not None:
                return
            if not (yield from self.more()):
                if text := self.take(len(self._text)):
                    self.pieces.append(piece(text))
                return

    def balanced(self, *, grows: bool = False, depth: int = 0) -> Steps[tuple[str, bool]]:
        """A text in brackets or quotes up to its end, and whether it has one. depth: so many brackets were opened before."""
        brackets = Brackets(depth)
        parts: list[str] = []
        while True:
            end = brackets.read(self._text, self._at)
            if text := self.take(end):
                parts.append(text)
                if grows:
                    self.grew(text)
            if brackets.status != "open" or not (yield from self.more()):
                return "".join(parts), brackets.status == "closed"


class Brackets:
    """Where a bracketed text ends, strings not counted: JSON, and what models take for JSON. `<` outside a string ends it, too, and
    badly: it can only be markup that follows something left open."""

    def __init__(self, depth: int = 0) -> None:
        self.status: Literal["open", "closed", "torn"] = "open"
        self._depth = depth
        self._quote = ""
        self._is_escaped = False
        self._may_end = False  # after a single quote, which is an apostrophe if the text continues
        self._last = "{"

    def read(self, text: str, start: int) -> int:
        """How far it goes in this text."""
        at = start
        while at < len(text) and self.status == "open":
            at = self._in_string(text, at) if self._quote else self._outside(text, at)
        return at

    def _in_string(self, text: str, at: int) -> int:
        if self._is_escaped:
            self._is_escaped = False
            return at + 1
        if self._may_end:
            at = _end(_BLANKS, text, at)
            if at < len(text):
                self._may_end = False
                if text[at] in ",:}])":
                    self._quote, self._last = "", "'"
            return at
        found = _IN_STRING[self._quote].search(text, at)
        if found is None:
            return len(text)
        self._is_escaped = found.group() == "\\"
        if not self._is_escaped:
            if self._quote == "'":
                self._may_end = True
            else:
                self._quote, self._last = "", '"'
                self._ended()
        return found.end()

    def _outside(self, text: str, at: int) -> int:
        found = _OUTSIDE.search(text, at)
        between = text[at : len(text) if found is None else found.start()].rstrip()
        self._last = between[-1:] or self._last
        if found is None:
            return len(text)
        match mark := found.group():
            case "<":
                self.status = "torn"
                return found.start()
            case '"':
                self._quote = mark
            case "'":
                self._quote = mark if self._last in "{[(,:=" else ""
            case "{" | "[" | "(":
                self._depth += 1
            case _:
                self._depth -= 1
                self._ended()
        self._last = mark
        return found.end()

    def _ended(self) -> None:
        if self._depth <= 0:
            self.status = "closed"


_OUTSIDE = re.compile(r"[\"'{}\[\]()<]")
_IN_STRING = {'"': re.compile(r'["\\]'), "'": re.compile(r"['\\]")}


def _end(pattern: re.Pattern[str], text: str, start: int, last: int | None = None) -> int:
    found = pattern.match(text, start) if last is None else pattern.match(text, start, last)
    return start if found is None else found.end()
