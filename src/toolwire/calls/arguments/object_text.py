"""The object a model meant, from a text that is not one: fenced, labelled, doubled, quoted, with its braces lost.

Every step keeps all that was written or gives up. Words around the object may be dropped only if they cannot be part of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html import unescape
from typing import Never

from msgspec import Struct

from ...types import Json, JsonObject
from ...wire.exact_json import BadJson, decode
from ..schemas.keywords import Path
from .loose_json import Loose, NotLoose
from .property_names import same_name
from .quotes import ENDS, Steps
from .wrappers import is_junk_behind, is_sentence_before, without_marks

LARGEST = 1 << 20  # characters; reading loosely is Python's work, not C's
_QUOTED = re.compile(r"([\"'`“‘])\s*(?:[{\[]|\\\")")
_ESCAPED = re.compile(r"[\[{](?:\s|\\[nrt])*\\\"")
_ENTITY = re.compile(r"[\[{]{1,2}\s*&(?:quot|apos|#34|#39);")
_MEMBER = re.compile(r"\w+\s*[:=]\s*(?:[\"'\[{\d-]|(?:true|false|null|None)\b)", re.IGNORECASE)
_CALL = re.compile(r"([\w.-]{1,100})\(\s*(?=\w+\s*=|\)\s*\Z)")
_EMPTY = ("", "null", "None")
_RISKY = frozenset({"syntax.inner_quotes", "syntax.no_comma", "syntax.bare", "syntax.bracket"})
_ROUNDS = 4
_NOTHING: frozenset[str] = frozenset()

MayClose = Callable[[JsonObject, list[Path]], bool]
IsSure = Callable[[Path], bool]


class Known(Struct, frozen=True):
    """What is known of the tool. may_close: nothing can be missing where these containers of an object were not closed.

    is_sure: the schema says that a list or an object must be at this place. names: of the properties that it has at any
    depth. takes_empty: {} is a call of its own.
    """

    may_close: MayClose
    is_sure: IsSure = lambda _: False
    tool: str = ""
    names: frozenset[str] = _NOTHING
    takes_empty: bool = True


class Meant(Struct, frozen=True):
    arguments: JsonObject
    repairs: tuple[str, ...]


def meant(raw: str, known: Known) -> Meant | None:
    if len(raw) > LARGEST:
        return None
    return _Reader(known).read(raw, _ROUNDS)


def encoded(text: str, steps: Steps | None = None, rounds: int = 2) -> Json:
    """The list or object that a text holds as JSON, complete; raises NotLoose. steps: what many texts share."""
    if len(text) > LARGEST:
        raise NotLoose("too long")
    stripped = without_marks(text).text.strip() if text.lstrip().startswith(("```", "~~~")) else text.strip()
    if not stripped.startswith(("{", "[", "(", '"')):
        raise NotLoose("no list or object")
    value = _strict(stripped)
    if isinstance(value, str) and rounds:
        return encoded(value, steps, rounds - 1)
    if value is not None:
        return value
    loose = Loose(stripped, steps=steps)
    value = loose.value()
    if loose.unclosed or stripped[loose.position :].strip() or not isinstance(value, dict | list):
        raise NotLoose("it does not end where it should")
    if not _RISKY.isdisjoint(loose.repairs):
        raise NotLoose("only who knows the schema could read it")
    return value


class _Reader:
    def __init__(self, known: Known) -> None:
        self._known = known
        self._repairs: list[str] = []

    def read(self, raw: str, rounds: int) -> Meant | None:
        bare = without_marks(raw)
        self._repairs += bare.repairs
        if bare.text.strip() in _EMPTY:
            return self._done({}, "empty") if self._known.may_close({}, [()]) else None
        try:
            value = self._value(bare.text, bare.is_ended)
        except NotLoose:
            return None
        if isinstance(value, str) and rounds:
            self._repairs.append("quoted")
            return self.read(value, rounds - 1)
        if isinstance(value, list) and value and isinstance(value[0], dict) and value == value[:1] * len(value):
            return self._done(value[0], "unlisted", *(["twice"] if len(value) > 1 else []))
        return self._done(value) if isinstance(value, dict) else None

    def _done(self, arguments: JsonObject, *more: str) -> Meant:
        return Meant(arguments, tuple(dict.fromkeys((*self._repairs, *more))))

    def _value(self, text: str, is_ended: bool) -> Json:
        if (whole := _strict(text)) is not None:
            return whole
        if _QUOTED.match(text):
            return self._quoted(text)
        if _ESCAPED.match(text):
            return _strict(f'"{text.strip()}"') or self._fail("no text's inside")
        if _ENTITY.match(text):
            return unescape(text)
        if call := self._call(text):
            return {} if text[call:].strip() == ")" else self._without_brace(text[call:], is_ended)
        if text.startswith(tuple(ENDS)) or _MEMBER.match(text):
            return self._without_brace(text, is_ended)
        start = self._start(text)
        loose = Loose(text, start, self._known.names)
        value = loose.value()
        self._accept(loose, value, is_ended)
        self._check_rest(text[start:], loose.position - start, value)
        return value

    def _start(self, text: str) -> int:
        found = re.search(r"[{\[]", text)
        if found is None:
            self._fail("there is no object")
        start = found.start()
        if not is_sentence_before(text[:start], self._known.names) and text[:start].strip("( \n"):
            self._fail("what stands before the object may be a part of it")
        if text[:start].strip():
            self._repairs.append("junk")
        if text.startswith("{}", start) and text[start + 2 :].lstrip().startswith("{") and not self._known.takes_empty:
            self._repairs.append("twice")  # the empty start that some upstreams send, and then the arguments
            return text.index("{", start + 2)
        return start

    def _call(self, text: str) -> int:
        """Where the members begin in tool(name=value)."""
        found = _CALL.match(text)
        return found.end() if found and same_name(found.group(1)) == same_name(self._known.tool) else 0

    def _quoted(self, text: str) -> Json:
        """A text that holds the arguments: written as one, or only with quotes around."""
        text = text.strip()
        try:
            if text[0] == '"':
                loose = Loose(text)
                value = loose.text()
                self._check_rest(text, loose.position, value)
                self._repairs += loose.repairs
                return value
        except NotLoose:
            pass
        if len(text) < 2 or text[-1] != ENDS[text[0]]:
            self._fail("quotes around something else")
        return self._unescaped(text[1:-1])

    def _unescaped(self, text: str) -> str:
        """A shell keeps backslashes between quotes, Python does not: where that makes a difference, one must be no JSON."""
        if "\\\\" not in text:
            return text
        readings = [reading for reading in (text, text.replace("\\\\", "\\")) if _strict(reading) is not None]
        if len(readings) != 1:
            self._fail("one or two backslashes")
        return readings[0]

    def _without_brace(self, text: str, is_ended: bool) -> Json:
        loose = Loose(text, 0, self._known.names)
        value = loose.members()
        self._repairs.append("syntax.braces")
        self._accept(loose, value, is_ended)
        self._check_rest(text, loose.position, value)
        return value

    def _accept(self, loose: Loose, value: Json, is_ended: bool) -> None:
        self._repairs += loose.repairs
        if "syntax.inner_quotes" in loose.repairs and not set(_keys(value)) <= self._known.names:
            self._fail("quotes inside a text may have made members of it")
        if not all(map(self._known.is_sure, loose.mended)):
            self._fail("the bracket that opens may be the wrong one")
        if not loose.unclosed or is_ended:
            return
        if loose.ends_in_number or not isinstance(value, dict) or not self._known.may_close(value, loose.unclosed):
            self._fail("it may have been cut")
        if any(loose.last_text.count(closer) > loose.last_text.count(mark) for mark, closer in ("{}", "[]")):
            self._fail("the closer may be inside the last text")

    def _check_rest(self, text: str, end: int, value: Json) -> None:
        rest = text[end:].strip()
        if not rest:
            return
        if _is_copy(text[:end], rest, value):
            self._repairs.append("twice")
        elif rest[0] in "}])" and "syntax.no_comma" in self._repairs:
            self._fail("neither closers nor commas can be trusted")
        elif is_junk_behind(text[end:], self._known.names):
            self._repairs += ["junk", "syntax.closers"] if rest[0] in "}]" else ["junk"]
        else:
            self._fail("what follows the object may be a part of it")

    @staticmethod
    def _fail(words: str) -> Never:
        raise NotLoose(words)


def _keys(value: Json) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _keys(item)


def _strict(text: str) -> Json:
    try:
        return decode(text)
    except BadJson:
        return None


def _is_copy(first: str, rest: str, value: Json) -> bool:
    """H015: the whole object again, once or more often."""
    if not rest.startswith("{"):
        return False
    size = len(first)
    if len(rest) % size == 0 and rest == first * (len(rest) // size):
        return True
    again = _strict(rest)
    return again is not None and bool(again == value)
