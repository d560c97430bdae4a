"""<tool_call>{"name": ..., "arguments": {...}}</tool_call>: the form that the prompt asks for, and the native form of Hermes models.

A block passes these states, letter by letter:

    tag      after the opener, up to the end of the tag
    before   whitespace, a code fence, the tag once more, [ and commas, until an object begins; anything else: not this form
    object   inside the call's JSON; </tool_call> inside a text is part of the text
    after    after the object: stray closers, a fence, another object, or the closing tag, which ends the block
    junk     other text after complete JSON; if the closing tag follows, and the call is valid, the text is dropped
    broken   unreadable: everything up to the next closing tag belongs to it

A call is returned when its block ends or its next object begins. Where the prompt asks for this form, what begins with { is never text.
BehindTag delegates to the forms of other models after the same tag; StrayTag reads closing tags that close nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, TypeAlias

from msgspec import Struct

from ..base import Block, BlockRead, Piece, ToolLookup
from ..json_call import Envelope
from .inline import MOST_OPENINGS, ExactTools

State: TypeAlias = Literal["tag", "before", "object", "after", "junk", "broken"]
Place: TypeAlias = Literal["start", "line", "anywhere"]
Step: TypeAlias = Callable[[str, int], int]

OPENERS = ("<tool_call",)
_BLANKS = re.compile(r"\s+")
_MOST_IN_TAG = 8
_OPENING = re.compile(r"<{1,3}\s*(?:tool|function)[_-]?calls?\s*>", re.IGNORECASE)
_CLOSING = re.compile(r"<{1,3}\s*(?:/\s*[\w-]+|end[_-]\w+|\w+[_-]end)\s*>|\[/\s*[\w-]+\s*\]", re.IGNORECASE)
_OWN_CLOSING = re.compile(r"</\s*tool_call\s*>", re.IGNORECASE)
_MAY_BE_MARK = re.compile(r"(?:<{1,3}\s*/?\s*[\w-]*\s*>?|\[(?:/\s*[\w-]*\s*\]?)?)")
_LONGEST_MARK = 40
_LATE_CLOSING = re.compile(r"</\s{0,4}(?:tool|function)[_-]?calls?\s{0,4}>", re.IGNORECASE)


class TaggedBlock:
    """is_bare: no tag surrounds it, and it extends to the end of the text."""

    def __init__(self, opener: str, known: ToolLookup, *, is_bare: bool = False) -> None:
        self._known = known
        self._is_exact = isinstance(known, ExactTools)
        self._needs_closing = isinstance(known, ExactTools) and known.needs_closing
        self._is_bare = is_bare
        self._state: State = "before" if is_bare else "tag"
        self._status: Literal["more", "done", "none"] = "more"
        self._pieces: list[Piece] = []
        self._span = [opener]  # since the last call that was given
        self._taken = 0  # of the text that is being read, so much is in _span or was given
        self._rest = ""
        self._envelope: Envelope | None = None
        self._tag_end = "]" if opener.startswith("[") else ">"
        self._may_repeat = opener.lower() not in OPENERS
        self._blanks = 0
        self._openings = 0  # tags since the last object
        self._mark = ""
        self._is_fenced = False
        self._is_shut = False  # the fence around all of it has ended, and nothing may follow
        self._is_apart = False  # a line has ended since the object did
        self._gap: list[str] = []
        self._lists = 0
        self._wrappings = 0  # objects around a list of calls
        self._repairs: dict[str, None] = {}
        self._why = ""
        self._lost_at = 0
        self._tail = ""
        self._has_given = False
        self._steps: dict[State, Step] = {
            "tag": self._in_tag,
            "before": self._before,
            "object": self._in_object,
            "after": self._after,
            "junk": self._up_to_closing,
            "broken": self._up_to_closing,
        }

    def feed(self, text: str) -> BlockRead:
        self._taken = position = 0
        while position < len(text) and self._status == "more":
            position = self._steps[self._state](text, position)
        if self._is_none():
            self._status = "done"
            return self._read("".join(self._span) + text[self._taken :])
        if self._status == "more":
            self._span.append(text[self._taken :])
        return self._read(self._rest + text[position:])

    def close(self) -> BlockRead:
        """The text is over. What is whole is a call; what is not can only be Broken, or text."""
        self._taken = 0
        self._status = "done"
        self._close_state()
        if self._is_none():
            self._status, self._rest = "done", "".join(self._span)
        return self._read(self._rest)

    def _is_none(self) -> bool:
        """It came to nothing, but what was given before cannot be taken back."""
        return self._status == "none" and self._has_given

    def _close_state(self) -> None:
        if self._state in ("tag", "before"):
            self._close_before()
        elif self._state == "object":
            self._close_in_object()
        elif self._state == "after":
            self._rest = "" if self._mark.startswith("</") else "".join(self._gap) + self._mark
            self._give("", 0, "" if self._is_bare else "unterminated")
        else:
            self._end_badly("", 0)

    def _read(self, rest: str) -> BlockRead:
        pieces, self._pieces, self._rest = self._pieces, [], ""
        return BlockRead(status=self._status, pieces=pieces, rest=rest)

    # The states.

    def _in_tag(self, text: str, position: int) -> int:
        letter = text[position]
        if letter == self._tag_end:
            self._state = "before"
        elif not letter.isspace() or self._blanks >= _MOST_IN_TAG:
            self._status = "none"
        self._blanks += 1
        return position + 1

    def _before(self, text: str, position: int) -> int:
        letter = text[position]
        if self._mark or letter == "<":
            return self._in_mark(text, position)
        if letter == "{":
            return self._begin(text, position)
        if found := _BLANKS.match(text, position):
            self._is_fenced = False
            return found.end()
        if letter in "`~":
            self._is_fenced = True  # the name of a language may follow it
        elif letter == "[":
            self._lists += 1
        elif letter == ">" and self._may_repeat and self._blanks <= _MOST_IN_TAG:
            self._blanks += 1  # <<<TOOL_CALL>>>
        elif not (self._is_fenced and (letter.isalnum() or letter in "_-")) and not (letter == "," and self._lists):
            return self._end_without_tag(text, position)
        return position + 1

    def _begin(self, text: str, position: int) -> int:
        if self._is_shut:
            self._status = "none"
            return position
        if self._envelope is not None:
            self._give(text, position)
        self._envelope = Envelope(self._known, is_bare=self._is_bare)
        self._state = "object"
        self._is_apart = self._is_fenced = False
        self._openings = 0
        self._gap.clear()
        return position

    def _in_object(self, text: str, position: int) -> int:
        envelope = self._open_one()
        position = envelope.feed(text, position, self._pieces)
        if envelope.status == "done":
            self._state = "after"
        elif envelope.status == "several":
            self._envelope = None
            self._wrappings += 1
            self._state = "before"
        elif envelope.status == "stranger":
            self._lose("it names no tool that is known", text, position)
        elif envelope.status == "bad":
            self._lose("its brackets do not match", text, position)
        elif envelope.status == "tag":
            if envelope.end(self._pieces):
                self._repairs["syntax.closed"] = None
                self._state = "after"
            else:
                self._lose("it ends in the middle of its JSON", text, position)
        return position

    def _after(self, text: str, position: int) -> int:
        letter = text[position]
        if self._mark or letter in "<[":
            return self._in_mark(text, position)
        if letter == "{":
            return self._begin(text, position)
        if found := _BLANKS.match(text, position):
            self._gap.append(found.group())
            self._is_apart = self._is_apart or "\n" in found.group()
            return found.end()
        if letter in "}]>":
            self._stray(letter)
            if letter == ">" and self._is_apart:  # or it begins a quotation, which is the next text
                self._gap.append(letter)
                return position + 1
        elif letter not in ",;`~":
            return self._end_without_tag(text, position)
        self._is_shut = self._is_shut or (self._is_bare and letter in "`~")
        self._gap.clear()
        return position + 1

    def _stray(self, letter: str) -> None:
        if letter == "]" and self._lists:
            self._lists -= 1
        elif letter == "}" and self._wrappings:
            self._wrappings -= 1
        else:
            self._repairs["syntax.closers" if letter in "}]" else "junk"] = None

    def _in_mark(self, text: str, position: int) -> int:
        """A tag inside the block: only what it is called decides, so it is gathered first."""
        self._mark += text[position]
        if _MAY_BE_MARK.fullmatch(self._mark) and len(self._mark) <= _LONGEST_MARK:
            if self._mark[-1] in ">]":
                return self._marked(text, position + 1)
            return position + 1
        if self._mark[0] == "[":
            self._mark = ""
            self._lists += 1
            self._state = "before"
            return position
        return self._end_without_tag(text, position + 1)

    def _marked(self, text: str, end: int) -> int:
        mark, self._mark = self._mark, ""
        is_closing = _CLOSING.fullmatch(mark) is not None
        if _OPENING.fullmatch(mark):
            self._reopen(mark, text, end)
        elif is_closing and self._state == "after":
            self._close_tag(mark, text, end)
        elif is_closing and self._has_given and self._envelope is None:
            self._status = "done"
        else:
            self._mark = mark
            return self._end_without_tag(text, end)
        self._gap.clear()
        return end

    def _reopen(self, mark: str, text: str, end: int) -> None:
        """The tag again: doubled, or behind a call that was not closed."""
        self._openings += 1
        if self._openings > MOST_OPENINGS or self._is_shut:
            self._status = "none"
            return
        if self._envelope is not None and not self._is_bare:
            self._give(text, end, "unterminated")
            if self._status == "more":
                self._span.append(mark)
        self._state = "before"

    def _close_tag(self, mark: str, text: str, end: int) -> None:
        if self._is_bare:
            return
        if not _OWN_CLOSING.fullmatch(mark):
            self._repairs["drifted"] = None
        self._status = "done"
        self._give(text, end)

    def _end_without_tag(self, text: str, position: int) -> int:
        """Other text. On a line of its own it is the text after the call."""
        must_close = self._is_bare or self._needs_closing or (self._is_exact and not self._is_apart)
        if must_close or not self._is_meant():
            self._status = "none"
        elif self._is_apart and self._state == "after":
            self._rest, self._mark = "".join(self._gap) + self._mark, ""
            self._status = "done"
            self._give(text, position, "unterminated")
        else:
            self._mark = ""
            self._state = "junk"
        return position

    def _is_meant(self) -> bool:
        """Whether an object was read that can only be a call."""
        return self._envelope is not None and (self._known.is_instructed or self._envelope.is_opened)

    def _up_to_closing(self, text: str, position: int) -> int:
        """Reads to the next closing tag; only letters that may begin one are visited twice."""
        seen = self._tail + text[position:]
        found = _LATE_CLOSING.search(seen)
        if found is None:
            self._tail = seen[-_LONGEST_MARK:]
            return len(text)
        end = len(text) - len(seen) + found.end()
        self._end_badly(text, end)
        return end

    # How calls and unreadable text are returned.

    def _open_one(self) -> Envelope:
        assert self._envelope is not None
        return self._envelope

    def _give(self, text: str, end: int, repair: str = "") -> None:
        """The call that ends before this place; the next span begins here."""
        self._span.append(text[self._taken : end])
        self._taken = end
        if repair:
            self._repairs[repair] = None
        envelope, self._envelope = self._open_one(), None
        if not envelope.name and not self._known.is_instructed:
            self._status = "none"
            return
        envelope.settle(self._pieces, "".join(self._span), tuple(self._repairs))
        self._has_given = True
        self._repairs.clear()
        self._span.clear()

    def _lose(self, why: str, text: str, position: int) -> None:
        envelope = self._open_one()
        self._why = why
        self._state = "broken"
        self._lost_at = sum(map(len, self._span)) + position - self._taken
        if self._is_exact or not (self._known.is_instructed or envelope.is_opened):
            self._status = "none"

    def _close_before(self) -> None:
        if self._envelope is not None:
            self._give("", 0, "unterminated")
        elif not self._has_given:
            self._status = "none"

    def _close_in_object(self) -> None:
        if self._open_one().end(self._pieces):
            self._give("", 0, "unterminated")
            return
        self._lose("the text ends before its JSON does", "", 0)
        if self._status != "none":
            self._end_badly("", 0)

    def _end_badly(self, text: str, end: int) -> None:
        """At the closing tag behind what could not be read, or at the end of the text."""
        self._span.append(text[self._taken : end])
        self._taken = end
        span = "".join(self._span)
        envelope, self._envelope = self._open_one(), None
        if self._state == "junk":
            found = envelope.arguments()
            if not (end and found and self._known.fits(envelope.name, found[0])):
                self._why = "words stand behind its JSON"
            self._repairs["junk"] = None
        else:
            envelope.write_on(_LATE_CLOSING.sub("", span[self._lost_at :]))
        envelope.settle(self._pieces, span, tuple(self._repairs), self._why)
        self._has_given = True
        self._status = "done"


class ToolCallTag(Struct):
    name: str = "tagged"
    openers: tuple[str, ...] = OPENERS
    place: Place = "line"

    def begin(self, opener: str, known: ToolLookup) -> Block:
        return TaggedBlock(opener, known)


TOOL_CALL = ToolCallTag()


_LONGEST_TAG = 40


class BehindTag(Struct):
    """What other models write behind the same tag."""

    name: str
    inside: Callable[[str, ToolLookup], Block]
    openers: tuple[str, ...] = OPENERS
    place: Place = "line"

    def begin(self, opener: str, known: ToolLookup) -> Block:
        return _Inside(opener, known, self.inside)


class _Inside:
    """Reads the tag to its end, and then hands over."""

    def __init__(self, opener: str, known: ToolLookup, inside: Callable[[str, ToolLookup], Block]) -> None:
        self._tag = opener
        self._known = known
        self._inside = inside
        self._block: Block | None = None

    def feed(self, text: str) -> BlockRead:
        if self._block is not None:
            return self._block.feed(text)
        for position, letter in enumerate(text, 1):
            self._tag += letter
            if letter == ">":
                self._block = self._inside(self._tag, self._known)
                return self._block.feed(text[position:])
            if not letter.isspace() or len(self._tag) > _LONGEST_TAG:
                return BlockRead(status="none")
        return BlockRead(status="more")

    def close(self) -> BlockRead:
        return BlockRead(status="none") if self._block is None else self._block.close()


class StrayTag(Struct):
    """A closing tag that closes nothing: after a block it is dropped."""

    name: str = "stray"
    openers: tuple[str, ...] = ()
    place: Place = "line"

    def begin(self, opener: str, known: ToolLookup) -> Block:
        return _Inside(opener, known, _nothing)


class _Nothing:
    def feed(self, text: str) -> BlockRead:
        return BlockRead(status="done", rest=text)

    def close(self) -> BlockRead:
        return BlockRead(status="done")


def _nothing(opener: str, known: ToolLookup) -> Block:
    return _Nothing()
