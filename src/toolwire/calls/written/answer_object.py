"""Reads an answer that a schema constrains to one object (schemas/output.py): text, or calls, or both.

    {"text": "..."}    {"calls": [{"name": ..., "arguments": {...}}]}    {"text": "...", "calls": [...]}    {"json": ...}

The string "text" is decoded while it grows, and scanned like any other text, because a model may write a block into it. "json" is the output
that the client itself asked for: it is text, exactly as it was written. Calls are reported when their name is known.

Until the first member has begun, everything is held: a few letters. An answer that begins in another way is not constrained, and is
scanned as a whole. If a calls list cannot be read, the rest of the answer is one broken call. Any other text outside of the form is text.

The reader is a generator that stops where it needs more text, so the position of a cut has no effect. Each letter is read once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

from ...wire.exact_json import BadJson, decode, object_of
from ..schemas.output import CALLS, JSON, TEXT
from .formats.base import CallBroken, CallClosed, CallGrew, CallOpened, Piece, PlainText, ToolLookup
from .formats.lexer import Brackets, Steps
from .scanner import CallScanner

Report: TypeAlias = Callable[[str], None]  # called with each piece of a value

_BLANKS = re.compile(r"[ \t\r\n]*")
_QUOTED = re.compile(r'["\\]')
_SCALAR_END = re.compile(r"[,}\]\s]")
_HEX = re.compile(r"[0-9a-fA-F]{4}")
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_FENCE, _THOUGHT, _THOUGHT_END = "```", "<think>", "</think>"
_KEYS = tuple(f'"{key}"' for key in (TEXT, CALLS, JSON))


class AnswerScanner:
    """Scans one text part, like CallScanner. is_obeyed: whether the schema was obeyed; None until that is known."""

    def __init__(self, known: ToolLookup) -> None:
        self.is_obeyed: bool | None = None
        self._known = known
        self._scanner = CallScanner(known)
        self._place: Literal["envelope", "text", "call", "outside", "broken"] = "envelope"
        self._pieces: list[Piece] = []
        self._held: list[str] = []  # read, and not reported yet
        self._text, self._at = "", 0  # not read yet
        self._is_plain = False  # the reader waits inside of the string, and nothing is held
        self._is_fenced = False
        self._is_wrapped = False  # in something that the schema does not allow
        self._is_last = False
        self._call = _Call()
        self._steps = self._read()

    def passes(self, text: str) -> bool:
        """Whether this is plain text, as most of an answer is. If so it is noted here, and must not be fed."""
        if self._place == "outside":
            return self._scanner.passes(text)
        return self._is_plain and _QUOTED.search(text) is None and self._scanner.passes(text)

    def feed(self, text: str) -> list[Piece]:
        if self._place == "outside":
            return self._scanner.feed(text)
        self._text, self._at = self._text[self._at :] + text, 0
        self._advance()
        return self._given()

    def close(self) -> list[Piece]:
        """The end of the text: returns everything that is held."""
        if self._place == "outside":
            return self._scanner.close()
        self._is_last = True
        self._advance()
        if self._place in ("text", "outside"):
            self._pieces += self._scanner.close()
        elif self._place in ("call", "broken"):
            why = "the answer ended in it" if self._place == "call" else "the list of calls is no JSON"
            self._report_broken(why)
        return self._given()

    def _given(self) -> list[Piece]:
        pieces, self._pieces = self._pieces, []
        return pieces

    def _advance(self) -> None:
        try:
            next(self._steps)
        except (StopIteration, _Ended):
            pass
        except _OtherForm:
            self.is_obeyed = False
            if self._place == "envelope":
                self._place = "outside"
                text = "".join(self._held) + self._text[self._at :]
                self._held.clear()
                self._pieces += self._scanner.feed(text)
            else:
                self._place = "broken"
                if self._call.is_over:
                    self._call = _Call()
                self._steps = self._collect()
                self._advance()

    # The grammar. Each reader raises _OtherForm where the text is something else, and _Ended where it ends.

    def _read(self) -> Steps[None]:
        yield from self._thought()
        yield from self._fence()
        yield from self._mark("{")
        closing = ","
        while closing == ",":
            key = yield from self._mark(*_KEYS)
            yield from self._mark(":")
            if key == f'"{TEXT}"':
                yield from self._mark('"')
                self._begin()
                yield from self._string()
            elif key == f'"{CALLS}"':
                yield from self._mark("[")
                self._begin()
                yield from self._calls()
            else:
                yield from self._blanks()
                self._begin()
                yield from self._value(self._say_exactly)
            closing = yield from self._mark(",", "}")
            self._held.clear()
        yield from self._tail()

    def _thought(self) -> Steps[None]:
        """Reasoning before the object, which is text as in any answer. No server that constrains its output lets a model write it."""
        yield from self._blanks()
        if (yield from self._peek()) != _THOUGHT[0]:
            return
        yield from self._mark(_THOUGHT)
        self._is_wrapped, self._place = True, "text"
        self._say("".join(self._held))
        found = -1
        while found < 0:
            found = self._text.find(_THOUGHT_END, self._at)
            end = len(self._text) - len(_THOUGHT_END) + 1 if found < 0 else found + len(_THOUGHT_END)
            self._say(self._take(len(self._text) if self._is_last and found < 0 else max(self._at, end)))
            self._held.clear()
            if found < 0:
                yield from self._more()
        self._end_text()

    def _fence(self) -> Steps[None]:
        """A code fence around the object, which no server that constrains its output allows either."""
        yield from self._blanks()
        if (yield from self._peek()) == _FENCE[0]:
            yield from self._mark(_FENCE)
            while (yield from self._peek()).isalnum():
                self._take(self._at + 1)
            self._is_fenced = self._is_wrapped = True

    def _tail(self) -> Steps[None]:
        if self._is_fenced:
            yield from self._mark(_FENCE)
        yield from self._blanks()
        self._held.clear()
        yield from self._peek()
        raise _OtherForm

    def _begin(self) -> None:
        """The first member is known: what was read is not text."""
        self._held.clear()
        if self.is_obeyed is None:
            self.is_obeyed = not self._is_wrapped

    def _calls(self) -> Steps[None]:
        self._place = "call"
        closing = yield from self._mark("{", "]")
        while closing != "]":
            if closing == ",":
                yield from self._mark("{")
            yield from self._one_call()
            closing = yield from self._mark(",", "]")
            self._held.clear()
        self._place = "envelope"

    def _one_call(self) -> Steps[None]:
        call = self._call = _Call()
        closing = yield from self._first_member()
        while closing == ",":
            yield from self._member(call)
            closing = yield from self._mark(",", "}")
        if not call.is_over:
            self._report_broken("it has no arguments" if call.name else "it names no tool")
        self._held.clear()
        self._call = _Call()

    def _first_member(self) -> Steps[str]:
        """The closing brace of an empty object; else a comma, as if another member came before."""
        yield from self._blanks()
        if (yield from self._peek()) == "}":
            return (yield from self._mark("}"))
        return ","

    def _member(self, call: _Call) -> Steps[None]:
        yield from self._blanks()
        if (yield from self._peek()) != '"':
            raise _OtherForm
        key = _string_of((yield from self._whole_value()))
        yield from self._mark(":")
        yield from self._blanks()
        if key == "arguments" and not call.raw:
            yield from self._arguments(call)
        elif key == "name" and not call.name:
            call.name = _string_of((yield from self._whole_value()))
        else:
            yield from self._whole_value()
        if call.name and call.has_arguments and not call.is_over:
            self._finish(call)

    def _arguments(self, call: _Call) -> Steps[None]:
        """They are reported while they grow if the name came first, as the schema has it."""
        if (yield from self._peek()) == "{" and call.name:
            self._pieces.append(CallOpened(call.name))
            call.is_open = True
        yield from self._value(self._grow)
        call.has_arguments = True

    def _grow(self, text: str) -> None:
        self._call.raw.append(text)
        if self._call.is_open:
            self._pieces.append(CallGrew(text))

    def _finish(self, call: _Call) -> None:
        raw = "".join(call.raw)
        if raw.startswith('"'):
            raw = _string_of(raw)
        if object_of(raw) is None:
            self._report_broken("its arguments are not a JSON object")
        else:
            self._pieces.append(CallClosed(name=call.name, raw=raw))
            self._held.clear()
        call.is_over = True

    def _report_broken(self, why: str) -> None:
        call, text = self._call, "".join(self._held).lstrip()
        if not call.is_over and text:
            self._pieces.append(CallBroken(text=text, why=why, name=call.name, raw="".join(call.raw)))
        self._held.clear()

    def _collect(self) -> Steps[None]:
        """The rest of an answer whose calls cannot be read."""
        while True:
            self._take(len(self._text))
            yield from self._more()

    # Values.

    def _string(self) -> Steps[None]:
        """The text of the answer, from after its opening quote."""
        self._place = "text"
        while True:
            found = _QUOTED.search(self._text, self._at)
            self._say(self._take(len(self._text) if found is None else found.start()))
            self._held.clear()
            if found is None:
                self._is_plain = True
                yield from self._more()
                self._is_plain = False
            elif found.group() == "\\":
                self._say((yield from self._escape()))
            else:
                self._take(found.end())
                break
        self._end_text()

    def _end_text(self) -> None:
        self._pieces += self._scanner.close()
        self._scanner = CallScanner(self._known)
        self._place = "envelope"

    def _escape(self) -> Steps[str]:
        letter = (yield from self._ahead(2))[1]
        if letter != "u":
            self._take(self._at + 2)
            return _ESCAPES.get(letter, f"\\{letter}")
        code = yield from self._code()
        if code is None:
            return self._take(self._at + 2)
        self._take(self._at + 6)
        if 0xD800 <= code < 0xDC00:
            low = yield from self._low_surrogate()
            if low:
                self._take(self._at + 6)
                return chr(0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00))
        return chr(code)

    def _code(self) -> Steps[int | None]:
        r"""The number in the \uXXXX that comes next, nothing read; None if it is none."""
        written = (yield from self._ahead(6))[2:]
        return int(written, 16) if _HEX.fullmatch(written) else None

    def _low_surrogate(self) -> Steps[int]:
        """The second half of a pair, nothing read; 0 if something else follows."""
        if (yield from self._peek()) != "\\" or (yield from self._ahead(2)) != "\\u":
            return 0
        code = yield from self._code()
        return code if code is not None and 0xDC00 <= code < 0xE000 else 0

    def _whole_value(self) -> Steps[str]:
        pieces: list[str] = []
        yield from self._value(pieces.append)
        return "".join(pieces)

    def _value(self, report: Report) -> Steps[None]:
        """Any JSON value as it was written."""
        if (yield from self._peek()) in '"{[':
            yield from self._to_bracket(report)
        else:
            yield from self._to_scalar_end(report)

    def _to_bracket(self, report: Report) -> Steps[None]:
        """A string, an object or a list."""
        brackets = Brackets()
        while True:
            if text := self._take(brackets.read(self._text, self._at)):
                report(text)
            if brackets.status == "closed":
                return
            if brackets.status == "torn":
                raise _OtherForm
            yield from self._more()

    def _to_scalar_end(self, report: Report) -> Steps[None]:
        while True:
            found = _SCALAR_END.search(self._text, self._at)
            if text := self._take(len(self._text) if found is None else found.start()):
                report(text)
            if found is not None:
                return
            yield from self._more()

    def _say(self, text: str) -> None:
        if text:
            self._pieces += self._scanner.feed(text)

    def _say_exactly(self, text: str) -> None:
        self._pieces.append(PlainText(text))
        self._held.clear()

    # Letters.

    def _more(self) -> Steps[None]:
        if self._is_last:
            raise _Ended
        yield

    def _peek(self) -> Steps[str]:
        while self._at >= len(self._text):
            yield from self._more()
        return self._text[self._at]

    def _ahead(self, count: int) -> Steps[str]:
        while len(self._text) - self._at < count:
            yield from self._more()
        return self._text[self._at : self._at + count]

    def _take(self, end: int) -> str:
        text = self._text[self._at : end]
        self._held.append(text)
        self._at = end
        return text

    def _blanks(self) -> Steps[None]:
        while True:
            found = _BLANKS.match(self._text, self._at)
            self._take(self._at if found is None else found.end())
            if self._at < len(self._text):
                return
            yield from self._more()

    def _mark(self, *marks: str) -> Steps[str]:
        """The one of these that comes next, behind blanks."""
        yield from self._blanks()
        while True:
            for mark in marks:
                if self._text.startswith(mark, self._at):
                    self._take(self._at + len(mark))
                    return mark
            left = self._text[self._at :]
            if not _may_become(left, marks):
                raise _OtherForm
            yield from self._more()


class _OtherForm(Exception):
    """The answer does not continue in the form."""


class _Ended(Exception):
    """The text ends here."""


class _Call:
    """A call that is being read. is_open: it was reported before its end; is_over: it was reported."""

    def __init__(self) -> None:
        self.name = ""
        self.raw: list[str] = []
        self.has_arguments = False
        self.is_open = False
        self.is_over = False


def _may_become(text: str, marks: Sequence[str]) -> bool:
    return any(mark.startswith(text) for mark in marks)


def _string_of(written: str) -> str:
    """The value of a JSON string; "" for anything else."""
    try:
        value = decode(written)
    except BadJson:
        return ""
    return value if isinstance(value, str) else ""
