"""Possible fixes for one fault that the validator found: the valid values that the model may have meant there.

A fix touches only the place of the fault, so a valid value is never changed. One fault may have several fixes (the members of a union);
the caller must find that exactly one of them makes the whole valid.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import NamedTuple, TypeAlias

import jsonschema_rs

from ...types import Json, JsonObject
from ...wire.exact_json import BadJson, decode
from ..schemas import Fault
from ..schemas.keywords import Path, declared
from .loose_json import NotLoose
from .members import Edit, Put, Remove, Rename, find, same_name
from .object_text import decode_loosely
from .quotes import Steps

Plan: TypeAlias = tuple[Edit, ...]

_Kind = jsonschema_rs.ValidationErrorKind
_SEVERAL = re.compile(r"[,;|\n]")
_NOTHINGS = ("", "null", "None")
_BOOLEANS = {"true": True, "false": False, "yes": True, "no": False, "on": True, "off": False, "1": True, "0": False}
_MOST_DIGITS = 40
_MOST_KEYS = 100  # of an object whose names are compared
_DEEPEST = 4  # unions inside unions


class View(NamedTuple):
    """The input of a fix. may_wrap: a single value may become a list of one. steps: the budget for reading texts."""

    arguments: Json
    schema: JsonObject
    may_wrap: bool
    steps: Steps | None = None


def plans(faults: list[Fault], view: View) -> list[list[Plan]]:
    """For each place at fault that can be helped: the ways to do it."""
    found: dict[Path, list[Plan]] = {}
    for fault in sorted(faults, key=lambda fault: not isinstance(fault.kind, _Kind.Type)):
        path = tuple(fault.instance_path)
        if path not in found:
            found[path] = _ways(fault, view, 0)
        elif isinstance(fault.kind, _Kind.Required | _Kind.AdditionalProperties):
            ways = _ways(fault, view, 0)
            found[path] = _joined(found[path], ways) if found[path] and ways else found[path] or ways
    return [ways for ways in found.values() if ways]


def _joined(first: list[Plan], second: list[Plan]) -> list[Plan]:
    return [_once((*one, *other)) for one in first for other in second][:8]


def _once(edits: Iterable[Edit]) -> Plan:
    """Two faults of one place often ask for the same."""
    found: dict[tuple[type, Path], Edit] = {}
    for edit in edits:
        found.setdefault((type(edit), edit.path), edit)
    return tuple(found.values())


def _ways(fault: Fault, view: View, level: int) -> list[Plan]:
    path = tuple(fault.instance_path)
    kind = fault.kind
    try:
        value = find(view.arguments, path)
    except (KeyError, IndexError, TypeError):
        return []
    if isinstance(kind, _Kind.Type):
        return [(edit,) for edit in _retyped(path, value, kind.types, view)]
    if isinstance(kind, _Kind.Required):
        return _required(path, value, kind.property, view)
    if isinstance(kind, _Kind.AdditionalProperties | _Kind.UnevaluatedProperties):
        return _unexpected(path, value, kind.unexpected, view)
    if isinstance(kind, _Kind.Enum):
        return [(edit,) for edit in _spelled(path, value, kind.options)]
    if isinstance(kind, _Kind.Constant):
        return [(edit,) for edit in _spelled(path, value, [kind.expected_value])]
    if isinstance(kind, _Kind.AnyOf | _Kind.OneOfNotValid) and level < _DEEPEST:
        return [plan for branch in kind.context for plan in _branch(branch, view, level + 1)]
    return []


def _branch(faults: list[Fault], view: View, level: int) -> list[Plan]:
    """The edits that one member of a union needs; none if one of its faults has no fix."""
    edits: list[Edit] = []
    typed = {tuple(fault.instance_path) for fault in faults if isinstance(fault.kind, _Kind.Type)}
    for fault in faults:
        if tuple(fault.instance_path) in typed and not isinstance(fault.kind, _Kind.Type):
            continue
        ways = _ways(fault, view, level)
        if not ways:
            return []
        edits += ways[0]
    return [_once(edits)]


def _retyped(path: Path, value: Json, types: list[str], view: View) -> list[Edit]:
    if _is_nothing(value, types):
        return [Remove(path, "null")] if path and isinstance(path[-1], str) else []
    found: list[Edit] = [Put(path, item, repair) for item, repair in _other_readings(value, types, view.steps)]
    is_member = bool(path) and isinstance(path[-1], str)  # inside a list it is unknown which items were one value
    if not found and view.may_wrap and "array" in types and is_member and _is_single(value):
        found = [Put(path, [value], "listed")]
    return found


def _is_nothing(value: Json, types: list[str]) -> bool:
    """Null, or a word for it where that is not one. For a list such a word may be its only item as well."""
    if isinstance(value, str) and value.strip() in _NOTHINGS:
        return "null" not in types and "array" not in types
    return value is None


def _other_readings(value: Json, types: list[str], steps: Steps | None) -> list[tuple[Json, str]]:
    if isinstance(value, str):
        return _from_text(value, types, steps)
    if isinstance(value, list):
        return [(value[0], "unlisted")] if len(value) == 1 and "array" not in types else []
    if "string" in types:
        return [(text, "text") for text in _as_texts(value)]
    if "boolean" in types and type(value) is int and value in (0, 1):
        return [(value == 1, "typed")]
    if "integer" in types and isinstance(value, Decimal) and (whole := whole_number(value)) is not None:
        return [(whole, "whole_number")]
    return []


def whole_number(value: Decimal) -> int | None:
    """10 for 10.0; None where it has a fraction, or more digits than a number should."""
    if value.adjusted() > _MOST_DIGITS or value != value.to_integral_value():
        return None
    return int(value)


def _from_text(text: str, types: list[str], steps: Steps | None) -> list[tuple[Json, str]]:
    word = text.strip()
    if "array" in types or "object" in types:
        try:
            value = decode_loosely(text, steps)
        except NotLoose:
            value = None
        if (isinstance(value, list) and "array" in types) or (isinstance(value, dict) and "object" in types):
            return [(value, "encoded")]
    if "boolean" in types and word.lower() in _BOOLEANS:
        return [(_BOOLEANS[word.lower()], "typed")]
    if "null" in types and word in ("null", "None"):
        return [(None, "typed")]
    number = _number(word) if "number" in types or "integer" in types else None
    if isinstance(number, Decimal) and "number" not in types:
        number = whole_number(number)
    return [] if number is None else [(number, "typed")]


def _number(word: str) -> int | Decimal | None:
    if not word or word[0] not in "+-0123456789" or len(word) > 400:
        return None
    try:
        value = decode(word.removeprefix("+"))
    except BadJson:
        return None
    return value if isinstance(value, int | Decimal) else None


def _as_texts(value: Json) -> list[str]:
    """What has lost its quotes: how a literal was spelled, or a number with an exponent written, is not known any more."""
    if isinstance(value, bool):
        return [str(value).lower(), str(value)]
    text = str(value) if isinstance(value, Decimal) or (isinstance(value, int) and abs(value) < 10**400) else ""
    return [text] if text and "E" not in text else []


def _is_single(value: Json) -> bool:
    """A text with commas may be several, and one with a bracket or quote is a list that could not be read."""
    if isinstance(value, list):
        return False
    if isinstance(value, str) and value.strip() in _NOTHINGS:
        return False
    return not isinstance(value, str) or not (_SEVERAL.search(value) or value.lstrip().startswith(("[", "{", "(", '"')))


def _required(path: Path, value: Json, name: str, view: View) -> list[Plan]:
    """The key that was meant, and with it every other key of this object that is a known name in other spelling."""
    if not isinstance(value, dict) or len(value) > _MOST_KEYS:
        return []
    known = declared(view.schema, path)
    if len(known) > _MOST_KEYS:
        return []
    names = _by_spelling(name for name in known if name not in value)
    keys = _by_spelling(key for key in value if key not in known)
    meant = [(key, names.get(spelling)) for spelling, key in keys.items()]
    if same_name(name) not in keys or names.get(same_name(name)) != name:
        return []
    edits = [Rename((*path, key), other, "renamed") for key, other in meant if key is not None and other is not None]
    return [tuple(edits)] if len(edits) == len(keys) else []


def _by_spelling(names: Iterable[str]) -> dict[str, str | None]:
    """None where two of them differ in spelling only."""
    found: dict[str, str | None] = {}
    for name in names:
        spelling = same_name(name)
        found[spelling] = None if spelling in found else name
    return found


def _unexpected(path: Path, value: Json, keys: list[str], view: View) -> list[Plan]:
    """Every one of them is a known name in other spelling, or nothing is done."""
    if not isinstance(value, dict) or len(keys) > _MOST_KEYS:
        return []
    known = [name for name in declared(view.schema, path) if name not in value]
    edits: list[Edit] = []
    for key in keys:
        names = [name for name in known if same_name(name) == same_name(key)]
        if len(names) != 1 or any(edit.name == names[0] for edit in edits if isinstance(edit, Rename)):
            return []
        edits.append(Rename((*path, key), names[0], "renamed"))
    return [tuple(edits)]


def _spelled(path: Path, value: Json, options: list[Json]) -> list[Edit]:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, str) or len(options) > 1000:
        return []
    word = value.strip()
    found: list[Json] = [
        item for item in options if isinstance(item, str) and item.strip().casefold() == word.casefold()
    ]
    found += [item for item in options if isinstance(item, int) and not isinstance(item, bool) and str(item) == word]
    return [Put(path, found[0], "spelled")] if len(found) == 1 else []
