"""Valid is not always meant: where a slip was mended in one place, the same slip may stand where the schema allows anything.

A model that writes "30" for a number writes "0.1" for what has no type as well, and there nobody can tell. One that forgets a
quote may also write userId for user_id, where that is optional and others are allowed. A call is not repaired by halves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from ...types import Json, JsonObject
from ..schemas.keywords import Path
from ..schemas.subschemas import schemas_at, types_of
from .property_names import same_name
from .unclosed import is_open

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
    if "listed" in repairs and not repairs.isdisjoint(_BRACKETS):  # an opening bracket was lost, and nobody knows where
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
    """Where brackets or what stood around was mended, a key that the schema does not have may be of another object."""
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
    """No schema there says what it must be, or one says that it may be a text and something else as well."""
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
