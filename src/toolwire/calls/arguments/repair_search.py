"""Changes arguments that do not fit their schema until they do, if there is exactly one way.

The validator reports the faults; each fault has its fixes; the result must validate. If two different results validate, the meaning is
unknown, and nothing is changed. A single value is put in a list only where nothing else helps.

A valid result can still be wrong: a mistake that was repaired in one place may also be where the schema allows anything. A model that
writes "30" for a number writes "0.1" for an untyped value, too, and one that forgets a quote may write userId for an optional user_id. Such
doubtful repairs are refused (is_doubtful). preferred_form handles two things that a schema allows and its tool does not expect: 10.0 for an
integer (H073), and an object as a string where both are allowed (H027).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from itertools import islice

from msgspec import Struct

from ...types import Json, JsonObject
from ...wire.exact_json import encode
from ..schemas import Checker, TooCostly
from ..schemas.keywords import Path, schemas_at, types_of
from .fixes import Plan, View, plans, whole_number
from .loose_json import NotLoose
from .members import Put, apply_edit, is_open, put_all, same_name
from .object_text import decode_loosely
from .quotes import Steps

_ROUNDS = 8
_MOST_ABOUT = 8  # members of a wrapper
_TRIES = 60
_STEPS = 12_000  # of reading texts inside the arguments
_WORK = 4_000_000  # characters that are validated in all tries together
_WRAPPERS = frozenset(
    {
        "arguments",
        "args",
        "input",
        "inputs",
        "parameters",
        "params",
        "kwargs",
        "toolinput",
        "toolargs",
        "toolcall",
        "functioncall",
        "actioninput",
        "properties",
    }
)
_FREE = frozenset({"id", "type", "callid", "toolcallid", "status", "index"})  # members that do not identify the tool
_ABOUT = _FREE | {"name", "tool", "toolname", "function", "functionname", "action", "recipientname"}


class RepairSearch:
    """For one tool and one size of arguments; the number of tries is bounded over all its uses."""

    def __init__(self, checker: Checker, tool_name: str, size: int) -> None:
        self._checker = checker
        self._tool_name = same_name(tool_name)
        self._size = size
        self._steps = Steps(_STEPS)
        self.tries = max(4, min(_TRIES, _WORK // size))

    def fix(self, arguments: JsonObject, repairs: tuple[str, ...] = ()) -> Fixed | None:
        """The one valid reading of these; they themselves if they are valid."""
        try:
            for may_wrap in (False, True):
                found = self._distinct(arguments, repairs, may_wrap)
                if found:
                    return found[0] if len(found) == 1 and not self._is_doubtful(found[0]) else None
            return self._inside_a_known_name(arguments, repairs)
        except (TooCostly, RecursionError):
            return None

    def _inside_a_known_name(self, arguments: JsonObject, repairs: tuple[str, ...]) -> Fixed | None:
        """A wrapper whose name the tool has as well, where nothing else helped: {"input": {"input": "x"}}."""
        for key in arguments if len(arguments) <= _MOST_ABOUT else ():
            types = [types_of(found) for found in schemas_at(self._checker.schema, (key,))]
            if not any(types) or "object" in set().union(*types):
                continue
            inner = _object(arguments[key]) if self._is_wrapper(key, arguments) else None
            others = all(self._is_about(other, arguments[other]) for other in arguments if other != key)
            inner = self.unwrapped(inner) or inner if inner is not None else None
            if inner is not None and others and self._is_known(inner) and self._checker.fits(inner, self._size):
                return Fixed(inner, (*repairs, "wrapped"))
        return None

    def _is_doubtful(self, fixed: Fixed) -> bool:
        return self.unwrapped(fixed.arguments) is not None or is_doubtful(fixed, self._checker.schema)

    def _distinct(self, arguments: JsonObject, repairs: tuple[str, ...], may_wrap: bool) -> list[Fixed]:
        """At most two that differ."""
        found: dict[bytes, Fixed] = {}
        for start, more in self._starts(arguments):
            for fixed in islice(self._solved(start, (*repairs, *more), may_wrap, _ROUNDS), 4):
                found.setdefault(encode(fixed.arguments), fixed)
                if len(found) > 1:
                    return list(found.values())
        return list(found.values())

    def _starts(self, arguments: JsonObject) -> Iterator[tuple[JsonObject, tuple[str, ...]]]:
        """As it is, and without all of its wrappers: half unwrapped, it may be valid and still wrong."""
        inner = self.content(arguments)
        if inner is arguments or len(arguments) == 1 or not self._is_known(inner):  # else it names this very tool
            yield arguments, ()
        if inner is not arguments:
            yield inner, ("wrapped",)

    def content(self, arguments: JsonObject) -> JsonObject:
        """The arguments without all of their wrappers."""
        inner, deeper = arguments, self.unwrapped(arguments)
        while deeper is not None:
            inner, deeper = deeper, self.unwrapped(deeper)
        return inner

    def unwrapped(self, arguments: JsonObject) -> JsonObject | None:
        """What is inside, where all the rest is a wrapper: one that is usual, or one member that the tool does not know."""
        if len(arguments) > _MOST_ABOUT:
            return None
        known = self._checker.schema.get("properties", {})
        keys = [key for key in arguments if key not in known and self._is_wrapper(key, arguments)]
        others = [key for key in arguments if key not in keys]
        if not keys and len(arguments) == 1:
            key, value = next(iter(arguments.items()))
            inner = _object(value) if key not in known else None
            return inner if inner is not None and self._is_known(inner) else None
        if len(keys) != 1 or not all(self._is_about(key, arguments[key]) for key in others):
            return None
        inner = _object(arguments[keys[0]])
        return None if inner is not None and same_name(keys[0]) == "properties" and _is_schema(inner) else inner

    def _is_known(self, arguments: JsonObject) -> bool:
        """Whether the schema has every one of its members."""
        return bool(arguments) and arguments.keys() <= self._checker.schema.get("properties", {}).keys()

    def _is_wrapper(self, key: str, arguments: JsonObject) -> bool:
        name = same_name(key)
        if name == "function":
            return _object(arguments[key]) is not None
        return name in _WRAPPERS or name == self._tool_name

    def _is_about(self, key: str, value: Json) -> bool:
        """A member that identifies the call, with the name of this tool."""
        name = same_name(key)
        if name not in _ABOUT or not isinstance(value, str | int):
            return False
        return name in _FREE or same_name(str(value).removeprefix("functions.")) == self._tool_name

    def _solved(self, arguments: Json, repairs: tuple[str, ...], may_wrap: bool, rounds: int) -> Iterator[Fixed]:
        self.tries -= 1
        if self.tries < 0 or not isinstance(arguments, dict):
            return
        if self._checker.fits(arguments, self._size):
            yield Fixed(arguments, tuple(dict.fromkeys(repairs)))
            return
        if not rounds:
            return
        faults = self._checker.faults(arguments, self._size)
        places = plans(faults, View(arguments, self._checker.schema, may_wrap, self._steps))
        for plan in _choices(places):
            better = arguments
            for edit in plan:
                better = apply_edit(better, edit)
            if better is not arguments:
                yield from self._solved(better, (*repairs, *(edit.repair for edit in plan)), may_wrap, rounds - 1)


def _choices(places: list[list[Plan]]) -> Iterator[Plan]:
    """All places with one way at once; the first that has several, each in turn."""
    if not places:
        return
    sure = tuple(edit for ways in places if len(ways) == 1 for edit in ways[0])
    several = next((ways for ways in places if len(ways) > 1), None)
    if several is None:
        yield sure
    else:
        yield from ((*sure, *plan) for plan in several)


def _object(value: Json) -> JsonObject | None:
    if isinstance(value, str):
        try:
            value = decode_loosely(value)
        except NotLoose:
            return None
    return value if isinstance(value, dict) else None


def _is_schema(inner: JsonObject) -> bool:
    """Whether the model repeated the tool's schema, perhaps with values in it."""
    return any(isinstance(value, dict) and "type" in value for value in inner.values())


_MOST = 2000
_LITERAL = re.compile(
    r"\s*(?:true|false|null|none|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)\s*|\s*[\[{].*", re.IGNORECASE | re.DOTALL
)


_BRACKETS = frozenset({"syntax.bracket", "syntax.closers"})
_SURROUNDINGS = frozenset({"junk", "unlisted", "wrapped"})  # what was found inside may not be the arguments at all
_UNQUOTED = frozenset({"syntax.bare", "text"})  # texts came without their quotes
_STRUCTURE = _BRACKETS | {"syntax.closed", "syntax.braces", "syntax.no_comma", "syntax.bare"}


class Fixed(Struct, frozen=True):
    arguments: JsonObject
    repairs: tuple[str, ...]


def is_doubtful(fixed: Fixed, schema: JsonObject) -> bool:
    repairs = set(fixed.repairs)
    if "listed" in repairs and not repairs.isdisjoint(_BRACKETS):  # an opening bracket was lost, at an unknown place
        return True
    slips = repairs & {"typed", "encoded", "null", *_UNQUOTED}
    if "null" in slips and not slips.isdisjoint(_UNQUOTED):  # a null among texts without quotes may be a text
        return True
    is_bent = not repairs.isdisjoint(_STRUCTURE | _SURROUNDINGS)
    for path, value in _values(fixed.arguments):
        if isinstance(value, dict):
            if _has_doubtful_keys(value, schemas_at(schema, path), is_bent):
                return True
        elif slips and _could_be_a_slip(value, slips) and _takes_anything(schemas_at(schema, path)):
            return True
    return False


def _has_doubtful_keys(value: JsonObject, schemas: list[JsonObject], is_bent: bool) -> bool:
    """Where brackets or wrappers were repaired, a key that the schema does not have may belong to another object."""
    known = {name for schema in schemas for name in schema.get("properties", ())}
    if is_bent and known and not value.keys() <= known and not any(map(is_open, schemas)):
        return True
    return _has_other_spelling(value, known)


def _has_other_spelling(value: JsonObject, known: set[str]) -> bool:
    """A key that the schema allows without knowing it, and that is one of its own names but for the spelling."""
    others = [key for key in value if key not in known]
    return bool(others and known) and not {same_name(name) for name in known}.isdisjoint(map(same_name, others))


def _could_be_a_slip(value: Json, slips: set[str]) -> bool:
    if not isinstance(value, str):
        return not slips.isdisjoint(_UNQUOTED) or (value is None and "null" in slips)
    return not slips <= {"null", *_UNQUOTED} and _LITERAL.fullmatch(value) is not None


def _takes_anything(schemas: list[JsonObject]) -> bool:
    """No schema limits the type there, or one allows a string and another type."""
    types = [names for schema in schemas if (names := types_of(schema))]
    is_limited = any("enum" in schema or "const" in schema for schema in schemas)
    return not is_limited and (not types or len(set().union(*types)) > 1)


def _values(value: Json) -> Iterator[tuple[Path, Json]]:
    """Everything but lists."""
    waiting: list[tuple[Path, Json]] = [((), value)]
    for _ in range(_MOST):
        if not waiting:
            return
        path, item = waiting.pop()
        if isinstance(item, dict):
            waiting += [((*path, key), inner) for key, inner in item.items()]
            yield path, item
        elif isinstance(item, list):
            waiting += [((*path, place), inner) for place, inner in enumerate(item[:_MOST])]
        else:
            yield path, item


_READ_STEPS = 8_000
_MOST_LEAVES = 10_000  # values that are visited


def preferred_form(arguments: JsonObject, raw: str, checker: Checker) -> Fixed | None:
    """The arguments in the form that the tool expects; None where they have it."""
    edits = list(_edits(arguments, checker))
    if not edits:
        return None
    better = put_all(arguments, [(edit.path, edit.value) for edit in edits])
    if not checker.fits(better, len(raw)):
        return None
    return Fixed(better, tuple(dict.fromkeys(edit.repair for edit in edits)))


def _edits(arguments: JsonObject, checker: Checker) -> Iterator[Put]:
    steps = Steps(_READ_STEPS)
    for path, value in _leaves(arguments):
        if isinstance(value, Decimal):
            whole = whole_number(value)
            if whole is not None and _is_integer(checker.schema, path):
                yield Put(path, whole, "whole_number")
        elif value.startswith(("{", "[")) and checker.has_text_unions:
            held = _held(value, steps)
            if held is not None and _is_declared(held, schemas_at(checker.schema, path)):
                yield Put(path, held, "encoded")


def _leaves(arguments: JsonObject) -> Iterator[tuple[Path, Json]]:
    """Texts and decimals."""
    waiting: list[tuple[Path, Json]] = [((), arguments)]
    for _ in range(_MOST_LEAVES):
        if not waiting:
            return
        path, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [((*path, key), item) for key, item in value.items()]
        elif isinstance(value, list):
            waiting += [((*path, place), item) for place, item in enumerate(value[:_MOST_LEAVES])]
        elif isinstance(value, str | Decimal):
            yield path, value


def _is_integer(schema: JsonObject, path: Path) -> bool:
    types = [types_of(found) for found in schemas_at(schema, path) if "type" in found]
    return any("integer" in names for names in types) and not any("number" in names for names in types)


def _held(text: str, steps: Steps) -> Json:
    try:
        return decode_loosely(text, steps)
    except NotLoose:
        return None


def _is_declared(value: Json, schemas: list[JsonObject]) -> bool:
    """Whether a member of the union describes just this, not merely any object or list."""
    if not any("string" in types_of(schema) for schema in schemas):
        return False
    if isinstance(value, dict):
        return bool(value) and any(set(value) <= set(schema.get("properties", ())) for schema in schemas)
    inner = [schema["items"] for schema in schemas if isinstance(schema.get("items"), dict)]
    return isinstance(value, list) and bool(value) and any(_describes(schema, value) for schema in inner)


def _describes(schema: JsonObject, items: list[Json]) -> bool:
    names = set(schema.get("properties", ()))
    return all(isinstance(item, dict) and item and set(item) <= names for item in items)
