"""What is wrong with arguments, in words that help a model to mend them: what was found, what was expected, and where."""

from __future__ import annotations

from decimal import Decimal

import jsonschema_rs
from msgspec import Struct

from ...types import Json
from ...wire.exact_json import encode
from ..schemas import Fault
from ..schemas.keywords import Path
from .edits import find

MOST = 20
_LONGEST = 240
_Kind = jsonschema_rs.ValidationErrorKind
_OPTIONS = 20


class Problem(Struct, frozen=True):
    """path as a model would write it: edits[0].path, "" for the arguments as a whole."""

    path: str
    message: str


def problems(faults: list[Fault], arguments: Json) -> tuple[Problem, ...]:
    found = [Problem(place(tuple(fault.instance_path)), _message(fault, arguments)) for fault in faults[: 2 * MOST]]
    return tuple(dict.fromkeys(found))[:MOST]


def missing(faults: list[Fault]) -> tuple[str, ...]:
    """Required members that are not there."""
    names = [
        place((*fault.instance_path, fault.kind.property)) for fault in faults if isinstance(fault.kind, _Kind.Required)
    ]
    return tuple(dict.fromkeys(names))[:MOST]


def place(path: Path) -> str:
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text[:_LONGEST]


def shown(value: Json, longest: int = 80) -> str:
    """A value as JSON, bounded before it is written."""
    text = encode(pruned(value, longest, 3)).decode("utf-8", "replace")
    return text if len(text) <= 2 * longest else f"{text[: 2 * longest]}..."


def pruned(value: Json, longest: int, levels: int) -> Json:
    """The same with long texts cut, long lists and objects shortened, deep ones flattened; each says so."""
    if isinstance(value, str):
        return value if len(value) <= longest else f"{value[:longest]}... ({len(value)} characters)"
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return value if _is_short(value) else "a very long number"
    if not isinstance(value, dict | list):
        return value
    if levels == 0:
        return f"... ({len(value)} {'members' if isinstance(value, dict) else 'items'})" if value else value
    kept = 20
    if isinstance(value, list):
        items = [pruned(item, longest, levels - 1) for item in value[:kept]]
        return items if len(value) <= kept else [*items, f"... ({len(value)} items)"]
    members = {key[:longest]: pruned(item, longest, levels - 1) for key, item in list(value.items())[:kept]}
    return members if len(value) <= kept else {**members, "...": f"({len(value)} members)"}


def _is_short(value: int | Decimal) -> bool:
    return value.bit_length() < 400 if isinstance(value, int) else len(value.as_tuple().digits) < 100


def _message(fault: Fault, arguments: Json) -> str:
    return _sentence(fault, arguments)[:_LONGEST]


def _sentence(fault: Fault, arguments: Json) -> str:
    try:
        value = find(arguments, tuple(fault.instance_path))
    except (KeyError, IndexError, TypeError):
        return "it does not fit the schema."
    kind = fault.kind
    if isinstance(kind, _Kind.Type):
        return f"found {_kind(value)}{shown(value)}; expected {' or '.join(kind.types)}."
    if isinstance(kind, _Kind.Required):
        return f"{shown(kind.property)} is missing; it is required."
    if isinstance(kind, _Kind.AdditionalProperties | _Kind.UnevaluatedProperties):
        return f"found {', '.join(map(shown, kind.unexpected[:5]))}, which this object does not have."
    if isinstance(kind, _Kind.Enum):
        return f"found {shown(value)}; expected one of {', '.join(map(shown, kind.options[:_OPTIONS]))}."
    if isinstance(kind, _Kind.Constant):
        return f"found {shown(value)}; expected {shown(kind.expected_value)}."
    if isinstance(kind, _Kind.Pattern):
        return f"found {shown(value)}; expected a text that matches {kind.pattern[:100]}."
    if isinstance(kind, _Kind.AnyOf | _Kind.OneOfNotValid):
        return f"found {shown(value)}; {_branches(kind.context)}."
    if isinstance(kind, _Kind.OneOfMultipleValid):
        return f"found {shown(value)}, which fits more than one of the forms allowed; expected just one."
    limit = getattr(kind, "limit", getattr(kind, "multiple_of", None))
    return f"found {shown(value)}; expected {kind.name}{'' if limit is None else f' {limit}'}."


def _branches(context: list[list[Fault]]) -> str:
    types = [fault.kind.types for branch in context for fault in branch[:1] if isinstance(fault.kind, _Kind.Type)]
    if len(types) == len(context):
        return "expected " + " or ".join(dict.fromkeys(name for names in types for name in names))
    inner = [fault for branch in context for fault in branch if not isinstance(fault.kind, _Kind.Type)]
    needs = dict.fromkeys(fault.kind.property for fault in inner if isinstance(fault.kind, _Kind.Required))
    return f"expected one of {len(context)} forms" + (f" (with {', '.join(map(shown, needs))})" if needs else "")


def _kind(value: Json) -> str:
    names = {dict: "object ", list: "array ", str: "string ", bool: "boolean ", int: "integer ", type(None): ""}
    return names.get(type(value), "number ")
