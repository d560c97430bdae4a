"""Completes arguments whose beginning was already sent: what must follow so that the whole has a given value."""

from __future__ import annotations

import re

from ...types import Json, JsonObject
from ...wire.exact_json import BadJson, decode, encode, object_of

_BLANKS = re.compile(r"[ \t\r\n]*")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)("?)', re.DOTALL)
_SCALAR = re.compile(r"[^,\]}\s]*")


class _Conflict(Exception):
    """The value does not start with what was sent."""


def completion(sent: str, value: JsonObject) -> str | None:
    """The text after `sent`; None if nothing after it gives this value. sent: a beginning of JSON that ends inside a string, or
    where a value starts."""
    try:
        rest = _Walk(sent).rest(value)
    except (_Conflict, BadJson):
        return None
    return rest if object_of(sent + rest) == value else None


class _Walk:
    """Compares the text with the value, up to the end of the text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0

    def rest(self, value: Json) -> str:
        """What is missing of the value; "" if the text has all of it."""
        if self._is_at_end():
            return _written(value)
        match value:
            case dict():
                return self._rest_of_object(value)
            case list():
                return self._rest_of_list(value)
            case str():
                return self._rest_of_text(value)
            case _:
                self._scalar(value)
                return ""

    def _rest_of_object(self, value: JsonObject) -> str:
        self._take("{")
        left = dict(value)
        is_first = True
        while not self._is_at_end():
            if self._text[self._position] == "}":
                break
            if not is_first:
                self._take(",")
            is_first = False
            name = self._name()
            if name not in left:
                raise _Conflict
            if rest := self.rest(left.pop(name)):
                return rest + _members(left, is_first=False) + "}"
        if self._is_at_end():
            return _members(left, is_first=is_first) + "}"
        self._take("}")
        if left:
            raise _Conflict
        return ""

    def _rest_of_list(self, value: list[Json]) -> str:
        self._take("[")
        for index, item in enumerate(value):
            if index:
                if self._is_at_end():
                    return "".join("," + _written(one) for one in value[index:]) + "]"
                self._take(",")
            if rest := self.rest(item):
                return rest + "".join("," + _written(one) for one in value[index + 1 :]) + "]"
        if self._is_at_end():
            return "]"
        self._take("]")
        return ""

    def _rest_of_text(self, value: str) -> str:
        found = self._match(_STRING)
        begun = decode(f'"{found[1]}"')
        if found[2]:
            if begun != value:
                raise _Conflict
            return ""
        if not value.startswith(begun):
            raise _Conflict
        return _written(value[len(begun) :])[1:]

    def _scalar(self, value: Json) -> None:
        found = decode(self._match(_SCALAR)[0])
        if found != value or isinstance(found, bool) != isinstance(value, bool):
            raise _Conflict

    def _name(self) -> str:
        self._is_at_end()
        name = decode(f'"{self._match(_STRING)[1]}"')
        self._take(":")
        return str(name)

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str]:
        found = pattern.match(self._text, self._position)
        if found is None:
            raise _Conflict
        self._position = found.end()
        return found

    def _take(self, character: str) -> None:
        if self._is_at_end() or self._text[self._position] != character:
            raise _Conflict
        self._position += 1

    def _is_at_end(self) -> bool:
        """After blanks."""
        self._position = _BLANKS.match(self._text, self._position).end()  # type: ignore[union-attr] # always matches
        return self._position == len(self._text)


def _members(members: JsonObject, *, is_first: bool) -> str:
    text = ",".join(f"{_written(name)}:{_written(item)}" for name, item in members.items())
    return text if is_first or not text else f",{text}"


def _written(value: Json) -> str:
    return encode(value).decode()
