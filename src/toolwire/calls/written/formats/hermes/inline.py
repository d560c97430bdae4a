"""Blocks that may be part of a sentence, or have a form that no prompt asked for: complete and valid calls, or text."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from msgspec.structs import replace

from .....types import Tool
from ..base import Block, BlockRead, CallClosed, CallGrew, CallOpened, Piece, ToolLookup

_At: TypeAlias = Literal["lead", "fence", "tag", "key", "colon", "value", "scalar", "next", "over"]

MOST_OPENINGS = 2  # tags in a row
MOST_UNNAMED = 180  # letters that may be held before a tool is named
_LEAD = "{[]>`~"
_BLANKS = re.compile(r"\s+")
_BEHIND_BLANKS: dict[str, _At] = {"fence": "lead", "scalar": "next"}
_OPENING = re.compile(r"<{1,3}\s*(?:tool|function)[_-]?calls?\s*>", re.IGNORECASE)
_SCALAR = re.compile(r"[\w.+-]+")
_RUNS = {'"': re.compile(r'[^"\\]+'), "'": re.compile(r"[^'\\]+")}


class ExactTools:
    """The same tools, for a block that must be right: what cannot be read as a call of a known tool is text at once, and never Broken.

    needs_closing: so is what has no end of its own, unless the text ends there.
    """

    is_instructed = False

    def __init__(self, known: ToolLookup, *, needs_closing: bool = False) -> None:
        self._known = known
        self.needs_closing = needs_closing

    def tool(self, name: str) -> Tool | None:
        return self._known.tool(name)

    def fits(self, name: str, raw: str) -> bool:
        return self._known.fits(name, raw)


class ValidatedBlock:
    """Returns nothing before the block is done, and then only valid calls. repair: a label that all of them get. prefix: the opener,
    where it is part of what the block reads."""

    def __init__(self, block: Block, known: ToolLookup, repair: str = "", prefix: str = "") -> None:
        self._block = block
        self._known = known
        self._repairs = (repair,) if repair else ()
        self._prefix = prefix
        self._calls: list[CallClosed] = []
        self._shape = _Shape(known)

    def feed(self, text: str) -> BlockRead:
        text, self._prefix = self._prefix + text, ""
        end = self._shape.read(text)
        if end is None:
            return self._weigh(self._block.feed(text))
        read = self._weigh(self._block.feed(text[:end]))
        return BlockRead(status="none") if read.status == "more" else replace(read, rest=read.rest + text[end:])

    def close(self) -> BlockRead:
        if self._prefix and (read := self.feed("")).status != "more":
            return read
        return self._weigh(self._block.close())

    def _weigh(self, read: BlockRead) -> BlockRead:
        for piece in read.pieces:
            if type(piece) is CallClosed:
                self._calls.append(piece)
            elif type(piece) not in (CallOpened, CallGrew):
                return BlockRead(status="none", rest=read.rest)
        if read.status == "none":
            return BlockRead(status="none", rest=read.rest)
        if read.status == "more":
            return BlockRead(status="more")
        if not self._calls or not all(self._known.fits(call.name, call.raw) for call in self._calls):
            return BlockRead(status="none", rest=read.rest)
        return BlockRead(status="done", pieces=[self._marked(call) for call in self._calls], rest=read.rest)

    def _marked(self, call: CallClosed) -> Piece:
        return replace(call, repairs=tuple(dict.fromkeys((*call.repairs, *self._repairs))))


class _Shape:
    """Whether an object behind an opener may still become a call, so that prose with a brace in it is not held: its own members must look
    like JSON, and some text in it must soon be the name of a tool. Anything but an object is left to the block that reads it."""

    def __init__(self, known: ToolLookup) -> None:
        self._known = known
        self._at: _At = "lead"
        self._depth = 0
        self._quote = ""
        self._is_escaped = False
        self._text: list[str] = []  # between quotes, until there is a name
        self._is_named = False
        self._openings = 0
        self._read = 0

    def read(self, text: str) -> int | None:
        """The position of the first letter that no call has there; None where all may be well."""
        last = len(text) if self._is_named else min(len(text), MOST_UNNAMED - self._read)
        position = 0
        while position < last and self._at != "over":
            end = self._in_text(text, position, last) if self._quote else self._outside(text, position, last)
            if end == position:
                return position
            position = end
            if self._is_named:
                last = len(text)
        self._read += position
        is_late = not self._is_named and self._at != "over" and position < len(text)
        return position if is_late else None

    def _in_text(self, text: str, position: int, last: int) -> int:
        if self._is_escaped:
            self._is_escaped = False
        elif found := _RUNS[self._quote].match(text, position, last):
            if not self._is_named:
                self._text.append(found.group())
            return found.end()
        elif text[position] == "\\":
            self._is_escaped = True
        else:
            self._quote = ""
            self._is_named = self._is_named or self._known.tool("".join(self._text)) is not None
            self._text.clear()
        return position + 1

    def _outside(self, text: str, position: int, last: int) -> int:
        """The end of what was read; the same position where nothing may be."""
        letter = text[position]
        if self._at == "tag":
            return self._in_tag(text, position, last)
        if found := _BLANKS.match(text, position, last):
            self._at = _BEHIND_BLANKS.get(self._at, self._at)
            return found.end()
        if self._at in ("lead", "fence"):
            return self._before(letter, position)
        if letter == "<":
            self._at = "over"
        elif letter in "{[":
            if self._depth == 1 and self._at != "value":
                return position
            self._depth += 1
        elif letter in "}]":
            self._close()
        elif letter in "\"'":
            return self._begin_text(letter, position)
        elif self._depth == 1:
            return self._between(text, position, last)
        return position + 1

    def _before(self, letter: str, position: int) -> int:
        if letter == "{":
            self._depth, self._at = 1, "key"
        elif letter == "<":
            self._at = "tag"
            self._text.append(letter)
        elif letter in "`~":
            self._at = "fence"
        elif letter not in _LEAD and self._at == "lead":
            self._at = "over"
        return position + 1

    def _in_tag(self, text: str, position: int, last: int) -> int:
        """The opener once more, or what is no concern of ours."""
        end = text.find(">", position, last) + 1
        self._text.append(text[position : end or last])
        if end:
            self._openings += 1
            is_again = self._openings <= MOST_OPENINGS and _OPENING.fullmatch("".join(self._text))
            self._at = "lead" if is_again else "over"
            self._text.clear()
        return end or last

    def _begin_text(self, quote: str, position: int) -> int:
        if self._depth == 1:
            if self._at == "colon":
                return position
            self._at = "next" if self._at in ("value", "scalar") else "colon"  # a comma may be missing
        self._quote = quote
        return position + 1

    def _close(self) -> None:
        self._depth -= 1
        self._at = "next" if self._depth else "over"

    def _between(self, text: str, position: int, last: int) -> int:
        """Members of the object itself."""
        letter = text[position]
        if self._at in ("scalar", "next") and letter == ",":
            self._at = "key"
        elif self._at == "colon" and letter == ":":
            self._at = "value"
        elif self._at in ("value", "scalar") and (found := _SCALAR.match(text, position, last)):
            self._at = "scalar"
            return found.end()
        else:
            return position
        return position + 1
