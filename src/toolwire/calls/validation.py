"""The calls of one answer, held against the tools that the model was offered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from ..errors import quote
from ..events import Finished
from ..types import JsonObject, Loss, Tool, ToolCall
from .arguments import Invalid, Problem, Repaired, Valid, judge, tool_error, unknown_tool
from .schemas import Schemas
from .tools.encoded_arguments import ArgumentDecoder
from .tools.names import ToolNames, is_legal

_MOST_CALLS = 100  # that are named; all are counted
_LONGEST = 100  # characters of an id or a name
_NAMELESS = "a name that no tool can have"
_UNKNOWN = ("unknown", "barred", "unasked")


class CallMade(Struct, frozen=True):
    """One call for the log. outcome: right, repaired, invalid, unknown (no such tool), barred (may not be called now), unasked (no
    tool was offered), cut (the answer ended in it), unchecked."""

    id: str
    name: str
    outcome: str


class LocalCall(Struct, frozen=True, kw_only=True):
    """A tool that the gateway ran itself because the back end's agent asked for it. confinement: how a command was confined."""

    name: str
    outcome: Literal["ok", "failed", "refused"]
    seconds: float
    confinement: str = ""


class CallTally(Struct, kw_only=True):
    """made counts every call of an answer that came to its end, also those that the client never saw.

    invalid: its arguments did not fit, before any repair. corrected: in its place a later round gave one that fits.
    """

    made: int = 0
    invalid: int = 0
    repaired: int = 0
    unknown: int = 0  # calls of tools that nobody offered
    cut: int = 0  # calls that the answer ended in
    corrections: int = 0  # times that the model was asked again
    corrected: int = 0
    refused: int = 0  # times that the back end took the request for it as wrong (400)
    exhausted: int = 0  # answers in which calls stayed wrong to the end of the corrections
    held_seconds: float = 0.0
    last_round: int = 0  # the index of the first part that came from the last time the model was asked
    repairs: Counter[str] = field(default_factory=Counter)  # by what was done
    calls: list[CallMade] = []

    def note(self, call: ToolCall, outcome: str) -> None:
        """For the log, where a name that is no name may be a word of the arguments."""
        if len(self.calls) < _MOST_CALLS:
            name = call.name[:_LONGEST] if outcome not in _UNKNOWN or is_legal(call.name) else _NAMELESS
            self.calls.append(CallMade(call.id[:_LONGEST], name, outcome))

    @property
    def unknown_names(self) -> tuple[str, ...]:
        """Tools that the model called and nobody offered, each once."""
        return tuple(dict.fromkeys(call.name for call in self.calls if call.outcome in _UNKNOWN))

    @property
    def accepted(self) -> int:
        """Calls that fitted as the model wrote them."""
        return self.made - self.invalid - self.unknown - self.cut


_SHOWN = 300
_MOST_REPAIRS = 100  # of one answer: who gets more of them wrong did not mean them
_MOST_LOSSES = 100
_UNREADABLE = "Write the whole block again, as one JSON object with name and arguments, and nothing else in it."


class UnknownCall(Struct, frozen=True, tag="unknown"):
    """The model called what nobody offered. is_barred: it was told of it, but may not call it now."""

    is_barred: bool = False


class CutCall(Struct, frozen=True, tag="cut"):
    """The answer ended in the middle of this call."""


Finding: TypeAlias = Valid | Repaired | Invalid | UnknownCall | CutCall


def cut_choices(finished: Finished) -> frozenset[int]:
    """The choices that ended before the model wanted to: what is missing there is never filled in."""
    return frozenset(choice.index for choice in finished.choices if choice.reason in ("length", "refused"))


class ToolOffer:
    """What the model may call, by the names that it was told; names is None where they are the client's own.

    is_all: nobody else, like a provider that remembers the conversation, has told the model of more tools. barred: tools that it
    was told of and may not call now.
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
        self.tools = [tool for tool in tools if tool.kind != "hosted"]
        self.is_all = is_all
        self._flat = names
        self._by_name = {tool.name: tool for tool in self.tools} if names is None else {}
        self._spelled: ToolNames | None = None

    def tool(self, name: str) -> Tool | None:
        """The tool meant; a prefix that the model put before a name, or another spelling of it, is understood where it is
        clear."""
        return self._by_name.get(name) or self._names().tool(name)

    def named(self, call: ToolCall) -> ToolCall:
        """The same call by the name of the tool that it means. Where names are flat they are restored later, by their map."""
        if self._flat is not None or call.kind != "function" or call.name in self._by_name:
            return call
        tool = self._names().tool(call.name)
        return call if tool is None else replace(call, name=tool.name, namespace=tool.namespace)

    def _names(self) -> ToolNames:
        """Made when a name is not one of those offered, and kept: a model that spells one name wrong does so each time."""
        if self._flat is not None:
            return self._flat
        if self._spelled is None:
            self._spelled = ToolNames(0)
            for tool in self._by_name.values():
                self._spelled.add(tool)
        return self._spelled


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
    """decoder: undoes what the back end's form of the schemas made the model write; None where that is nothing."""

    def __init__(
        self, offer: ToolOffer, schemas: Schemas, tally: CallTally, decoder: ArgumentDecoder | None = None
    ) -> None:
        self.offer = offer
        self.tally = tally
        self.notes: list[Loss] = []
        self._schemas = schemas
        self._decoder = decoder
        self._told = 0

    def decoded(self, call: ToolCall) -> ToolCall:
        """For calls that no Turn has decoded."""
        return call if self._decoder is None else self._decoder.call(call)

    def find(self, call: ToolCall, *, is_cut: bool, may_repair: bool) -> Finding:
        """Counted. is_cut: the answer ended early, so a call that cannot be read ended with it."""
        finding = self._found(call, is_cut=is_cut, may_repair=may_repair)
        self.tally.note(call, _outcome(finding))
        return finding

    def _found(self, call: ToolCall, *, is_cut: bool, may_repair: bool) -> Finding:
        tally = self.tally
        tally.made += 1
        if call.kind != "function":
            return Valid(args=None)
        tool = self.offer.tool(call.name)
        if span_of(call) and (tool is None or is_cut or call.raw.strip() in ("", "{}")):
            return self._unreadable(call, is_cut=is_cut)
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
        if isinstance(finding, Valid):
            return finding
        tally.invalid += 1
        if isinstance(finding, Repaired):
            tally.repaired += 1
            tally.repairs.update(finding.repairs)
        return finding

    def _unreadable(self, call: ToolCall, *, is_cut: bool) -> Finding:
        """A call that was written into the text, and of which not even the tool is known."""
        if is_cut:
            self.tally.cut += 1
            return CutCall()
        self.tally.invalid += 1
        return Invalid(errors=(Problem("", f"the block cannot be read: {why_of(call)}."),), received=call.raw)

    def feedback(self, call: ToolCall, finding: Invalid | UnknownCall) -> JsonObject:
        """What the model is told about a call that was not made."""
        tool = self.offer.tool(call.name)
        if isinstance(finding, Invalid) and span_of(call) and (tool is None or finding.received == call.raw):
            return {"error": "unreadable_call", "why": finding.errors[0].message, "hint": _UNREADABLE}
        if isinstance(finding, UnknownCall) or tool is None:
            return unknown_tool(call.name, self.offer.tools)
        return tool_error(replace(tool, name=call.name), finding)

    def flag(self, call: ToolCall, finding: Invalid | UnknownCall) -> list[Loss]:
        """What the client is told about a call that it gets as the model wrote it."""
        if isinstance(finding, UnknownCall) and finding.is_barred:
            return self.tell("tool_choice", call, "the model called a tool that may not be called now")
        if isinstance(finding, UnknownCall):
            return self.tell("call.unknown_tool", call, "the model called a tool that was not offered")
        return self.tell("call.invalid_arguments", call, self._why(call, finding))

    def tell(self, feature: str, call: ToolCall, why: str) -> list[Loss]:
        """One loss, or none where so many were told that one more says nothing."""
        self._told += 1
        if self._told > _MOST_LOSSES:
            return []
        if self._told == _MOST_LOSSES:
            return [Loss(feature, "answer", "so many calls are wrong that the rest is only counted")]
        return [Loss(feature, self.where(call), why)]

    def where(self, call: ToolCall) -> str:
        """By the name of its tool; what a model writes beside one may be a word of its arguments."""
        if is_legal(call.name) or self.offer.tool(call.name) is not None:
            return f"call {quote(call.name[:60])}"
        return "a call by a name that no tool can have"

    def _why(self, call: ToolCall, finding: Invalid) -> str:
        """No word of the arguments: only members that the client's own schema names."""
        tool = self.offer.tool(call.name)
        known = _members(None if tool is None else tool.schema)
        missing = [name for name in finding.missing if name in known]
        if missing:
            return f"missing: {', '.join(missing)}"[:_SHOWN]
        places = dict.fromkeys(_member(problem.path, known) for problem in finding.errors)
        return f"the arguments do not fit the schema at: {', '.join(places)}"[:_SHOWN]


def _outcome(finding: Finding) -> str:
    match finding:
        case Valid():
            return "right"
        case Repaired():
            return "repaired"
        case Invalid():
            return "invalid"
        case UnknownCall():
            return "barred" if finding.is_barred else "unknown"
        case CutCall():
            return "cut"


def call_text(call: ToolCall, why: str) -> str:
    """A call that cannot be handed on as one, as text; one that could not be read, as the model wrote it."""
    return span_of(call) or f"The model called {quote(call.name)}, {why}: {call.raw}"


def fault_text(finding: Invalid | UnknownCall) -> str:
    if isinstance(finding, UnknownCall):
        return "a tool that may not be called now" if finding.is_barred else "a tool that was not offered"
    first = finding.errors[0]
    place = f"{first.path}: " if first.path else ""
    return f"but the arguments do not fit ({place}{first.message.rstrip('.')[:_SHOWN]})"


def _members(schema: JsonObject | None) -> frozenset[str]:
    properties = (schema or {}).get("properties")
    return frozenset(properties) if isinstance(properties, dict) else frozenset()


def _member(path: str, known: frozenset[str]) -> str:
    """The member of the whole in which this place is: below it, names may be the model's own."""
    found = [name for name in known if path == name or path.startswith((f"{name}.", f"{name}["))]
    return max(found, key=len, default="the whole")


_KEY = "toolwire"  # no dialect has this name, so nobody writes it


def with_span(call: ToolCall, text: str, why: str) -> ToolCall:
    return replace(call, extra={**call.extra, _KEY: {"text": text, "why": why}})


def without_end(call: ToolCall) -> ToolCall:
    return replace(call, extra={**call.extra, _KEY: {"is_open": True}})


def span_of(call: ToolCall) -> str:
    """All that the model wrote for it, tags included; "" for any other call."""
    return str(call.extra.get(_KEY, {}).get("text", ""))


def why_of(call: ToolCall) -> str:
    return str(call.extra.get(_KEY, {}).get("why", ""))


def is_open(call: ToolCall) -> bool:
    """Whether more of it may have been to come."""
    return bool(call.extra.get(_KEY, {}).get("is_open", False))


def without_span(call: ToolCall) -> ToolCall:
    """The same call, now that it has been judged and is good."""
    if _KEY not in call.extra:
        return call
    return replace(call, extra={key: value for key, value in call.extra.items() if key != _KEY})
