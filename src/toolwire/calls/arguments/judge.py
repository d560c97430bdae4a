"""One call, one verdict: parse strictly, validate against the client's schema, repair if only one meaning is possible, validate again.

A valid call keeps the bytes that the model wrote. A repaired call has arguments that validate, always, and the names of the repairs.
Everything else is invalid, with what a model needs to know to correct it. A schema that cannot be checked makes no call invalid, and no
call is repaired by it. The second half of the module writes the error messages for models; their size is bounded, whatever came.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from difflib import get_close_matches
from typing import TypeAlias

import jsonschema_rs
from msgspec import Struct

from ...types import Json, JsonObject, Tool, ToolCall
from ...wire.exact_json import BadJson, decode, encode
from ..schemas import Checker, Fault, Schemas, TooCostly
from ..schemas.keywords import Path, schemas_at, types_of
from ..tools.freeform import FIELD
from .members import all_names, find, is_whole, same_name
from .object_text import SchemaFacts, find_object
from .repair_search import Fixed, RepairSearch, preferred_form


class Valid(Struct, frozen=True, kw_only=True, tag="valid"):
    """unchecked: why the schema was not applied; "" where it was."""

    args: JsonObject | None
    unchecked: str = ""


class Repaired(Struct, frozen=True, kw_only=True, tag="repaired"):
    """raw: the repaired arguments as JSON. repairs: stable labels for counters."""

    args: JsonObject
    raw: str
    repairs: tuple[str, ...]


class Invalid(Struct, frozen=True, kw_only=True, tag="invalid"):
    """received: the arguments, parsed as far as possible."""

    errors: tuple[Problem, ...]
    missing: tuple[str, ...] = ()
    received: Json = None


Verdict: TypeAlias = Valid | Repaired | Invalid


def judge(call: ToolCall, tool: Tool, schemas: Schemas, *, is_cut: bool = False, may_repair: bool = True) -> Verdict:
    """is_cut: the answer ended early (a length limit, a lost connection), so nothing missing is filled in."""
    if tool.kind in ("custom", "hosted") or call.kind == "custom":
        return _textless() if tool.kind == "custom" and _is_empty(call) else Valid(args=None)
    compiled = schemas.of(tool.schema)
    arguments = call.args if call.args is not None else _strict(call.raw)
    if (checker := compiled.checker) is None:
        return _unchecked(arguments, call.raw, compiled.reason)
    try:
        is_valid = isinstance(arguments, dict) and checker.fits(arguments, len(call.raw) + 2)
        if is_valid and not may_repair:
            return Valid(args=arguments)
        return _Case(call, tool, checker, arguments, is_cut).verdict(is_valid, may_repair)
    except TooCostly as reason:
        return _unchecked(arguments, call.raw, str(reason))


class _Case:
    def __init__(self, call: ToolCall, tool: Tool, checker: Checker, arguments: Json, is_cut: bool) -> None:
        self._raw = call.raw
        self._tool = tool
        self._checker = checker
        self._arguments = arguments
        self._is_cut = is_cut
        self._size = len(call.raw) + 2

    def verdict(self, is_valid: bool, may_repair: bool) -> Verdict:
        arguments = self._arguments
        if is_valid:
            better = preferred_form(arguments, self._raw, self._checker) if may_repair else None
            return Valid(args=arguments) if better is None else _repaired(better)
        fixed = self._fixed() if may_repair else None
        if fixed is None:
            return self._invalid()
        better = preferred_form(fixed.arguments, self._raw, self._checker)
        return _repaired(fixed if better is None else Fixed(better.arguments, (*fixed.repairs, *better.repairs)))

    def _fixed(self) -> Fixed | None:
        search = RepairSearch(self._checker, self._tool.name, self._size)
        if isinstance(self._arguments, dict):
            return search.fix(self._arguments)
        if self._is_cut:
            return None
        found = find_object(self._raw, self._known(search))
        return None if found is None else search.fix(found.arguments, found.repairs)

    def _known(self, search: RepairSearch) -> SchemaFacts:
        schema = self._checker.schema

        def may_close(value: JsonObject, unclosed: list[Path]) -> bool:
            is_wrapper = unclosed == [()] and search.unwrapped(value) is not None
            return is_wrapper or is_whole(value, unclosed, schema)

        def is_sure(path: Path) -> bool:
            types = [types_of(found) for found in schemas_at(schema, path)]
            return not path or (any(types) and set().union(*types) <= {"array", "object", "null"})

        return SchemaFacts(
            may_close=may_close,
            is_sure=is_sure,
            tool=self._tool.name,
            names=all_names(schema),
            takes_empty=self._checker.fits({}, 2),
        )

    def _invalid(self) -> Invalid:
        if not isinstance(self._arguments, dict):
            return _no_object(self._arguments, self._raw)
        faults = self._checker.faults(self._arguments, self._size)
        found = problems(faults, self._arguments)
        return Invalid(
            errors=found or (Problem("", "the arguments do not fit the schema of the tool."),),
            missing=missing(faults),
            received=self._arguments,
        )


def _is_empty(call: ToolCall) -> bool:
    """A freeform tool that was offered as a function, and called without its text."""
    return call.kind == "function" and (call.args == {} or call.raw.strip() in ("", "{}"))


def _textless() -> Invalid:
    return Invalid(errors=(Problem("", f'"{FIELD}" is missing.'),), missing=(FIELD,), received={})


def _repaired(fixed: Fixed) -> Repaired:
    raw = encode(fixed.arguments).decode("utf-8")
    return Repaired(args=fixed.arguments, raw=raw, repairs=fixed.repairs)


def _unchecked(arguments: Json, raw: str, reason: str) -> Verdict:
    return Valid(args=arguments, unchecked=reason) if isinstance(arguments, dict) else _no_object(arguments, raw)


def _no_object(arguments: Json, raw: str) -> Invalid:
    if arguments is not None:
        return Invalid(
            errors=(Problem("", "found JSON that is not an object; expected an object."),), received=arguments
        )
    return Invalid(errors=(Problem("", f"found no JSON: {_why(raw)}; expected one object."),), received=raw)


def _why(raw: str) -> str:
    if not raw.strip():
        return "it is empty"
    try:
        decode(raw)
    except BadJson as error:
        return str(error)[:100]
    return "it is null"


def _strict(raw: str) -> Json:
    try:
        return decode(raw)
    except BadJson:
        return None


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
        return f"{render_value(kind.property)} is missing; it is required."
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


MAX_BYTES = 6000
_MOST_NAMES = 60
_LONGEST_NAME = 100


def tool_error(tool: Tool, verdict: Invalid) -> JsonObject:
    """For the result of the call, as JSON."""
    errors = [{"path": problem.path, "message": problem.message} for problem in verdict.errors]
    told: JsonObject = {
        "error": "invalid_arguments",
        "tool": tool.name[:_LONGEST_NAME],
        "validation_errors": errors,
        "missing": list(verdict.missing),
        "received": prune(verdict.received, 200, 4),
        "hint": _hint(tool, verdict),
    }
    return _bounded(told, verdict)


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
    told: JsonObject = {"error": "unknown_tool", "tool": name[:_LONGEST_NAME], "valid_tools": names[:_MOST_NAMES]}
    if near:
        told["near"] = near
    if len(names) > _MOST_NAMES:
        told["more_tools"] = len(names) - _MOST_NAMES
    return {**told, "hint": hint}


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
        return f"Call {name} again with a value for: {listed}. The call was not made."
    if not isinstance(verdict.received, dict):
        return f"Call {name} again; its arguments must be one complete JSON object. The call was not made."
    return (
        f"Call {name} again with the arguments at fault corrected, and all others as they were. The call was not made."
    )


def _bounded(told: JsonObject, verdict: Invalid) -> JsonObject:
    """Less of what was received first, then fewer errors; error, tool and hint always stay."""
    for longest, levels, most in ((80, 3, 20), (40, 2, 10), (20, 1, 5), (0, 0, 3)):
        if len(encode(told)) <= MAX_BYTES:
            break
        told = {
            **told,
            "received": prune(verdict.received, longest, levels),
            "validation_errors": told["validation_errors"][:most],
            "missing": told["missing"][:most],
        }
    return told
