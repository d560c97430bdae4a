"""Tools of every kind on back ends that know only functions: lowered before the request, restored on the calls that come back.

A tool in a namespace gets a flat name, a freeform tool becomes a function with one text, a typed tool a function by its schema; hosted
tools cannot be run here and are left out. Past calls are rewritten alike, so that the model sees one story.
"""

from __future__ import annotations

import re

from msgspec import Struct
from msgspec.structs import replace

from ..errors import UpstreamError, quote
from ..events import Event, Failed, PartDelta, PartEnded, PartStarted
from ..types import Loss, Message, Part, Request, Tool, ToolCall, ToolChoice, ToolResult
from ..wire.exact import object_of
from . import freeform

_SEPARATORS = re.compile(r"[^A-Za-z0-9]+")
_INVENTED = re.compile(r"^(?:functions|function|tools|tool|default_api)[.:/_]+")  # prefixes models put before a name


class Lowered(Struct, frozen=True):
    """names is None where nothing had to change."""

    request: Request
    names: Names | None = None
    losses: tuple[Loss, ...] = ()


class Names:
    """Which tool of the client a flat name means; a model that drops or changes a prefix is understood where it is clear."""

    def __init__(self) -> None:
        self._by_label: dict[str, Tool] = {}
        self._labels: dict[tuple[str, str], str] = {}
        self._loose: dict[str, Tool | None] | None = None

    def add(self, tool: Tool) -> str:
        """The flat name of this tool, one that no other has."""
        wanted = label = tool.label or tool.name
        number = 1
        while label in self._by_label:
            number += 1
            label = f"{wanted}_{number}"
        self._by_label[label] = tool
        self._labels.setdefault((tool.namespace, tool.name), label)
        self._loose = None
        return label

    def label(self, namespace: str, name: str) -> str:
        """The flat name of a tool that is offered, or of one that no longer is."""
        known = self._labels.get((namespace, name))
        return known or (f"{namespace}__{name}" if namespace else name)

    def tool(self, label: str) -> Tool | None:
        found = self._by_label.get(label)
        if found is not None:
            return found
        if self._loose is None:
            self._loose = self._spellings()
        bare = _INVENTED.sub("", label)
        return self._by_label.get(bare) or self._loose.get(_SEPARATORS.sub("_", bare))

    def _spellings(self) -> dict[str, Tool | None]:
        """Other ways to write a name; None where two tools share one."""
        found: dict[str, Tool | None] = {}
        for label, tool in self._by_label.items():
            for spelling in {label, tool.name, f"{tool.namespace}_{tool.name}"}:
                key = _SEPARATORS.sub("_", spelling)
                found[key] = None if key in found and found[key] is not tool else tool
        return found


def lower(request: Request, native: frozenset[str] = frozenset()) -> Lowered:
    """For a back end that knows functions and the native kinds; a request without anything else stays the same object."""
    if all(_fits(tool, native) for tool in request.tools) and not _has_special(request.messages, native):
        return Lowered(request)
    names, losses = Names(), list[Loss]()
    tools = tuple(_offered(request.tools, native, names, losses))
    labels = {tool.name for tool in tools}
    choice = _choice(request.tool_choice, names, labels, native, losses) if request.tool_choice else None
    messages = tuple(
        _message(message, names, native) for message in request.messages if message.parts or _speaks(message)
    )
    lowered = replace(request, tools=tools, tool_choice=choice, messages=messages, is_lowered=True)
    return Lowered(lowered, names, tuple(losses))


class Restorer:
    """Calls as the client declared its tools. What a freeform or typed tool takes is known only when the call is whole, so
    its arguments leave in one piece."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._held: set[int] = set()
        self._failed = False

    def send(self, events: list[Event]) -> list[Event]:
        if len(events) == 1 and type(events[0]) is PartDelta and events[0].index not in self._held:
            return events
        kept: list[Event] = []
        for event in events:
            kept += self._event(event)
        return kept

    def _event(self, event: Event) -> list[Event]:
        if self._failed:
            return []
        match event:
            case PartStarted(part=ToolCall() as call):
                return [self._started(event, call)]
            case PartDelta(index=index) if index in self._held:
                return []
            case PartEnded(part=ToolCall() as call):
                return self._ended(event, call)
            case _:
                return [event]

    def _started(self, event: PartStarted, call: ToolCall) -> Event:
        tool = self._names.tool(call.name)
        if tool is None or call.kind != "function":
            return event
        if tool.kind != "function":
            self._held.add(event.index)
        return replace(event, part=_restored(call, tool))

    def _ended(self, event: PartEnded, call: ToolCall) -> list[Event]:
        tool = self._names.tool(call.name)
        if tool is None or call.kind != "function":
            return [event]
        restored = _restored(call, tool)
        if event.index not in self._held:
            return [replace(event, part=restored)]
        self._held.discard(event.index)
        if tool.kind == "typed" and restored.args is None:
            self._failed = True
            return [Failed(error=_unreadable(tool, call))]
        return [PartDelta(event.index, restored.raw), replace(event, part=restored)]


def _restored(call: ToolCall, tool: Tool) -> ToolCall:
    match tool.kind:
        case "custom":
            raw = freeform.unwrapped(call.raw, has_grammar=bool(tool.grammar) and "`" not in tool.grammar)
            return replace(call, name=tool.name, namespace=tool.namespace, kind="custom", raw=raw, args=None)
        case "typed":
            return replace(call, name=tool.name, namespace=tool.namespace, kind="typed")
        case _:
            return replace(call, name=tool.name, namespace=tool.namespace)


def _unreadable(tool: Tool, call: ToolCall) -> UpstreamError:
    return UpstreamError(
        f"the model called {quote(tool.name)} with {quote(call.raw[:200])}; expected a JSON object.",
        status=502,
        code="invalid_tool_arguments",
    )


def _fits(tool: Tool, native: frozenset[str]) -> bool:
    return (
        (tool.kind == "function" or tool.kind in native)
        and (not tool.namespace or "namespace" in native)
        and (not tool.is_deferred or "deferred" in native)
    )


def _has_special(messages: tuple[Message, ...], native: frozenset[str]) -> bool:
    """One look at every part of every request: it must cost next to nothing where all are plain."""
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolCall):
                if (part.namespace or part.kind != "function") and _is_special_part(part, native):
                    return True
            elif isinstance(part, ToolResult) and part.kind != "function" and part.kind not in native:
                return True
        if not message.parts and _is_special(message, native):
            return True
    return False


def _is_special(message: Message, native: frozenset[str]) -> bool:
    if not message.parts:
        return not _speaks(message) and "namespace" not in native
    return any(_is_special_part(part, native) for part in message.parts)


def _is_special_part(part: Part, native: frozenset[str]) -> bool:
    match part:
        case ToolCall():
            return (part.kind != "function" and part.kind not in native) or (
                bool(part.namespace) and "namespace" not in native
            )
        case ToolResult():
            return part.kind != "function" and part.kind not in native
        case _:
            return False


def _speaks(message: Message) -> bool:
    """An instruction without a word only declared tools."""
    return message.role not in ("system", "developer")


def _offered(tools: tuple[Tool, ...], native: frozenset[str], names: Names, losses: list[Loss]) -> list[Tool]:
    written: list[Tool] = []
    for tool in tools:
        if tool.kind == "hosted":
            if "hosted" in native:
                written.append(tool)
                continue
            why = "it is run by the client's provider, and this back end has no such tool"
            losses.append(Loss("tool.hosted", f'tools "{tool.name[:60]}"', why))
            continue
        label = names.add(tool)
        if _fits(tool, native) and label == tool.name:
            # A source may say that the tool is deferred; who does not know what that means is told the rest.
            written.append(tool if "deferred" in native or tool.kind != "function" else replace(tool, source=None))
        elif not tool.is_deferred:
            written.append(_function(tool, label))
    return written


def _function(tool: Tool, label: str) -> Tool:
    if tool.kind == "custom":
        told = freeform.description_of(tool) or None
        return Tool(name=label, description=told, schema=freeform.schema_of(tool))
    return Tool(name=label, description=tool.description, schema=tool.schema, strict=tool.strict)


def _choice(
    choice: ToolChoice, names: Names, offered: set[str], native: frozenset[str], losses: list[Loss]
) -> ToolChoice | None:
    """The same choice by flat names; one of which nothing is left to choose is none."""
    if choice.mode in ("auto", "none", "required") or (choice.mode == "hosted" and "hosted" in native):
        return choice
    labels = tuple(dict.fromkeys(label for name in choice.names if (label := _label_of(name, names)) in offered))
    if not labels:
        losses.append(Loss("tool_choice", "tool_choice", "it names only tools that this back end cannot be offered"))
        return None
    return ToolChoice(
        mode="named" if choice.mode == "hosted" else choice.mode, names=labels, is_required=choice.is_required
    )


def _label_of(name: str, names: Names) -> str:
    tool = names.tool(name)
    return names.label(tool.namespace, tool.name) if tool is not None else name


def _message(message: Message, names: Names, native: frozenset[str]) -> Message:
    if not _is_special(message, native):
        return message
    return message.with_parts(tuple(_part(part, names, native) for part in message.parts))


def _part(part: Part, names: Names, native: frozenset[str]) -> Part:
    match part:
        case ToolCall() if _is_special_part(part, native):
            raw = freeform.wrapped(part.raw) if part.kind == "custom" else part.raw
            return ToolCall(id=part.id, name=names.label(part.namespace, part.name), raw=raw, args=object_of(raw))
        case ToolResult() if _is_special_part(part, native):
            return replace(part, kind="function", extra={}, item_id="")
        case _:
            return part
