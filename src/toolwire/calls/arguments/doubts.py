"""Valid is not always meant: where a slip was mended in one place, the same slip may stand where the schema allows anything.

A model that writes "30" for a number writes "0.1" for what has no type as well, and there nobody can tell. One that forgets a
quote may also write userId for user_id, where that is optional and others are allowed. A call is not repaired by halves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from ...types import Json, JsonObject
from ..schemas.places import declared, schemas_at, types_of
from ..schemas.positions import Path

_MOST = 2000
_SEPARATORS = re.compile(r"[-_.\s]+")
_LITERAL = re.compile(
    r"\s*(?:true|false|null|none|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)\s*|\s*[\[{].*", re.IGNORECASE | re.DOTALL
)


class Fixed(Struct, frozen=True):
    arguments: JsonObject
    repairs: tuple[str, ...]


def is_doubtful(fixed: Fixed, schema: JsonObject) -> bool:
    slips = {"typed", "encoded", "null"}.intersection(fixed.repairs)
    for path, value in _values(fixed.arguments):
        if isinstance(value, dict):
            if _has_other_spelling(value, declared(schema, path)):
                return True
        elif slips and _could_be_a_slip(value, slips) and _takes_anything(schemas_at(schema, path)):
            return True
    return False


def same_name(name: str) -> str:
    """What is left of a name without its case and separators."""
    return _SEPARATORS.sub("", name).casefold()


def _has_other_spelling(value: JsonObject, known: set[str]) -> bool:
    """A key that the schema allows without knowing it, and that is one of its own names but for the spelling."""
    others = [key for key in value if key not in known]
    return bool(others and known) and not {same_name(name) for name in known}.isdisjoint(map(same_name, others))


def _could_be_a_slip(value: Json, slips: set[str]) -> bool:
    if value is None:
        return "null" in slips
    return isinstance(value, str) and slips != {"null"} and _LITERAL.fullmatch(value) is not None


def _takes_anything(schemas: list[JsonObject]) -> bool:
    """No schema there says what it must be, or one says that it may be a text and something else as well."""
    types = [names for schema in schemas if (names := types_of(schema))]
    is_limited = any("enum" in schema or "const" in schema for schema in schemas)
    return not is_limited and (not types or len(set().union(*types)) > 1)


def _values(value: Json) -> Iterator[tuple[Path, Json]]:
    """Objects, texts and nulls."""
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
        elif item is None or isinstance(item, str):
            yield path, item
