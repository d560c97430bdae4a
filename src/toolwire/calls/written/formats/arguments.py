"""Arguments as models write them: a JSON object, a JSON object that holds the name as well, or values between tags, without types."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from msgspec import Struct

from ....types import Json, JsonObject
from ....wire.exact_json import BadJson, decode, encode, object_of
from ...arguments.loose_json import Loose, NotLoose
from ...arguments.object_text import decode_loosely
from ...schemas.keywords import schemas_at, types_of
from ...schemas.reader import Uncheckable, UnreadableSchema, read
from .base import ToolLookup
from .json_call import Envelope
from .lexer import LONGEST_NAME, Marks, NoCall, Steps, Tape, UnreadableCall

CUT = "the text ends inside the arguments"
NOT_JSON = "the arguments are no JSON object"
NO_ARGUMENTS = "it has members that no call has, and no arguments"
_NULL = Marks("null", "None")
_ARGUMENTS = frozenset({"arguments", "parameters"})
_MEMBERS = frozenset({*_ARGUMENTS, "name", "function", "type", "id", "call_id", "tool_call_id", "index"})
_STRICT = ('{"', "{}")  # how JSON begins, and what only resembles it mostly does not
_JSON_WORDS = {"true": True, "false": False, "null": None}
_MOST_DIGITS = 400
_MOST_AHEAD = 1024
_TAG_END = Marks(">")
_LONGEST_TAG = LONGEST_NAME + 32
_ATTRIBUTE = re.compile(r"(\w+)\s*=\s*[\"']?([^\"'>]*)")


# One JSON object, streamed.


def read_json(tape: Tape, name: str, *ends: Marks, must_end: bool = True) -> Steps[None]:
    """The arguments of a known tool, and what ends the call: these marks, of which only the last one is required. If they are not exactly
    JSON, they wait until they can be read as a whole."""
    lead = yield from tape.ahead(2)
    if lead not in _STRICT:
        yield from _read_loosely(tape, name, ends, lead[:1])
        return
    yield from tape.blanks()
    tape.opened(name)
    raw, is_whole = yield from tape.balanced(grows=True)
    is_ended = yield from read_ends(tape, ends)
    if not is_whole or object_of(raw) is None:
        raise UnreadableCall(NOT_JSON if is_whole or is_ended else CUT)
    tape.closed(*([] if is_ended or not must_end else ["unterminated"]))


def read_ends(tape: Tape, ends: Iterable[Marks]) -> Steps[str]:
    found = ""
    for marks in ends:
        found = yield from tape.past(marks, strays=True)
    return found


def _read_loosely(tape: Tape, name: str, ends: Iterable[Marks], first: str) -> Steps[None]:
    if not first or first not in '{["':
        yield from tape.past(_NULL)
        if not (yield from read_ends(tape, ends)):
            raise NoCall
        tape.whole(name, "{}", "empty")
        return
    yield from tape.blanks()
    text, is_whole = yield from tape.balanced()
    yield from read_ends(tape, ends)
    raw, repair = repair_object(text) if is_whole else ("", "")
    if not raw:
        raise UnreadableCall(NOT_JSON if is_whole else CUT, name, text)
    tape.whole(name, raw, repair)


def repair_object(text: str) -> tuple[str, str]:
    """The one object that the text can mean, as JSON, and the label of the repair; "" where there is none."""
    try:
        value = decode(text) if text.startswith('"') else decode_loosely(text)
        if isinstance(value, str):
            return (value, "quoted") if object_of(value) is not None else (_json(decode_loosely(value)), "quoted")
        if isinstance(value, list) and len(value) == 1:
            return _json(value[0]), "unlisted"
        return _json(value), "loose"
    except (BadJson, NotLoose):
        return "", ""


def _json(value: Json) -> str:
    if not isinstance(value, dict):
        raise NotLoose("no object")
    return encode(value).decode()


# One JSON object with the name in it.


def read_envelope(tape: Tape) -> Steps[None]:
    """{"name": ..., "arguments": {...}}, in any order; other members are ignored."""
    lead = yield from tape.ahead(2)
    if lead == '{"':
        yield from _strict_envelope(tape)
    elif lead == "{'":
        yield from _loose_envelope(tape)
    else:
        raise NoCall


def named(given: Json, known: ToolLookup) -> str:
    """The name of an offered tool; raises NoCall for any other."""
    if not isinstance(given, str) or known.tool(given) is None:
        raise NoCall
    return given


def _strict_envelope(tape: Tape) -> Steps[None]:
    yield from tape.blanks()
    envelope = Envelope(tape, is_strict=True, needs_tool=True)
    is_whole = yield from envelope.read()
    if not envelope.is_named:
        raise NoCall
    if not is_whole:  # what follows a complete value without its closing brace is text
        raise UnreadableCall(CUT if envelope.status == "more" else NOT_JSON, envelope.name)
    if envelope.arguments() is None:
        raise UnreadableCall(NOT_JSON, envelope.name, envelope.raw)
    envelope.finish([] if envelope.status == "done" else ["unterminated"])


def _loose_envelope(tape: Tape) -> Steps[None]:
    text, is_whole = yield from tape.balanced()
    found, is_sure = _loosely(text) if is_whole else (None, False)
    if not isinstance(found, dict):
        raise NoCall
    name = named(found.get("name"), tape.known)
    inner = next((found[key] for key in _ARGUMENTS if key in found), None)
    raw, _ = repair_object(inner if isinstance(inner, str) else encode(inner or {}).decode())
    if inner is None and found.keys() - _MEMBERS:
        raise UnreadableCall(NO_ARGUMENTS, name, text)
    if not raw or not (is_sure or tape.known.fits(name, raw)):
        raise UnreadableCall(NOT_JSON, name, text)
    tape.whole(name, raw, "loose")


def _loosely(text: str) -> tuple[Json, bool]:
    """The text that was meant, and whether that is certain: for 'it's late' only the schema decides (H130)."""
    try:
        return decode_loosely(text), True
    except NotLoose:
        pass
    loose = Loose(text)
    try:
        found = loose.value()
    except NotLoose:
        return None, False
    return (None if loose.unclosed or loose.position < len(text) else found), False


# Values between tags.


class TaggedArguments:
    """The arguments of one call, written as JSON while its values come one by one."""

    def __init__(self, tape: Tape, name: str) -> None:
        tool = tape.known.tool(name)
        self._tape = tape
        self._schema = _readable(tool.schema if tool else None)
        self._keys: set[str] = set()
        tape.opened(name)

    def add(self, key: str, text: str, *, is_text: bool | None = None) -> None:
        """is_text: whether the model marked the value as text or as JSON; None where only the schema decides."""
        if key in self._keys:
            raise UnreadableCall("an argument is there twice")
        value = text if is_text else self._typed(key, text, is_json=is_text is False)
        self._tape.grew(f"{',' if self._keys else '{'}{encode(key).decode()}:{encode(value).decode()}")
        self._keys.add(key)

    def close(self, *repairs: str) -> None:
        self._tape.grew("}" if self._keys else "{}")
        self._tape.closed(*repairs)

    def _typed(self, key: str, text: str, *, is_json: bool) -> Json:
        if is_json:
            try:
                return decode(text.strip())
            except BadJson:
                pass
        return typed(text, types_at(self._schema, key))


class ValueEnd:
    """H132: values are not escaped, so the last closer before the next mark ends the value. alone: marks that may come without a
    closer, because models forget closers. others: marks that only follow the call; a value continues up to a closer before all of
    them."""

    def __init__(
        self,
        closer: tuple[str, ...],
        following: tuple[str, ...],
        alone: Callable[[str, str], bool] = lambda mark, before: False,
        others: tuple[str, ...] = (),
    ) -> None:
        self._closer = closer
        self._alone = alone
        self._marks = Marks(*closer, *following)
        self._ahead = Marks(*closer, *others)

    def read(self, tape: Tape) -> Steps[tuple[str, str]]:
        """The value and what comes next; "" where the text ends behind the closer."""
        parts: list[str] = []
        closer = -1
        will_close = False
        while True:
            text, mark = yield from tape.upto(self._marks)
            parts.append(text)
            if mark in self._closer:
                closer = len(parts)
            elif mark and closer < 0 and not will_close and self._alone(mark, text):
                will_close = (yield from tape.coming(self._ahead, _MOST_AHEAD)) in self._closer
                if not will_close:
                    return "".join(parts), mark
            elif closer >= 0 and (mark or not "".join(parts[closer + 1 :]).strip()):
                return "".join(parts[:closer]), mark
            elif not mark:
                raise UnreadableCall(CUT)
            parts.append(mark)


class ElementForm(Struct, frozen=True, kw_only=True):
    """Calls as elements that contain an element for each argument. argument, ends: the tags that begin an argument, and end the call.

    attributes: reads the text of a tag, up to its >; name and string (whether a value is text) count.
    """

    argument: tuple[str, ...]
    ends: tuple[str, ...]
    value: ValueEnd
    attributes: Callable[[str], dict[str, str]]
    value_text: Callable[[str], str] = str

    def read(self, tape: Tape) -> Steps[None]:
        """From after the opener of a call, with JSON or elements inside."""
        name = named((yield from self._tag(tape)).get("name"), tape.known)
        if (yield from tape.ahead(1)) == "{":
            yield from read_json(tape, name, Marks(*self.ends))
            return
        mark = yield from tape.past(Marks(*self.argument, *self.ends))
        if not mark:
            raise NoCall
        arguments = TaggedArguments(tape, name)
        while mark in self.argument:
            found = yield from self._tag(tape)
            if not found.get("name"):
                raise UnreadableCall("the name of a parameter is missing, or does not end")
            text, mark = yield from self.value.read(tape)
            is_text = {"true": True, "false": False}.get(found.get("string", ""))
            arguments.add(found["name"], self.value_text(text), is_text=is_text)
        arguments.close(*([] if mark else ["unclosed"]))

    def _tag(self, tape: Tape) -> Steps[dict[str, str]]:
        text, mark = yield from tape.upto(_TAG_END, _LONGEST_TAG)
        return self.attributes(text) if mark else {}


def attributes(text: str) -> dict[str, str]:
    return {key: value.strip() for key, value in _ATTRIBUTE.findall(text)}


def types_at(schema: JsonObject, key: str) -> set[str]:
    """The types that a property may have; schema is one that was read."""
    found: set[str] = set()
    for place in schemas_at(schema, (key,)):
        types = types_of(place)
        options = [*place.get("enum", ()), *([place["const"]] if "const" in place else [])]
        found |= types or {_TYPES.get(type(option), "number") for option in options}
    return found


def typed(text: str, types: set[str]) -> Json:
    """The text as a value of one of these types, the narrowest first; the text itself where it fits none. Without types it is read
    as JSON."""
    word = text.strip()
    if not types and word in _JSON_WORDS:
        return _JSON_WORDS[word]
    for name, rung in _LADDER.items():
        if name in (types or _UNTYPED.get(word[:1], {"number"})):
            try:
                return rung(word)
            except ValueError:
                continue
    return text


def _readable(schema: JsonObject | None) -> JsonObject:
    try:
        return read(schema or {}).schema
    except (UnreadableSchema, Uncheckable, ValueError, RecursionError):
        return {}


def _null(word: str) -> None:
    if word not in ("null", "None"):
        raise ValueError(word)


def _number(word: str) -> Json:
    if len(word) > _MOST_DIGITS or not word[-1:].isdigit():
        raise ValueError
    return decode(word)


def _integer(word: str) -> int:
    """Also 30.0, and never 1e999999."""
    whole, _, fraction = word.partition(".")
    if fraction.strip("0") or not whole[-1:].isdigit():
        raise ValueError(word)
    found = _number(whole)
    if not isinstance(found, int):
        raise ValueError
    return found


def _boolean(word: str) -> bool:
    if word.lower() not in ("true", "false"):
        raise ValueError(word)
    return word.lower() == "true"


def _object(word: str) -> Json:
    if not isinstance(found := decode_loosely(word), dict):
        raise ValueError
    return found


def _array(word: str) -> Json:
    if not isinstance(found := decode_loosely(word), list):
        raise ValueError
    return found


_LADDER: dict[str, Callable[[str], Json]] = {
    "null": _null,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "object": _object,
    "array": _array,
}
_UNTYPED = {"{": {"object"}, "[": {"array"}}  # by the first letter
_TYPES = {str: "string", bool: "boolean", int: "integer", dict: "object", list: "array", type(None): "null"}
