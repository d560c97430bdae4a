"""Calls written as Python: [name(key="value", other=[1, 2])], all of the message, or between tokens of Llama 4 and LFM2.

Nothing is evaluated. The reader takes literals and keyword arguments, and the result is the JSON that they stand for.
"""

from __future__ import annotations

import re
from typing import NoReturn

from ....types import Json, JsonObject
from ....wire.exact_json import decode, encode
from .arguments import CUT, named
from .grammar import Grammar
from .lexer import Marks, NoCall, Steps, Tape, UnreadableCall

_DEEPEST = 60
_ENDS = {"<|python_start|>": Marks("<|python_end|>"), "<|tool_call_start|>": Marks("<|tool_call_end|>")}
_LIST, _CALL, _EQUALS, _PLUS = Marks("["), Marks("("), Marks("="), Marks("+")
_LIST_END, _CALL_END, _NEXT_CALL, _NEXT_KEY = Marks("]"), Marks(")"), Marks(",", "]"), Marks(",", ")")
_QUOTES = {quote: (Marks(quote), Marks("\\\\", f"\\{quote}", quote)) for quote in "\"'"}
_NAME = re.compile(r"\s*([\w.-]+)\s*\(\s*")
_KEY = re.compile(r"\s*([^\W\d]\w*)\s*=\s*")
_SPACE = re.compile(r"\s*")
_STRING = re.compile(r"\"[^\"\\]*(?:\\.[^\"\\]*)*\"|'[^'\\]*(?:\\.[^'\\]*)*'", re.DOTALL)
_NUMBER = re.compile(r"([+-]?)(\d*)(\.?)(\d*)((?:[eE][+-]?\d+)?)(?!\w)")
_WORD = re.compile(r"[A-Za-z]+")
_WORDS = {"True": True, "true": True, "False": False, "false": False, "None": None, "null": None}
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U000[0-9a-fA-F]{5}|U0010[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v", "0": "\0", "\n": ""}


class NotPython(ValueError):
    """The text is no list of calls with literals in them."""


def _between_tokens(tape: Tape) -> Steps[None]:
    if not (yield from tape.past(_LIST)):
        raise NoCall
    yield from tape.blanks()
    name = named((yield from tape.word()), tape.known)
    if not (yield from tape.past(_CALL)):
        raise NoCall
    text, is_whole = yield from tape.balanced(depth=2)
    try:
        calls = LiteralReader(f"{name}({text}").calls("]")
    except NotPython as error:
        raise UnreadableCall(str(error) if is_whole else CUT, name, text) from None
    for given, _ in calls:
        named(given, tape.known)
    repairs = [] if (yield from tape.past(_ENDS[tape.opener])) else ["unterminated"]
    for given, arguments in calls:
        tape.whole(given, encode(arguments).decode(), *repairs)


def _all_of_it(tape: Tape) -> Steps[None]:
    """The whole message: nothing may follow it, and what is no literal shows as soon as it comes, so that prose is not held."""
    yield from _call(tape)
    while (mark := (yield from tape.past(_NEXT_CALL))) == ",":
        if mark := (yield from tape.past(_LIST_END)):
            break
        yield from _call(tape)
    if not mark:
        raise NoCall
    try:
        calls = LiteralReader(tape.span.removeprefix(tape.opener)).calls("]")
    except NotPython:
        raise NoCall from None
    yield from tape.blanks()
    if (yield from tape.ahead(1)):
        raise NoCall
    for given, arguments in calls:
        tape.whole(given, encode(arguments).decode())


def _call(tape: Tape) -> Steps[None]:
    """As far as its form goes: Reader knows what it means."""
    if not (yield from tape.ahead(1)):
        raise NoCall
    yield from tape.blanks()
    named((yield from tape.word()), tape.known)
    mark = "," if (yield from tape.past(_CALL)) else ""
    while mark == "," and not (yield from tape.past(_CALL_END)):
        if not (yield from tape.ahead(1)):
            raise NoCall
        yield from tape.blanks()
        key = yield from tape.word()
        if not key.isidentifier() or not (yield from tape.past(_EQUALS)):
            raise NoCall
        yield from _literal(tape)
        mark = yield from tape.past(_NEXT_KEY)
    if not mark:
        raise NoCall


def _literal(tape: Tape) -> Steps[None]:
    first = yield from tape.ahead(1)
    if not first:
        raise NoCall
    if first in _QUOTES:
        begin, end = _QUOTES[first]
        yield from tape.past(begin)
        while (yield from tape.upto(end))[1] not in (first, ""):
            pass
    elif first in "{[(":
        yield from tape.blanks()
        yield from tape.balanced()
    else:
        yield from _scalar(tape)


def _scalar(tape: Tape) -> Steps[None]:
    sign = yield from tape.past(_PLUS)
    yield from tape.blanks()
    word = sign + (yield from tape.word())
    if word[-1:] in ("e", "E") and word[:-1] and (yield from tape.past(_PLUS)):
        word += "+" + (yield from tape.word())
    if word not in _WORDS and not (_NUMBER.fullmatch(word) and any(map(str.isdigit, word))):
        raise NoCall


def read_call(tape: Tape, name: str) -> Steps[None]:
    """One call whose bracket is open."""
    text, is_whole = yield from tape.balanced(depth=1)
    try:
        [(_, arguments)] = LiteralReader(f"{name}({text}").calls("")
    except NotPython as error:
        raise UnreadableCall(str(error) if is_whole else CUT, name, text) from None
    tape.whole(name, encode(arguments).decode())


class LiteralReader:
    """Reads calls from a text that is all there; raises NotPython."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def calls(self, end: str) -> list[tuple[str, JsonObject]]:
        found = [self._call()]
        while self._next(",") and not self._is_next(end):
            found.append(self._call())
        if end and not self._next(end):
            self._fail()
        self._skip()
        if self._at < len(self._text):
            self._fail()
        return found

    def _call(self) -> tuple[str, JsonObject]:
        name = self._match(_NAME)[1]
        arguments: JsonObject = {}
        while not self._next(")"):
            key = self._match(_KEY)[1]
            if key in arguments:
                raise NotPython("an argument is there twice")
            arguments[key] = self._value(0)
            if not self._next(",") and not self._is_next(")"):
                self._fail()
        return name, arguments

    def _value(self, depth: int) -> Json:
        if depth > _DEEPEST:
            raise NotPython("the arguments nest too deep")
        self._skip()
        match self._text[self._at : self._at + 1]:
            case "{":
                return self._dict(depth + 1)
            case "[":
                return self._items("]", depth + 1)
            case "(":
                return self._items(")", depth + 1)
            case '"' | "'":
                return self._string()
            case mark if mark.isalpha():
                word = self._match(_WORD)[0]
                return _WORDS[word] if word in _WORDS else self._fail()
            case _:
                return self._number()

    def _dict(self, depth: int) -> JsonObject:
        self._at += 1
        found: JsonObject = {}
        while not self._next("}"):
            self._skip()
            key = self._string()
            if not self._next(":"):
                self._fail()
            found[key] = self._value(depth)
            if not self._next(",") and not self._is_next("}"):
                self._fail()
        return found

    def _items(self, end: str, depth: int) -> list[Json]:
        self._at += 1
        found: list[Json] = []
        while not self._next(end):
            found.append(self._value(depth))
            if not self._next(",") and not self._is_next(end):
                self._fail()
        return found

    def _string(self) -> str:
        return unescaped(self._match(_STRING)[0][1:-1])

    def _number(self) -> Json:
        sign, whole, point, fraction, exponent = self._match(_NUMBER).groups()
        if not whole and not fraction:
            self._fail()
        try:
            return decode(f"{sign.strip('+')}{whole or '0'}{f'.{fraction or 0}' if point else ''}{exponent}")
        except ValueError:
            self._fail()

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str]:
        found = pattern.match(self._text, self._at)
        if found is None:
            self._fail()
        self._at = found.end()
        return found

    def _skip(self) -> None:
        self._match(_SPACE)

    def _is_next(self, mark: str) -> bool:
        self._skip()
        return bool(mark) and self._text.startswith(mark, self._at)

    def _next(self, mark: str) -> bool:
        found = self._is_next(mark)
        self._at += len(mark) if found else 0
        return found

    def _fail(self) -> NoReturn:
        raise NotPython("the arguments are no Python literals")


def unescaped(text: str) -> str:
    """The value of a Python string between its quotes; a surrogate pair is one letter, as in JSON."""
    if "\\" not in text:
        return text
    found = _ESCAPE.sub(_meant, text)
    try:
        return found.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        return found


def _meant(escape: re.Match[str]) -> str:
    mark = escape[1]
    if len(mark) > 1:
        return chr(int(mark[1:], 16))
    return _ESCAPES.get(mark, mark if mark in "\\'\"" else f"\\{mark}")


GRAMMARS = (
    Grammar("pythonic", ("[",), _all_of_it, "start"),
    Grammar("pythonic", tuple(_ENDS), _between_tokens),
)
