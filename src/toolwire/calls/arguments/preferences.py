"""Two things that a schema allows and its tool still does not want: 10.0 where it says integer (H073), and an object written
as text where it takes an object or a text (H027)."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from ...types import Json, JsonObject
from ..schemas import Checker
from ..schemas.keywords import Path
from ..schemas.subschemas import schemas_at, types_of
from .ambiguity import Fixed
from .edits import Put, put_all
from .fixes import whole_number
from .loose_json import NotLoose
from .object_text import encoded
from .quotes import Steps

_STEPS = 8_000
_MOST = 10_000  # values that are looked at


def preferred(arguments: JsonObject, raw: str, checker: Checker) -> Fixed | None:
    """The same call as its tool would rather have it; None where that is as it stands."""
    if not (("." in raw or "e" in raw or "E" in raw) and checker.has_integers) and not checker.has_text_unions:
        return None
    edits = list(_edits(arguments, checker))
    if not edits:
        return None
    better = put_all(arguments, [(edit.path, edit.value) for edit in edits])
    if not checker.fits(better, len(raw)):
        return None
    return Fixed(better, tuple(dict.fromkeys(edit.repair for edit in edits)))


def _edits(arguments: JsonObject, checker: Checker) -> Iterator[Put]:
    steps = Steps(_STEPS)
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
    for _ in range(_MOST):
        if not waiting:
            return
        path, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [((*path, key), item) for key, item in value.items()]
        elif isinstance(value, list):
            waiting += [((*path, place), item) for place, item in enumerate(value[:_MOST])]
        elif isinstance(value, str | Decimal):
            yield path, value


def _is_integer(schema: JsonObject, path: Path) -> bool:
    types = [types_of(found) for found in schemas_at(schema, path) if "type" in found]
    return any("integer" in names for names in types) and not any("number" in names for names in types)


def _held(text: str, steps: Steps) -> Json:
    try:
        return encoded(text, steps)
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
