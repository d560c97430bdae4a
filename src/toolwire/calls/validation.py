"""Validates the calls of one answer against the tools that the model was offered, and counts the results.

Calls that were found in text (`written/`) carry what is known of their text in `extra`: see with_span and without_end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Literal, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from ..errors import quote
from ..events import Finished
from ..types import JsonObject, Loss, RecurringTools, Tool, ToolCall
from .arguments import Invalid, Problem, Repaired, Valid, judge, tool_error, unknown_tool
from .arguments.completion import completion
from .arguments.stream import ArgumentStream
from .schemas import Schemas
from .schemas.keywords import properties_of
from .tools.encoded_arguments import ArgumentDecoder
from .tools.names import ToolNames, is_legal

new_counter = partial(Counter.__new__, Counter)  # Counter() runs Python code, and every request has two
_MOST_LOGGED = 100  # calls that are listed by name; all are counted
_LONGEST = 100  # characters of an id or a name
_MOST_TEXTS = 20  # repaired calls of one answer whose arguments are recorded
_LONGEST_TEXT = 64 * 1024  # characters of recorded arguments
_MOST_MEMBERS = 20  # of a repaired call that are named
_ILLEGAL_NAME = "a name that no tool can have"
_UNKNOWN = ("unknown", "barred", "unasked")
_SHOWN = 300
_MOST_REPAIRS = 100  # in one answer; beyond that the repair is not worth its cost
_MOST_LOSSES = 100
_UNREADABLE = "Write the whole block again, as one JSON object with name and arguments, and nothing else in it."
_SPAN = "toolwire"  # the member of `extra`; no dialect has this name, so no encoder writes it


class CallMade(Struct, frozen=True):
    """One call for the log. outcome: right, repaired, invalid, unknown (no such tool), barred (may not be called now), unasked (no
    tool was offered), cut (the answer ended in it), unchecked."""

    id: str
    name: str
    outcome: str


class RepairedCall(Struct, frozen=True):
    """members: top-level members that have another value than the model wrote; empty if it wrote no JSON object."""

    id: str
    name: str
    members: tuple[str, ...]
    repairs: tuple[str, ...]


class RepairText(Struct, frozen=True, kw_only=True):
    """The arguments of a repaired call as the model wrote them, and as the client gets them."""

    id: str
    name: str
    before: str
    after: str
    repairs: tuple[str, ...]


class LocalCall(Struct, frozen=True, kw_only=True):
    """A tool that the gateway ran for the agent of a back end. confinement: how a command was confined."""

    name: str
    outcome: Literal["ok", "failed", "refused"]
    seconds: float
    confinement: str = ""


class CallTally(Struct, kw_only=True, omit_defaults=True):
    """made counts every call of a complete answer, also those that the client never got.

    invalid: the arguments did not fit, before any repair. corrected: a later round gave a valid call instead.
    """

    made: int = 0
    invalid: int = 0
    repaired: int = 0
    unknown: int = 0  # calls of tools that were not offered
    cut: int = 0  # calls in which the answer ended
    corrections: int = 0  # requests to the model to correct its calls
    corrected: int = 0
    refused: int = 0  # correction requests that the back end answered with 400
    exhausted: int = 0  # answers with invalid calls after the last correction
    held_seconds: float = 0.0
    last_round: int = 0  # index of the first part of the last round
    repairs: Counter[str] = field(default_factory=new_counter)  # by kind of repair
    calls: list[CallMade] = []
    repaired_calls: list[RepairedCall] = []
    texts: list[RepairText] | None = None  # only for a request that is recorded

    def note(self, call: ToolCall, outcome: str) -> None:
        """List the call for the log. An illegal name is left out, because it may hold text of the arguments."""
        if len(self.calls) < _MOST_LOGGED:
            name = call.name[:_LONGEST] if outcome not in _UNKNOWN or is_legal(call.name) else _ILLEGAL_NAME
            self.calls.append(CallMade(call.id[:_LONGEST], name, outcome))

    @property
    def unknown_names(self) -> tuple[str, ...]:
        """Tools that the model called and was not offered, each once."""
        return tuple(dict.fromkeys(call.name for call in self.calls if call.outcome in _UNKNOWN))

    @property
    def accepted(self) -> int:
        """Calls that were valid as the model wrote them."""
        return self.made - self.invalid - self.unknown - self.cut


class UnknownCall(Struct, frozen=True, tag="unknown"):
    """A call of a tool that was not offered. is_barred: the model knows the tool, but may not call it now."""

    is_barred: bool = False


class CutCall(Struct, frozen=True, tag="cut"):
    """The answer ended inside this call."""


Finding: TypeAlias = Valid | Repaired | Invalid | UnknownCall | CutCall
_OUTCOMES = {Valid: "right", Repaired: "repaired", Invalid: "invalid", UnknownCall: "unknown", CutCall: "cut"}


def cut_choices(finished: Finished) -> frozenset[int]:
    """The choices that ended early. What is missing there is never filled in."""
    cut: list[int] = []
    for choice in finished.choices:
        if choice.reason in ("length", "refused"):
            cut.append(choice.index)
    return frozenset(cut)


class ToolOffer:
    """The tools that the model may call, by the names it knows. names: maps flat names to tools; None where the names are the client's.

    is_all: the model knows no other tools, for example from a conversation that the provider stores. barred: names of tools that the
    model knows and may not call now.
    """

    def __init__(
        self,
        tools: Sequence[Tool],
        names: ToolNames | None = None,
        *,
        is_all: bool = True,
        barred: frozenset[str] = frozenset(),
    ) -> None:
        self.barred = barred
        self.tools, by_name = _callable(tools)
        self.is_all = is_all
        self._flat = names
        self._by_name = by_name if names is None else {}
        self._spellings: ToolNames | None = None

    def tool(self, name: str) -> Tool | None:
        """The tool of this name, also under an invented prefix or in another spelling where only one tool matches."""
        return self._by_name.get(name) or self._names().tool(name)

    def named(self, call: ToolCall) -> ToolCall:
        """The call under the exact name of its tool. Flat names are left to the map that restores them."""
        if self._flat is not None or call.kind != "function" or call.name in self._by_name:
            return call
        tool = self._names().tool(call.name)
        return call if tool is None else replace(call, name=tool.name, namespace=tool.namespace)

    def _names(self) -> ToolNames:
        """Built for the first misspelled name, and then reused: a model repeats its misspellings."""
        if self._flat is not None:
            return self._flat
        if self._spellings is None:
            self._spellings = ToolNames(0)
            for tool in self._by_name.values():
                self._spellings.add(tool)
        return self._spellings


def _callable(tools: Sequence[Tool]) -> tuple[list[Tool], dict[str, Tool]]:
    """Tools that a model can call, also by name; remembered with tools that recur."""
    if isinstance(tools, RecurringTools) and (known := tools.facts.get(_callable)) is not None:
        return known  # type: ignore[no-any-return] # stored below
    found = [tool for tool in tools if tool.kind != "hosted"]
    both = found, {tool.name: tool for tool in found}
    if isinstance(tools, RecurringTools):
        tools.remember(_callable, both)
    return both


class OfferedTools(Struct, frozen=True):
    """The tools that a text may call. is_instructed: a prompt describes them to the model."""

    offer: ToolOffer
    schemas: Schemas
    is_instructed: bool

    @property
    def tools(self) -> Sequence[Tool]:
        return self.offer.tools

    def tool(self, name: str) -> Tool | None:
        return self.offer.tool(name)

    def fits(self, name: str, raw: str) -> bool:
        tool = self.offer.tool(name)
        if tool is None:
            return False
        return isinstance(judge(ToolCall(id="", name=name, raw=raw), tool, self.schemas, may_repair=False), Valid)


class CallValidator:
    """decoder: undoes the encoding that an adapted schema asks for; None where there is none."""

    def __init__(
        self, offer: ToolOffer, schemas: Schemas, tally: CallTally, decoder: ArgumentDecoder | None = None
    ) -> None:
        self.offer = offer
        self.tally = tally
        self.notes: list[Loss] = []
        self._schemas = schemas
        self._decoder = decoder
        self._reported = 0

    def stream(self, call: ToolCall, index: int) -> ArgumentStream | None:
        """For a call that begins as this part of the answer; None if its arguments cannot be checked."""
        tool = self.offer.tool(call.name) if call.kind == "function" else None
        if tool is None or tool.kind in ("custom", "hosted"):
            return None
        checker = self._schemas.of(tool.schema).checker
        return None if checker is None else ArgumentStream(checker.shape, tool.name, index)

    def decoded(self, call: ToolCall) -> ToolCall:
        """For calls that no Turn has decoded."""
        return call if self._decoder is None else self._decoder.call(call)

    def find(self, call: ToolCall, *, is_cut: bool, may_repair: bool, sent: str = "") -> Finding:
        """Validate and count. is_cut: the answer ended early, so a call that cannot be parsed is incomplete. sent: the beginning of the
        arguments that the client already has; a repair keeps it."""
        finding = self._find(call, is_cut=is_cut, may_repair=may_repair, sent=sent)
        is_barred = isinstance(finding, UnknownCall) and finding.is_barred
        self.tally.note(call, "barred" if is_barred else _OUTCOMES[type(finding)])
        return finding

    def _find(self, call: ToolCall, *, is_cut: bool, may_repair: bool, sent: str) -> Finding:
        tally = self.tally
        tally.made += 1
        if call.kind != "function":
            return Valid(args=None)
        tool = self.offer.tool(call.name)
        if call.extra and span_of(call) and (tool is None or is_cut or call.raw.strip() in ("", "{}")):
            if is_cut:
                tally.cut += 1
                return CutCall()
            tally.invalid += 1
            return Invalid(errors=(Problem("", f"the block cannot be read: {why_of(call)}."),), received=call.raw)
        if is_cut and (is_open(call) or (call.args is None and (tool is None or tool.kind != "custom"))):
            tally.cut += 1
            return CutCall()
        if tool is None:
            if not self.offer.is_all:
                return Valid(args=None)
            tally.unknown += 1
            return UnknownCall(is_barred=call.name in self.offer.barred)
        may_repair = may_repair and tally.invalid < _MOST_REPAIRS
        finding = judge(call, tool, self._schemas, is_cut=is_cut, may_repair=may_repair)
        if sent and isinstance(finding, Repaired):
            rest = completion(sent, finding.args)
            if rest is None:
                finding = judge(call, tool, self._schemas, is_cut=is_cut, may_repair=False)
            else:
                finding = replace(finding, raw=sent + rest)
        if isinstance(finding, Valid):
            return finding
        tally.invalid += 1
        if isinstance(finding, Repaired):
            self._count_repair(call, tool, finding)
        return finding

    def _count_repair(self, call: ToolCall, tool: Tool, repaired: Repaired) -> None:
        tally = self.tally
        if tally.texts is not None and len(tally.texts) < _MOST_TEXTS:
            tally.texts.append(
                RepairText(
                    id=call.id[:_LONGEST],
                    name=tool.name[:_LONGEST],
                    before=call.raw[:_LONGEST_TEXT],
                    after=repaired.raw[:_LONGEST_TEXT],
                    repairs=repaired.repairs,
                )
            )
        tally.repaired += 1
        tally.repairs.update(repaired.repairs)
        if len(tally.repaired_calls) < _MOST_LOGGED:
            before, after = call.args or {}, repaired.args
            names = [
                name for name in properties_of(tool.schema or {}) if before and before.get(name) != after.get(name)
            ]
            members = tuple(names[:_MOST_MEMBERS])
            tally.repaired_calls.append(
                RepairedCall(call.id[:_LONGEST], tool.name[:_LONGEST], members, repaired.repairs)
            )

    def feedback(self, call: ToolCall, finding: Invalid | UnknownCall) -> JsonObject:
        """The result that the model gets for a call that was not made."""
        tool = self.offer.tool(call.name)
        if isinstance(finding, Invalid) and span_of(call) and (tool is None or finding.received == call.raw):
            return {"error": "unreadable_call", "why": finding.errors[0].message, "hint": _UNREADABLE}
        if isinstance(finding, UnknownCall) or tool is None:
            return unknown_tool(call.name, self.offer.tools)
        return tool_error(replace(tool, name=call.name), finding)

    def flag(self, call: ToolCall, finding: Invalid | UnknownCall) -> list[Loss]:
        """The loss for an invalid call that the client gets as the model wrote it."""
        if isinstance(finding, UnknownCall) and finding.is_barred:
            return self.report("tool_choice", call, "the model called a tool that may not be called now")
        if isinstance(finding, UnknownCall):
            return self.report("call.unknown_tool", call, "the model called a tool that was not offered")
        return self.report("call.invalid_arguments", call, self._why(call, finding))

    def report(self, feature: str, call: ToolCall, why: str) -> list[Loss]:
        """One loss; none beyond the limit for one answer."""
        self._reported += 1
        if self._reported > _MOST_LOSSES:
            return []
        if self._reported == _MOST_LOSSES:
            return [Loss(feature, "answer", "so many calls are wrong that the rest is only counted")]
        return [Loss(feature, self.where(call), why)]

    def where(self, call: ToolCall) -> str:
        """The name of the tool. An illegal name may hold text of the arguments."""
        if is_legal(call.name) or self.offer.tool(call.name) is not None:
            return f"call {quote(call.name[:60])}"
        return "a call by a name that no tool can have"

    def _why(self, call: ToolCall, finding: Invalid) -> str:
        """Without text of the arguments: it names only members of the client's own schema."""
        tool = self.offer.tool(call.name)
        properties = ((None if tool is None else tool.schema) or {}).get("properties")
        known = frozenset(properties) if isinstance(properties, dict) else frozenset[str]()
        missing = [name for name in finding.missing if name in known]
        if not isinstance(finding.received, dict):
            return "the arguments are not one JSON object"
        places = dict.fromkeys(
            _member(problem.path, known) for problem in finding.errors if problem.path or not missing
        )
        reasons = [f"missing: {', '.join(missing)}"] if missing else []
        reasons += [f"the arguments do not fit the schema at: {', '.join(places)}"] if places else []
        return "; ".join(reasons)[:_SHOWN]


def call_text(call: ToolCall, why: str) -> str:
    """A call that is not sent as one, as text; an unreadable one as the model wrote it."""
    return span_of(call) or f"The model called {quote(call.name)}, {why}: {call.raw}"


def fault_text(finding: Invalid | UnknownCall) -> str:
    """What is wrong with a call, to follow its name."""
    if isinstance(finding, UnknownCall):
        return "a tool that may not be called now" if finding.is_barred else "a tool that was not offered"
    faults = (f"{f'{fault.path}: ' if fault.path else ''}{fault.message.rstrip('.')}" for fault in finding.errors)
    return f"but the arguments do not fit ({'; '.join(faults)[:_SHOWN]})"


def _member(path: str, known: frozenset[str]) -> str:
    """The top-level member of this path; names below it may be the model's own."""
    found = [name for name in known if path == name or path.startswith((f"{name}.", f"{name}["))]
    return max(found, key=len, default="the whole")


def with_span(call: ToolCall, text: str, why: str) -> ToolCall:
    """A call that cannot be read, with its text as the model wrote it."""
    return replace(call, extra={**call.extra, _SPAN: {"text": text, "why": why}})


def without_end(call: ToolCall) -> ToolCall:
    """A call whose closing tag is missing: if the answer was cut, more may be missing."""
    return replace(call, extra={**call.extra, _SPAN: {"is_open": True}})


def span_of(call: ToolCall) -> str:
    """The text of an unreadable call, tags included; "" for any other call."""
    return str(call.extra.get(_SPAN, {}).get("text", ""))


def why_of(call: ToolCall) -> str:
    return str(call.extra.get(_SPAN, {}).get("why", ""))


def is_open(call: ToolCall) -> bool:
    """Whether the end of the call may be missing."""
    return bool(call.extra.get(_SPAN, {}).get("is_open", False))


def without_span(call: ToolCall) -> ToolCall:
    """The call after it was found valid."""
    if _SPAN not in call.extra:
        return call
    return replace(call, extra={key: value for key, value in call.extra.items() if key != _SPAN})
