"""The object a model meant, from a text that is not one: fenced, labelled, doubled, quoted, with its braces lost.

Every step keeps all that was written or gives up. Words around the object may be dropped only if they cannot be part of it,
so text with quotes, brackets or commas of its own is never junk.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Struct

from ...types import Json, JsonObject
from ...wire.exact import BadJson, decode
from ..schemas.positions import Path
from .loose import Loose, NotLoose

LARGEST = 1 << 20  # characters; reading loosely is Python's work, not C's
_FENCED = re.compile(r"\s*(?:```|~~~)[\w-]*[ \t]*\n?(.*?)\s*(?:```|~~~)\s*", re.DOTALL)
_OPENED = re.compile(r"(?:```|~~~)[\w-]*[ \t]*\n")
_TAG = re.compile(r"\s*<\|?/?[A-Za-z_][\w:. =\"/-]{0,60}\|?>\s*")
_CLOSING = re.compile(r"(?:[}\])\s;`]|</?[\w:|.-]{1,60}>|<\|[\w:.-]{1,60}\|>|\[/?[A-Z_]{2,20}\])*")
_PROSE = re.compile(r"[^{}\[\]\"`:,=]*")
_BEFORE = re.compile(r"(?:[^{}\[\]\"'`:=]|(?<=\w)'(?=\w))*[:=]?\s*")
_LABEL = re.compile(
    r"(?:arguments?|args|input|parameters?|params|json|(?:tool|function)?_?call)\s*[:=]\s*(?=[{\[])", re.I
)
_MEMBER = re.compile(r"\w+\s*:\s*[\"'\[{\d-]")
_EMPTY = ("", "null", "None")
_ROUNDS = 3

MayClose = Callable[[JsonObject, list[Path]], bool]


class Meant(Struct, frozen=True):
    arguments: JsonObject
    repairs: tuple[str, ...]


def meant(raw: str, may_close: MayClose) -> Meant | None:
    """may_close says whether nothing can be missing where these containers of the object were not closed."""
    if len(raw) > LARGEST:
        return None
    return _Reader(may_close).read(raw, _ROUNDS)


def encoded(text: str) -> Json:
    """The list or object that a text holds as JSON, complete; raises NotLoose."""
    stripped = text.strip()
    if not stripped.startswith(("{", "[", "```")) or len(text) > LARGEST:
        raise NotLoose("no list or object")
    if fence := _FENCED.fullmatch(stripped):
        stripped = fence.group(1).strip()
    try:
        return decode(stripped)
    except BadJson:
        pass
    loose = Loose(stripped)
    value = loose.value()
    if loose.unclosed or stripped[loose.position :].strip():
        raise NotLoose("it does not end where it should")
    return value


class _Reader:
    def __init__(self, may_close: MayClose) -> None:
        self._may_close = may_close
        self._repairs: list[str] = []

    def read(self, raw: str, rounds: int) -> Meant | None:
        text, is_ended = self._bare(raw)
        if text in _EMPTY:
            return self._done({}, "empty") if self._may_close({}, [()]) else None
        try:
            value = self._value(text, is_ended)
        except NotLoose:
            return None
        if isinstance(value, str) and rounds:
            self._repairs.append("quoted")
            return self.read(value, rounds - 1)
        if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
            return self._done(value[0], "listed")
        return self._done(value) if isinstance(value, dict) else None

    def _done(self, arguments: JsonObject, *more: str) -> Meant:
        return Meant(arguments, tuple(dict.fromkeys((*self._repairs, *more))))

    def _bare(self, raw: str) -> tuple[str, bool]:
        """Without fence and tags; is_ended: the model itself wrote an end behind it."""
        text, is_ended = raw.strip(" \t\r\n\ufeff"), False
        if fence := _FENCED.fullmatch(text):
            self._repairs.append("fence")
            text, is_ended = fence.group(1).strip(), True
        elif opened := _OPENED.match(text):
            self._repairs.append("fence")
            text = text[opened.end() :]
        if tag := _TAG.match(text):
            self._repairs.append("junk")
            text = text[tag.end() :]
        return text, is_ended

    def _value(self, text: str, is_ended: bool) -> Json:
        if (whole := _strict(text)) is not None:
            return whole
        if label := _LABEL.match(text):
            self._repairs.append("junk")
            text = text[label.end() :]
        if text.startswith(('"', "'")) or _MEMBER.match(text):
            return self._without_brace(text, is_ended)
        start = self._start(text)
        loose = Loose(text, start)
        value = loose.value()
        self._repairs += loose.repairs
        self._check_end(loose, value, is_ended)
        self._check_rest(text[start:], loose.position - start, value)
        return value

    def _start(self, text: str) -> int:
        found = re.search(r"[{\[]", text)
        if found is None:
            raise NotLoose("there is no object")
        before = text[: found.start()]
        if before.strip() and not _BEFORE.fullmatch(before):
            raise NotLoose("what stands before the object may be a part of it")
        if before.strip():
            self._repairs.append("junk")
        return found.start()

    def _without_brace(self, text: str, is_ended: bool) -> Json:
        loose = Loose(text)
        value = loose.members()
        self._repairs += [*loose.repairs, "syntax.braces"]
        if text[loose.position :].strip(" \n\r\t}"):
            raise NotLoose("more follows")
        self._check_end(loose, value, is_ended)
        return value

    def _check_end(self, loose: Loose, value: Json, is_ended: bool) -> None:
        if not loose.unclosed or is_ended:
            return
        if loose.ends_in_number or not isinstance(value, dict) or not self._may_close(value, loose.unclosed):
            raise NotLoose("it may have been cut")

    def _check_rest(self, text: str, end: int, value: Json) -> None:
        rest = text[end:].strip()
        if not rest:
            return
        if _is_copy(text[:end], rest, value):
            self._repairs.append("twice")
            return
        closing = _CLOSING.match(rest)
        rest = rest[closing.end() :] if closing else rest
        if not _PROSE.fullmatch(rest):
            raise NotLoose("what follows the object may be a part of it")
        self._repairs.append("junk")


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
