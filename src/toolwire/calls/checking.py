"""The calls of one answer, held against the tools that the model was offered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ..errors import quote
from ..types import JsonObject, Loss, Tool, ToolCall
from ..wire.exact import encode
from .arguments import Invalid, Repaired, Valid, judge, tool_error, unknown_tool
from .names import Names
from .schemas import Schemas, without_added_nulls
from .tally import Tally

_SHOWN = 300


class Unknown(Struct, frozen=True, tag="unknown"):
    """The model called what nobody offered."""


class Cut(Struct, frozen=True, tag="cut"):
    """The answer ended in the middle of this call."""


Finding: TypeAlias = Valid | Repaired | Invalid | Unknown | Cut


class Offer:
    """What the model may call, by the names that it was told; names is None where they are the client's own."""

    def __init__(self, tools: Sequence[Tool], names: Names | None = None) -> None:
        self.tools = tools
        self._names = names
        self._by_name = {tool.name: tool for tool in tools if tool.kind != "hosted"} if names is None else {}

    def tool(self, name: str) -> Tool | None:
        """The tool meant; a prefix that the model put before a name, or another spelling of it, is understood where it is
        clear."""
        if self._names is not None:
            return self._names.tool(name)
        found = self._by_name.get(name)
        return found if found is not None else self._spelled().tool(name)

    def named(self, call: ToolCall) -> ToolCall:
        """The same call by the name of the tool that it means. Where names are flat they are restored later, by their map."""
        if self._names is not None or call.kind != "function" or call.name in self._by_name:
            return call
        tool = self._spelled().tool(call.name)
        return call if tool is None else replace(call, name=tool.name, namespace=tool.namespace)

    def _spelled(self) -> Names:
        names = Names(is_own=True)
        for tool in self._by_name.values():
            names.add(tool)
        return names


class Checking:
    """loosened: tools whose optional members the back end was told to be null instead of absent."""

    def __init__(self, offer: Offer, schemas: Schemas, tally: Tally, loosened: frozenset[str] = frozenset()) -> None:
        self.offer = offer
        self.tally = tally
        self.notes: list[Loss] = []
        self._schemas = schemas
        self._loosened = loosened

    def find(self, call: ToolCall, *, is_cut: bool, may_repair: bool) -> Finding:
        """Counted. is_cut: the answer ended early, so a call that cannot be read ended with it."""
        tally = self.tally
        tally.made += 1
        if call.kind != "function":
            return Valid(args=None)
        tool = self.offer.tool(call.name)
        if is_cut and call.args is None and (tool is None or tool.kind != "custom"):
            tally.cut += 1
            return Cut()
        if tool is None:
            tally.unknown += 1
            return Unknown()
        bare = self._bare(call, tool)
        finding = judge(bare, tool, self._schemas, is_cut=is_cut, may_repair=may_repair)
        if isinstance(finding, Valid):
            return finding if bare is call else Repaired(args=bare.args or {}, raw=bare.raw, repairs=())
        tally.invalid += 1
        if isinstance(finding, Repaired):
            tally.repaired += 1
            tally.repairs.update(finding.repairs)
        return finding

    def _bare(self, call: ToolCall, tool: Tool) -> ToolCall:
        """Without the nulls that the back end's form of the schema made the model write; they are no fault of the model."""
        if call.name not in self._loosened or call.args is None:
            return call
        checker = self._schemas.of(tool.schema).checker
        args = call.args if checker is None else without_added_nulls(call.args, checker.schema)
        return call if args is call.args else replace(call, raw=encode(args).decode(), args=args)

    def feedback(self, call: ToolCall, finding: Invalid | Unknown) -> JsonObject:
        """What the model is told about a call that was not made."""
        tool = self.offer.tool(call.name)
        if isinstance(finding, Unknown) or tool is None:
            return unknown_tool(call.name, self.offer.tools)
        return tool_error(replace(tool, name=call.name), finding)


def loss_of(call: ToolCall, finding: Invalid | Unknown) -> Loss:
    """What the client is told about a call that it gets as the model wrote it. No word of the arguments is in it."""
    where = f"call {quote(call.name[:60])}"
    if isinstance(finding, Unknown):
        return Loss("call.unknown_tool", where, "the model called a tool that was not offered")
    if finding.missing:
        return Loss("call.invalid_arguments", where, f"missing: {', '.join(finding.missing)}"[:_SHOWN])
    places = ", ".join(problem.path or "the whole" for problem in finding.errors)
    return Loss("call.invalid_arguments", where, f"the arguments do not fit the schema at: {places}"[:_SHOWN])


def words_of(call: ToolCall, why: str) -> str:
    """A call that cannot be handed on as one, as text."""
    return f"The model called {quote(call.name)}, {why}: {call.raw}"


def reason_of(finding: Invalid | Unknown) -> str:
    if isinstance(finding, Unknown):
        return "a tool that was not offered"
    first = finding.errors[0]
    return f"but the arguments do not fit ({first.path + ': ' if first.path else ''}{first.message.rstrip('.')})"[
        :_SHOWN
    ]
