"""Ids of calls as a back end takes them: legal ones stay, others are mapped, calls and their results alike.

What an id becomes depends on the id itself and on what stood before it, never on what comes after: a conversation that grows
keeps its beginning to the byte, which is what prompt caches ask for. So ids are given in order of appearance. One that is legal,
but was given to another call before it appeared, gets a new one too.

Some models expect ids that tell the tool and the number of the call (H118); those are counted anew for every request, and results
follow their calls. A result without a call keeps its id, unless that looks like one of these.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Collection
from hashlib import blake2b
from typing import TypeAlias

from msgspec.structs import replace

from ...profiles import IdRule
from ...types import Message, Part, ToolCall, ToolResult
from ..ledger.messages import as_function

_ANY = IdRule()
_BASE62 = string.digits + string.ascii_letters
_LETTERS = {"word": f"{_BASE62}_-".encode(), "base62": _BASE62.encode()}
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")
_NUMBERED = re.compile(r"functions\..*:\d+", re.DOTALL)
_LONGEST = 64  # of ids that we make, where the rule allows any length
_SHORT = 24  # where there is less room, nothing is left of the old id
_HASHED = 16  # letters of an id that is nothing but a hash, where the rule does not say how many
_PAIRED = (ToolCall, ToolResult)  # as `X | Y` the union would be made anew for each part

IdOf: TypeAlias = Callable[[Part], str]


def fit_ids(messages: tuple[Message, ...], rule: IdRule, ids: Collection[str] | None = None) -> tuple[Message, ...]:
    """The same object where every id is legal. ids: those in the messages, where somebody has looked already."""
    if rule == _ANY:
        return messages
    if rule.is_numbered:
        return messages if _are_numbered(messages) else _rewritten(messages, _Numbers(messages).of)
    found = ids_in(messages) if ids is None else ids
    if not found or _are_legal(found, rule):
        return messages
    given = _Given(lambda call_id: _is_legal(call_id, rule), lambda call_id, tries: _made(call_id, tries, rule))
    return _rewritten(messages, lambda part: given.of(_id(part)))


def ids_in(messages: tuple[Message, ...]) -> set[str]:
    """Of calls and results, wherever they stand."""
    found: set[str] = set()
    for message in messages:
        for part in message.parts:
            if type(part) is ToolCall:
                found.add(part.id)
            elif type(part) is ToolResult:
                found.add(part.call_id)
    return found


class _Given:
    """Each id gets one of its own, and keeps it."""

    def __init__(self, is_legal: Callable[[str], bool], make: Callable[[str, int], str]) -> None:
        self._is_legal = is_legal
        self._make = make
        self._known: dict[str, str] = {}
        self._taken: set[str] = set()

    def of(self, call_id: str) -> str:
        known = self._known.get(call_id)
        return self._new(call_id) if known is None else known

    def _new(self, call_id: str) -> str:
        fitted, tries = call_id, 0
        while fitted in self._taken or (tries == 0 and not self._is_legal(call_id)):
            fitted, tries = self._make(call_id, tries), tries + 1
        self._known[call_id] = fitted
        self._taken.add(fitted)
        return fitted


class _Numbers:
    """Calls numbered from 0. Of several calls with one id, a result answers the last before it, else the first behind it."""

    def __init__(self, messages: tuple[Message, ...]) -> None:
        calls = [part for message in messages for part in message.parts if isinstance(part, ToolCall)]
        self._numbered = [f"functions.{call.name}:{number}" for number, call in enumerate(calls)]
        self._next = 0
        self._known: dict[str, str] = {}
        for call, numbered in zip(calls, self._numbered, strict=True):
            self._known.setdefault(call.id, numbered)
        self._strays = _Given(lambda call_id: not _NUMBERED.fullmatch(call_id), _stray)

    def of(self, part: Part) -> str:
        call_id = _id(part)
        if isinstance(part, ToolCall):
            self._known[call_id] = self._numbered[self._next]
            self._next += 1
        return self._known.get(call_id) or self._strays.of(call_id)


def _rewritten(messages: tuple[Message, ...], id_of: IdOf) -> tuple[Message, ...]:
    written = tuple(_message(message, id_of) for message in messages)
    return messages if all(new is old for new, old in zip(written, messages, strict=True)) else written


def _message(message: Message, id_of: IdOf) -> Message:
    parts = [_part(part, id_of) if isinstance(part, _PAIRED) else part for part in message.parts]
    is_same = all(new is old for new, old in zip(parts, message.parts, strict=True))
    return message if is_same else message.with_parts(tuple(parts))


def _part(part: Part, id_of: IdOf) -> Part:
    """One of a typed tool has an item that only its source can tell; without that it is a function's."""
    fitted = id_of(part)
    if fitted == _id(part):
        return part
    if isinstance(part, ToolCall):
        return replace(as_function(part), id=fitted)
    if isinstance(part, ToolResult):
        return replace(part, call_id=fitted, kind="function" if part.kind == "typed" else part.kind)
    return part


def _id(part: Part) -> str:
    return part.id if isinstance(part, ToolCall) else part.call_id if isinstance(part, ToolResult) else ""


def _are_numbered(messages: tuple[Message, ...]) -> bool:
    """Each call by its place, and each result of one that came before it: the usual case, in one look."""
    known: set[str] = set()
    for message in messages:
        for part in message.parts:
            if type(part) is ToolCall:
                if part.id != f"functions.{part.name}:{len(known)}":
                    return False
                known.add(part.id)
            elif type(part) is ToolResult and part.call_id not in known:
                return False
    return True


def _are_legal(ids: Collection[str], rule: IdRule) -> bool:
    """All at once: every request is asked this, and has hundreds."""
    lengths = set(map(len, ids))
    is_legal = (
        0 not in lengths
        and (not rule.length or lengths == {rule.length})
        and (not rule.longest or max(lengths) <= rule.longest)
        and (rule.letters == "any" or _has_legal_letters("".join(ids), rule))
    )
    return is_legal or (bool(rule.kept) and all(_is_legal(call_id, rule) for call_id in ids))


def _is_legal(call_id: str, rule: IdRule) -> bool:
    if rule.kept and rule.kept in call_id:
        return True
    return (
        bool(call_id)
        and (not rule.length or len(call_id) == rule.length)
        and (not rule.longest or len(call_id) <= rule.longest)
        and (rule.letters == "any" or _has_legal_letters(call_id, rule))
    )


def _has_legal_letters(text: str, rule: IdRule) -> bool:
    return not text.encode("utf-8", "surrogatepass").translate(None, _LETTERS[rule.letters])


def _made(call_id: str, tries: int, rule: IdRule) -> str:
    """With the beginning of the old id where there is room for it, so that people find it again; always with a hash of the whole."""
    longest = rule.length or rule.longest or _LONGEST
    if rule.letters == "base62" or rule.length or longest < _SHORT:
        return _base62(_hash(call_id, tries, 64), rule.length or min(longest, _HASHED))
    mark = _hash(call_id, tries, 6).hex()
    return f"{_ILLEGAL.sub('_', call_id[: longest - len(mark) - 1])}_{mark}"


def _stray(call_id: str, tries: int) -> str:
    return f"call_{_hash(call_id, tries, 12).hex()}"


def _hash(call_id: str, tries: int, size: int) -> bytes:
    data = call_id.encode("utf-8", "surrogatepass")
    return blake2b(data, digest_size=size, salt=tries.to_bytes(8, "big")).digest()


def _base62(data: bytes, size: int) -> str:
    number, letters = int.from_bytes(data, "big"), ""
    for _ in range(size):
        number, place = divmod(number, len(_BASE62))
        letters += _BASE62[place]
    return letters
