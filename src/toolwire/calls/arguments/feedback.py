"""Error messages for models: what is wrong with a call, where, what was received and what to do. Their size is bounded."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from difflib import get_close_matches
from functools import lru_cache

import jsonschema_rs
from msgspec import Struct

from ...types import Json, JsonObject, Tool
from ...wire.exact_json import BadJson, decode, encode
from ..schemas import Fault
from ..schemas.examples import NoExample, example_of
from ..schemas.keywords import Path
from .members import find, same_name

MOST = 20
MAX_BYTES = 6000
_LONGEST = 240
_OPTIONS = 20
_MOST_NAMES = 60
_LARGEST_SCHEMA = 20_000  # bytes, also of an entry of the cache
_LARGEST_EXAMPLE = 1000
_EXAMPLE_STEPS = 400  # some ten milliseconds at most
_LONGEST_NAME = 100
_Kind = jsonschema_rs.ValidationErrorKind


class Problem(Struct, frozen=True):
    """path as a model would write it: edits[0].path, "" for the arguments as a whole."""

    path: str
    message: str


class Invalid(Struct, frozen=True, kw_only=True, tag="invalid"):
    """received: the arguments, parsed as far as possible."""

    errors: tuple[Problem, ...]
    missing: tuple[str, ...] = ()
    received: Json = None


def problems(faults: list[Fault], arguments: Json) -> tuple[Problem, ...]:
    found = [Problem(place(tuple(fault.instance_path)), _message(fault, arguments)) for fault in faults[: 2 * MOST]]
    return tuple(dict.fromkeys(found))[:MOST]


def evident(faults: list[Fault]) -> list[Fault]:
    """With the faults of the one form of a union that was meant instead of the union as a whole, where that is evident."""
    found: list[Fault] = []
    for fault in faults[: 2 * MOST]:
        form = _meant_form(fault)
        found += [fault] if form is None else evident(form)
    return found


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


def render_value(value: Json, longest: int = 80) -> str:
    """A value as JSON, bounded before it is written."""
    text = encode(prune(value, longest, 3)).decode("utf-8", "replace")
    return text if len(text) <= 2 * longest else f"{text[: 2 * longest]}..."


def prune(value: Json, longest: int, levels: int) -> Json:
    """The value with long texts, lists and objects shortened and deep ones flattened, each with a mark."""
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
        items = [prune(item, longest, levels - 1) for item in value[:kept]]
        return items if len(value) <= kept else [*items, f"... ({len(value)} items)"]
    members = {key[:longest]: prune(item, longest, levels - 1) for key, item in list(value.items())[:kept]}
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
        return f"found {_kind(value)}{render_value(value)}; expected {' or '.join(kind.types)}."
    if isinstance(kind, _Kind.Required):
        return f"{render_value(kind.property)} is missing; it is required{_other_spelling(kind.property, value)}."
    if isinstance(kind, _Kind.AdditionalProperties | _Kind.UnevaluatedProperties):
        return f"found {', '.join(map(render_value, kind.unexpected[:5]))}, which this object does not have."
    if isinstance(kind, _Kind.Enum):
        return f"found {render_value(value)}; expected one of {', '.join(map(render_value, kind.options[:_OPTIONS]))}."
    if isinstance(kind, _Kind.Constant):
        return f"found {render_value(value)}; expected {render_value(kind.expected_value)}."
    if isinstance(kind, _Kind.Pattern):
        return f"found {render_value(value)}; expected a text that matches {kind.pattern[:100]}."
    if isinstance(kind, _Kind.AnyOf | _Kind.OneOfNotValid):
        return f"found {render_value(value)}; {_branches(kind.context)}."
    if isinstance(kind, _Kind.OneOfMultipleValid):
        return f"found {render_value(value)}, which fits more than one of the forms allowed; expected just one."
    limit = getattr(kind, "limit", getattr(kind, "multiple_of", None))
    return f"found {render_value(value)}; expected {kind.name}{'' if limit is None else f' {limit}'}."


def _meant_form(fault: Fault) -> list[Fault] | None:
    """The faults of the only form whose type and constants fit; None where none or several do."""
    if not isinstance(fault.kind, _Kind.AnyOf | _Kind.OneOfNotValid):
        return None
    here = len(fault.instance_path)
    forms = [form for form in fault.kind.context if not any(_is_other_form(inner, here) for inner in form)]
    return forms[0] if len(forms) == 1 and forms[0] else None


def _is_other_form(fault: Fault, here: int) -> bool:
    """Whether the value has another type than this form, or its member has another constant."""
    depth = len(fault.instance_path) - here
    if isinstance(fault.kind, _Kind.Type):
        return depth == 0
    return depth <= 1 and isinstance(fault.kind, _Kind.Constant | _Kind.Enum)


def _other_spelling(name: str, value: Json) -> str:
    keys = value if isinstance(value, dict) and len(value) <= _MOST_NAMES else ()
    other = next((key for key in keys if same_name(key) == same_name(name)), None)
    return "" if other is None else f", and found only as {render_value(other)}"


def _branches(context: list[list[Fault]]) -> str:
    types = [fault.kind.types for branch in context for fault in branch[:1] if isinstance(fault.kind, _Kind.Type)]
    if len(types) == len(context):
        return "expected " + " or ".join(dict.fromkeys(name for names in types for name in names))
    inner = [fault for branch in context for fault in branch if not isinstance(fault.kind, _Kind.Type)]
    needs = dict.fromkeys(fault.kind.property for fault in inner if isinstance(fault.kind, _Kind.Required))
    return f"expected one of {len(context)} forms" + (f" (with {', '.join(map(render_value, needs))})" if needs else "")


def _kind(value: Json) -> str:
    names = {dict: "object ", list: "array ", str: "string ", bool: "boolean ", int: "integer ", type(None): ""}
    return names.get(type(value), "number ")


def tool_error(tool: Tool, verdict: Invalid) -> JsonObject:
    """For the result of the call, as JSON."""
    errors = [{"path": problem.path, "message": problem.message} for problem in verdict.errors]
    report: JsonObject = {
        "error": "invalid_arguments",
        "tool": tool.name[:_LONGEST_NAME],
        "validation_errors": errors,
        "missing": list(verdict.missing),
        "received": prune(verdict.received, 200, 4),
        "hint": _hint(tool, verdict),
    }
    if example := smallest_example(tool.schema):
        report["example"] = example
        report["hint"] += " The example shows only the form."
    return _bounded(report, verdict)


def smallest_example(schema: JsonObject | None) -> JsonObject | None:
    """The smallest arguments that are valid by the schema; None where they are large, empty or not found."""
    try:
        written = encode(schema or {})
    except (BadJson, TypeError, ValueError):
        return None
    return _smallest_example(written) if len(written) <= _LARGEST_SCHEMA else None


@lru_cache(256)
def _smallest_example(schema: bytes) -> JsonObject | None:
    try:
        found = example_of(decode(schema), steps=_EXAMPLE_STEPS)
    except NoExample:
        return None
    return found if isinstance(found, dict) and len(encode(found)) <= _LARGEST_EXAMPLE else None


def unknown_tool(name: str, tools: Iterable[Tool]) -> JsonObject:
    """The result for a call of a tool that was not offered (H126)."""
    names = [tool.name[:_LONGEST_NAME] for tool in tools if not tool.is_deferred]
    near = near_names(name, names)
    if near:
        hint = f"There is no such tool. Did you mean {' or '.join(near)}? Call it by exactly that name."
    elif names:
        hint = "There is no such tool. Call one of those that are listed, by exactly its name, or answer with text."
    else:
        hint = "There are no tools in this conversation. Answer with text."
    report: JsonObject = {"error": "unknown_tool", "tool": name[:_LONGEST_NAME], "valid_tools": names[:_MOST_NAMES]}
    if near:
        report["near"] = near
    if len(names) > _MOST_NAMES:
        report["more_tools"] = len(names) - _MOST_NAMES
    return {**report, "hint": hint}


def near_names(name: str, names: list[str]) -> list[str]:
    """At most three, the nearest first; spelling and prefixes differ more often than words."""
    plain: dict[str, str] = {}
    for known in names:
        plain.setdefault(same_name(known), known)
    wanted = same_name(name[:_LONGEST_NAME])
    if wanted in plain:
        return [plain[wanted]]
    ends = [known for key, known in plain.items() if len(key) > 3 and (wanted.endswith(key) or key.endswith(wanted))]
    close = [plain[key] for key in get_close_matches(wanted, list(plain)[:500], 3, 0.7)] if wanted else []
    return list(dict.fromkeys([*(ends if wanted else []), *close]))[:3]


def _hint(tool: Tool, verdict: Invalid) -> str:
    name = tool.name[:_LONGEST_NAME]
    if verdict.missing:
        listed = ", ".join(verdict.missing)[:300]
        others = ", and the other faults corrected" if len(verdict.errors) > len(verdict.missing) else ""
        return f"Call {name} again with a value for: {listed}{others}. The call was not made."
    if not isinstance(verdict.received, dict):
        return f"Call {name} again; its arguments must be one complete JSON object. The call was not made."
    return (
        f"Call {name} again with the arguments at fault corrected, and all others as they were. The call was not made."
    )


def _bounded(report: JsonObject, verdict: Invalid) -> JsonObject:
    """Less of what was received first, then fewer errors; error, tool and hint always stay."""
    for longest, levels, most in ((80, 3, 20), (40, 2, 10), (20, 1, 5), (0, 0, 3)):
        if len(encode(report)) <= MAX_BYTES:
            break
        report = {
            **report,
            "received": prune(verdict.received, longest, levels),
            "validation_errors": report["validation_errors"][:most],
            "missing": report["missing"][:most],
        }
    return report
