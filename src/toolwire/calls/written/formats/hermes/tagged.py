"""<tool_call>{"name": ..., "arguments": {...}}</tool_call>: the form that the prompt asks for, and the native form of Hermes models.

A block has three kinds of places:

    before   whitespace, a code fence, the tag once more, [ and commas, until an object begins; anything else: not this form
    object   inside the call's JSON; </tool_call> inside a string is part of the string
    after    after the object: stray closers, a fence, another object, or the closing tag, which ends the block

Other text after complete JSON is dropped if the closing tag follows and the call is valid. What cannot be read extends to the next closing
tag. A call is reported when its block ends or its next object begins. Where the prompt asks for this form, what begins with { is never text.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, TypeAlias

from ..grammar import Grammar
from ..json_call import Envelope
from ..lexer import Marks, NoCall, Steps, Tape

Around: TypeAlias = Literal["tag", "text", "line"]

OPENERS = ("<tool_call",)
MOST_UNNAMED = 180  # letters that may be held before a tool is named
TAG_END = Marks(">")
_MOST_OPENINGS = 2  # tags in a row
_MOST_ENDS = 8  # closing brackets of one tag
_BRACKET_END = Marks("]")
_OPENING = re.compile(r"<{1,3}\s*(?:tool|function)[_-]?calls?\s*>", re.IGNORECASE)
_CLOSING = re.compile(r"<{1,3}\s*(?:/\s*[\w-]+|end[_-]\w+|\w+[_-]end)\s*>|\[/\s*[\w-]+\s*\]", re.IGNORECASE)
_OWN_CLOSING = re.compile(r"</\s*tool_call\s*>", re.IGNORECASE)
_MAY_BE_MARK = re.compile(r"(?:<{1,3}\s*/?\s*[\w-]*\s*>?|\[(?:/\s*[\w-]*\s*\]?)?)")
_LONGEST_MARK = 40


class _Pattern(NamedTuple):
    pattern: re.Pattern[str]
    longest: int


LATE_CLOSING = _Pattern(re.compile(r"</\s{0,4}(?:tool|function)[_-]?calls?\s{0,4}>", re.IGNORECASE), _LONGEST_MARK)


def read_tag_end(tape: Tape) -> Steps[None]:
    if not (yield from tape.past(TAG_END)):
        raise NoCall


def read_tagged(tape: Tape) -> Steps[None]:
    if not (yield from tape.past(_BRACKET_END if tape.opener.startswith("[") else TAG_END)):
        raise NoCall
    yield from _Objects(tape, "tag").read()


def read_bare(tape: Tape) -> Steps[None]:
    """Without a tag: the rest of the text."""
    yield from _Objects(tape, "text").read()


def read_line(tape: Tape) -> Steps[None]:
    """Without a tag: the rest of the line."""
    yield from _Objects(tape, "line").read()


class _Objects:
    """The objects of one block. around: what surrounds it."""

    def __init__(self, tape: Tape, around: Around) -> None:
        self._tape = tape
        self._around = around
        self._is_bare = around == "text"
        self._envelope: Envelope | None = None  # read and not reported
        self._is_named = False  # any of them
        self._openings = 0  # tags since the last object
        self._is_shut = False  # the fence around all of it has ended, and nothing may follow
        self._is_apart = False  # a line has ended since the object did
        self._gap = ""  # whitespace since then
        self._lists = 0
        self._wrappings = 0  # objects around a list of calls
        self._repairs: dict[str, None] = {}

    def read(self) -> Steps[None]:
        is_over = False
        while not is_over and (yield from self._before()):
            is_over = yield from self._object()
        self._tape.checkpoint()

    # Up to the next object: each returns whether there is one.

    def _before(self) -> Steps[bool]:
        tape = self._tape
        is_fenced = False
        ends = 0 if tape.opener.lower() not in OPENERS else _MOST_ENDS
        while letter := (yield from tape.peek()):
            self._check_size()
            if letter == "{":
                return True
            if letter == "<":
                if not (yield from self._mark_before()):
                    return False
                continue
            if letter.isspace():
                is_fenced = False
            elif letter == "[":
                self._lists += 1
            elif letter == ">" and ends < _MOST_ENDS:
                ends += 1  # <<<TOOL_CALL>>>
            elif letter in "`~":
                is_fenced = True  # the name of a language may follow it
            elif not (is_fenced and (letter.isalnum() or letter in "_-")) and not (letter == "," and self._lists):
                yield from self._end_without_tag("", is_after=False)
                return False
            tape.take_by(_blanks if letter.isspace() else _one)
        if self._envelope is not None:
            self._report("unterminated")
        elif not tape.has_found:
            raise NoCall
        return False

    def _check_size(self) -> None:
        if self._tape.is_exact and not self._is_named and self._tape.size > MOST_UNNAMED:
            raise NoCall

    def _mark_before(self) -> Steps[bool]:
        mark, kind = yield from self._mark()
        if kind == "opening":
            self._reopen(mark)
            return True
        if kind == "closing" and self._tape.has_found and self._envelope is None:
            return False
        if kind != "cut":
            yield from self._end_without_tag(mark, is_after=False)
        return kind == "cut"

    def _mark(self) -> Steps[tuple[str, Literal["opening", "closing", "other", "cut"]]]:
        """A tag inside the block, as far as it looks like one. cut: the text ends in it."""
        mark = ""
        while (yield from self._tape.peek()):
            mark += self._tape.take_by(_one)
            if not _MAY_BE_MARK.fullmatch(mark) or len(mark) > _LONGEST_MARK:
                return mark, "other"
            if mark[-1] in ">]":
                return mark, "opening" if _OPENING.fullmatch(mark) else "closing" if _CLOSING.fullmatch(
                    mark
                ) else "other"
        return mark, "cut"

    def _reopen(self, mark: str) -> None:
        """The tag again: doubled, or after a call that was not closed."""
        self._openings += 1
        if self._openings > _MOST_OPENINGS or self._is_shut:
            raise NoCall
        if self._envelope is not None and self._around == "tag":
            self._tape.put_back(mark)
            self._report("unterminated")
            self._tape.take_by(lambda text, position: position + len(mark))

    # The object and what follows it: each returns whether the block has ended.

    def _object(self) -> Steps[bool]:
        if self._is_shut:
            raise NoCall
        if self._envelope is not None:
            self._report()
        tape = self._tape
        is_limited = tape.is_exact and not self._is_named
        envelope = Envelope(tape, is_bare=self._is_bare, is_strict=is_limited and not self._wrappings)
        self._envelope = envelope
        self._is_apart, self._openings, self._gap = False, 0, ""
        is_whole = yield from envelope.read(MOST_UNNAMED - tape.size if is_limited else 0)
        self._is_named = self._is_named or envelope.is_named
        match envelope.status:
            case "done":
                return (yield from self._after())
            case "several":
                self._envelope = None
                self._wrappings += 1
                return False
            case "tag" if is_whole:
                self._repairs["syntax.closed"] = None
                return (yield from self._after())
            case "more" if is_whole and self._around != "line":
                self._report("unterminated")
            case _:
                yield from self._unreadable(_FAULTS[envelope.status])
        return True

    def _after(self) -> Steps[bool]:
        tape = self._tape
        while letter := (yield from tape.peek()):
            if self._around == "line" and not (self._lists or self._wrappings):
                if not (yield from tape.ends_line()):
                    raise NoCall
                break
            if letter == "{":
                return False
            if letter in "<[":
                is_over = yield from self._mark_after(letter)
                if is_over is not None:
                    return is_over
            elif letter.isspace():
                self._gap += tape.take_by(_blanks)
                self._is_apart = self._is_apart or "\n" in self._gap
            elif letter in "}]>,;`~":
                self._stray(letter)
            else:
                yield from self._end_without_tag("", is_after=True)
                return True
        if self._gap:
            tape.put_back(self._gap)
        self._report("unterminated" if self._around == "tag" else "")
        return True

    def _stray(self, letter: str) -> None:
        self._tape.take_by(_one)
        if letter == "]" and self._lists:
            self._lists -= 1
        elif letter == "}" and self._wrappings:
            self._wrappings -= 1
        elif letter in "}]>":
            self._repairs["syntax.closers" if letter in "}]" else "junk"] = None
            if letter == ">" and self._is_apart:  # or it begins a quotation, which is the next text
                self._gap += letter
                return
        self._is_shut = self._is_shut or (self._is_bare and letter in "`~")
        self._gap = ""

    def _mark_after(self, first: str) -> Steps[bool | None]:
        """None: what follows it decides."""
        mark, kind = yield from self._mark()
        if kind == "opening":
            self._reopen(mark)
            self._gap = ""
            return False
        if kind == "closing":
            self._gap = ""
            if self._around != "tag":
                return None
            if not _OWN_CLOSING.fullmatch(mark):
                self._repairs["drifted"] = None
            self._report()
            return True
        if kind == "cut":
            self._gap = "" if mark.startswith("</") else self._gap + mark
            return None
        if first == "[":
            self._lists += 1
            self._tape.put_back(mark[-1:])
            return False
        yield from self._end_without_tag(mark, is_after=True)
        return True

    def _end_without_tag(self, mark: str, *, is_after: bool) -> Steps[None]:
        """Other text. On a line of its own it is the text after the call."""
        tape, envelope = self._tape, self._envelope
        must_close = self._around != "tag" or tape.must_close or (tape.is_exact and not self._is_apart)
        if must_close or envelope is None or not (tape.is_instructed or tape.name):
            raise NoCall
        if self._is_apart and is_after:
            tape.put_back(self._gap + mark)
            self._report("unterminated")
            return
        _, closing = yield from tape.upto(LATE_CLOSING)
        found = envelope.arguments()
        is_valid = closing and found and tape.known.fits(envelope.name, found[0])
        envelope.finish([*self._repairs, "junk"], "" if is_valid else "words stand behind its JSON")

    def _unreadable(self, why: str) -> Steps[None]:
        """Reads to the next closing tag, or to the end of the text."""
        tape, envelope = self._tape, self._envelope
        assert envelope is not None
        if tape.is_exact or not (tape.is_instructed or tape.name):
            raise NoCall
        rest, _ = yield from tape.upto(LATE_CLOSING)
        envelope.extend(rest)
        envelope.finish(self._repairs, why)

    def _report(self, repair: str = "") -> None:
        """The call that was read last."""
        envelope, self._envelope = self._envelope, None
        assert envelope is not None
        if not envelope.name and not self._tape.is_instructed:
            raise NoCall
        envelope.finish([*self._repairs, *([repair] if repair else [])])
        self._repairs.clear()


_FAULTS = {
    "stranger": "it names no tool that is known",
    "bad": "its brackets do not match",
    "tag": "it ends in the middle of its JSON",
    "more": "the text ends before its JSON does",
}


def _one(text: str, position: int) -> int:
    return position + 1


def _blanks(text: str, position: int) -> int:
    return len(text) - len(text[position:].lstrip())


def _stray_tag(tape: Tape) -> Steps[None]:
    yield from read_tag_end(tape)
    tape.checkpoint()


TOOL_CALL = Grammar("tagged", OPENERS, read_tagged, "line")
STRAY_TAG = Grammar("stray", (), _stray_tag, "line")  # a closing tag that closes nothing: after a block it is dropped
