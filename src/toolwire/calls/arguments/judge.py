"""One call, one verdict: parse strictly, validate against the client's schema, repair if only one meaning is possible, validate again.

A valid call keeps the bytes that the model wrote. A repaired call has arguments that validate, always, and the names of the repairs.
Everything else is invalid, with what a model needs to know to correct it. A schema that cannot be checked makes no call invalid, and no
call is repaired by it.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from ...types import Json, JsonObject, Tool, ToolCall
from ...wire.exact_json import BadJson, decode, encode
from ..schemas import Checker, Schemas, TooCostly
from ..schemas.keywords import Path, schemas_at, types_of
from ..tools.freeform import FIELD
from .feedback import MOST, Invalid, Problem, evident, missing, problems
from .members import all_names, is_whole, repeated_members
from .object_text import FoundObject, SchemaFacts, find_object
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
        if is_valid and (repeated := repeated_members(call.raw, arguments)):
            return _without_repetition(arguments, repeated, may_repair)
        if is_valid and not (may_repair and _may_have_other_form(call.raw, checker)):
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
        self._search: RepairSearch | None = None
        self._found: FoundObject | None = None  # in text that is not JSON

    def verdict(self, is_valid: bool, may_repair: bool) -> Verdict:
        arguments = self._arguments
        if is_valid:
            better = preferred_form(arguments, self._raw, self._checker) if may_repair else None
            return Valid(args=arguments) if better is None else _repaired(better)
        fixed = self._fixed() if may_repair else None
        if fixed is None:
            return self._invalid()
        better = (
            preferred_form(fixed.arguments, self._raw, self._checker)
            if _may_have_other_form(self._raw, self._checker)
            else None
        )
        return _repaired(fixed if better is None else Fixed(better.arguments, (*fixed.repairs, *better.repairs)))

    def _fixed(self) -> Fixed | None:
        search = self._search = RepairSearch(self._checker, self._tool.name, self._size)
        if isinstance(self._arguments, dict):
            is_clear = all(repeated_members(self._raw, self._arguments).values())
            return search.fix(self._arguments) if is_clear else None
        if self._is_cut:
            return None
        found = self._found = find_object(self._raw, self._known(search))
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
        """The faults of the arguments or, for text that is not JSON, of the object that was found in it."""
        received = self._found.arguments if self._found is not None else self._arguments
        if received is None and not self._raw.strip():
            received = {}
        if not isinstance(received, dict):
            return _no_object(self._arguments, self._raw)
        first = [] if received is self._arguments else [_form_problem(self._arguments, self._raw)]
        inner = received if self._search is None else self._search.content(received)
        if inner is not received:
            first.append(Problem("", "found the arguments inside another object; expected their members directly."))
        faults = evident(self._checker.faults(inner, self._size))
        found = (*first, *problems(faults, inner))[:MOST]
        return Invalid(
            errors=found or (Problem("", "the arguments do not fit the schema of the tool."),),
            missing=missing(faults),
            received=inner,
        )


def _without_repetition(arguments: JsonObject, repeated: dict[str, bool], may_repair: bool) -> Verdict:
    """Members that occur twice in valid arguments. With different values it is unknown which one is meant."""
    if may_repair and all(repeated.values()):
        return _repaired(Fixed(arguments, ("twice",)))
    errors = [Problem(name, "found the member twice in one object; expected it once.") for name in repeated]
    return Invalid(errors=tuple(errors[:MOST]), received=arguments)


def _may_have_other_form(raw: str, checker: Checker) -> bool:
    """Whether the schema allows a form that the tool does not expect (preferred_form), and the arguments may have it."""
    return checker.has_text_unions or (checker.has_integers and ("." in raw or "e" in raw or "E" in raw))


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
    return Invalid(errors=(_form_problem(arguments, raw),), received=raw if arguments is None else arguments)


def _form_problem(arguments: Json, raw: str) -> Problem:
    if arguments is not None:
        return Problem("", "found JSON that is not an object; expected an object.")
    return Problem("", f"found no JSON: {_why(raw)}; expected one object.")


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
