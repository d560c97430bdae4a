"""Finds the object in a text that is not plain JSON: fenced, labelled, doubled, quoted, or without its braces.

Every step keeps everything that was written, or gives up. Fences, tags, labels and quotes are removed by their form. Sentences around the
object are dropped only if they cannot be part of it: no brackets, and no property name with a colon after it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html import unescape
from typing import NamedTuple, Never

from msgspec import Struct

from ...types import Json, JsonObject
from ...wire.exact_json import BadJson, decode
from ..schemas.keywords import Path
from .loose_json import Loose, NotLoose
from .members import same_name
from .quotes import ENDS, Steps

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


class SchemaFacts(Struct, frozen=True):
    """What the schema of the tool shows. may_close: nothing can be missing in these unclosed containers of an object.

    is_sure: the schema demands a list or an object at this place. names: of its properties at any depth. takes_empty: {} is a
    valid call.
    """

    may_close: MayClose
    is_sure: IsSure = lambda _: False
    tool: str = ""
    names: frozenset[str] = _NOTHING
    takes_empty: bool = True


class FoundObject(Struct, frozen=True):
    arguments: JsonObject
    repairs: tuple[str, ...]


def find_object(raw: str, known: SchemaFacts) -> FoundObject | None:
    if len(raw) > LARGEST:
        return None
    return _Reader(known).read(raw, _ROUNDS)


def decode_loosely(text: str, steps: Steps | None = None, rounds: int = 2) -> Json:
    """The list or object that a text holds as JSON, complete; raises NotLoose. steps: what many texts share."""
    if len(text) > LARGEST:
        raise NotLoose("too long")
    stripped = without_marks(text).text.strip() if text.lstrip().startswith(("```", "~~~")) else text.strip()
    if not stripped.startswith(("{", "[", "(", '"')):
        raise NotLoose("no list or object")
    value = _strict(stripped)
    if isinstance(value, str) and rounds:
        return decode_loosely(value, steps, rounds - 1)
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
    def __init__(self, known: SchemaFacts) -> None:
        self._known = known
        self._repairs: list[str] = []

    def read(self, raw: str, rounds: int) -> FoundObject | None:
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

    def _done(self, arguments: JsonObject, *more: str) -> FoundObject:
        return FoundObject(arguments, tuple(dict.fromkeys((*self._repairs, *more))))

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
        """A shell keeps backslashes between quotes, Python does not: where the results differ, only one may be JSON."""
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


_BLANK = " \t\r\n\x00\ufeff\u200b"
_FENCE = re.compile(r"(?:```|~~~)[\w-]{0,20}[ \t]*\n?")
_FENCE_BELOW = re.compile(r"\n[ \t]*(?:```|~~~)[\w-]{0,20}[ \t]*\n")
_MARK = re.compile(
    r"<\|?/?[A-Za-z_][\w:. =\"/-]{0,60}\|?>|<｜[^<>\n]{1,60}｜>|\[/?[A-Z_]{2,20}\]|json\s+(?=[{\[])", re.IGNORECASE
)
_LABEL = re.compile(
    r"(?:arguments?|args|input|parameters?|params|json|(?:tool|function)?_?call)\s*[:=]\s*(?=[{\[\"'`(<])",
    re.IGNORECASE,
)
_END_MARK = re.compile(r"(?:```|~~~|</[\w:.-]{1,60}>|<[|｜][^<>\n]{1,60}[|｜]>|\[/[A-Z_]{2,20}\])\Z")
_CLOSING = re.compile(r"(?:[}\])\s;`~]|</?[\w:|.=-]{1,60}>|<[|｜][^<>\n]{1,60}[|｜]>|\[/?[A-Z_]{2,20}\])*")
_LONE = ('"', "'", ",", ".", "...", "…", '",', "',")
_NAMED_VALUE = re.compile(r"([\w$-]{1,80})[\"'’”]?\s*[:=]")
_LONGEST = 4000  # characters of sentences
_MOST_BEHIND = 50_000
_MOST_MARKS = 6


class BareText(NamedTuple):
    """is_ended: the model itself wrote an end behind it."""

    text: str
    is_ended: bool
    repairs: tuple[str, ...]


def without_marks(raw: str) -> BareText:
    """Without the marks before and behind."""
    text, before = _from_left(raw)
    text, is_ended = _from_right(text)
    repairs = dict.fromkeys([*before, *(["fence" if "fence" in before else "junk"] if is_ended else [])])
    return BareText(text, is_ended, tuple(repairs))


def is_sentence_before(text: str, names: frozenset[str]) -> bool:
    """Whether the text before the first bracket can be dropped."""
    words = text.strip()
    if not words:
        return True
    if len(words) > _LONGEST or not words[0].isalnum() or words.count('"') % 2:
        return False
    return words.rstrip(":= (").replace(".", "").isidentifier() or _is_prose(words, names)


def is_junk_behind(text: str, names: frozenset[str]) -> bool:
    """Whether what follows a closed object can go: more closers, marks, or sentences."""
    if len(text) > _MOST_BEHIND:
        return False
    closing = _CLOSING.match(text)
    rest = (text[closing.end() :] if closing else text).strip(_BLANK)
    if not rest or rest in _LONE:
        return True
    if (
        rest.split()[0] in ("true", "false", "null")
        or len(rest) > _LONGEST
        or rest[0] in ",:=\"'0123456789"
        or re.search(r"[{}\[\]]", rest)
    ):
        return False
    is_apart = "\n" in text[: closing.end() if closing else 0]
    return _is_prose(rest, names) and (is_apart or '"' not in rest)


def _is_prose(text: str, names: frozenset[str]) -> bool:
    return all(found.group(1) not in names for found in _NAMED_VALUE.finditer(text))


def _from_left(raw: str) -> tuple[str, list[str]]:
    text = raw.lstrip(_BLANK)
    repairs: list[str] = []
    below = _FENCE_BELOW.search(text, 0, _LONGEST) if text[:1].isalpha() else None
    if below and not re.search(r"[{}]", text[: below.start()]):
        text = text[below.start() :].lstrip(_BLANK)
    for _ in range(_MOST_MARKS):
        found, repair = _FENCE.match(text), "fence"
        if found is None:
            found, repair = _MARK.match(text) or _LABEL.match(text), "junk"
        if found is None or found.end() == len(text):
            break
        repairs.append(repair)
        text = text[found.end() :].lstrip(_BLANK)
    return text, repairs


def _from_right(text: str) -> tuple[str, bool]:
    """The last line end stays: it shows that the text before it had ended."""
    is_ended = False
    for _ in range(_MOST_MARKS):
        stripped = text.rstrip(_BLANK + ";")
        found = _END_MARK.search(stripped[-80:])
        if found is None:
            return (stripped if is_ended or "\n" not in text[len(stripped) :] else f"{stripped}\n"), is_ended
        text, is_ended = stripped[: len(stripped) - len(found.group())], True
    return text, is_ended
