"""Tools of every kind on back ends that know only functions: translated before the request, restored on the calls that come back.

A tool in a namespace gets a flat name, a freeform tool becomes a function with one text, a typed tool a function by its schema. Hosted
tools cannot run here and are dropped, and so are tools that only programs may call. Tools that a message declares are offered in the list, and the message is sent without them. Past
calls are rewritten in the same way, so that the history matches the offered tools.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from ...errors import UpstreamError, quote
from ...events import Event, Failed, Finished, Noted, PartDelta, PartEnded, PartStarted
from ...types import Loss, Message, Part, Request, Tool, ToolCall, ToolChoice, ToolResult
from ...wire.exact_json import object_of
from . import freeform
from .names import LONGEST, ToolNames, has_legal_letters, is_legal


class FunctionRequest(Struct, frozen=True):
    """names: None where nothing changed. ids: of calls and results, collected on the way; None where they were not."""

    request: Request
    names: ToolNames | None = None
    losses: tuple[Loss, ...] = ()
    ids: frozenset[str] | None = None


def to_functions(
    request: Request, native: frozenset[str] = frozenset(), *, longest: int = LONGEST, has_fitting_tools: bool = False
) -> FunctionRequest:
    """For a back end that knows functions and the native kinds. A request without other kinds stays the same object.

    longest: the longest tool name that the back end accepts; 0 where it accepts any name of a function. has_fitting_tools: its tools
    needed no translation before.
    """
    knows = _Knows(native, longest)
    if (has_fitting_tools or all(map(knows.tool, request.tools))) and (
        ids := _plain_ids(request.messages, knows)
    ) is not None:
        return FunctionRequest(request, ids=ids)
    names, losses = ToolNames(longest), list[Loss]()
    tools = tuple(_offered(request.tools, knows, names, losses))
    labels = {tool.name for tool in tools}
    choice = _choice(request.tool_choice, names, labels, native, losses) if request.tool_choice else None
    messages = tuple(
        _message(message, names, knows) for message in request.messages if message.parts or _speaks(message)
    )
    translated = replace(request, tools=tools, tool_choice=choice, messages=messages, has_new_tools=True)
    return FunctionRequest(translated, names, tuple(losses))


class CallRestorer:
    """Restores calls to the tools as the client declared them. The arguments of freeform and typed tools are sent in one piece,
    because their form is known only when the call is complete."""

    def __init__(self, names: ToolNames) -> None:
        self._names = names
        self._held: set[int] = set()
        self._fault: Failed | None = (
            None  # a call that cannot be restored: the answer fails, unless it was cut in that call
        )
        self._failed = False

    def send(self, events: list[Event]) -> list[Event]:
        if len(events) == 1 and type(events[0]) is PartDelta and not self._fault and events[0].index not in self._held:
            return events
        kept: list[Event] = []
        for event in events:
            kept += self._event(event)
        return kept

    def _event(self, event: Event) -> list[Event]:
        if self._fault is not None and not self._failed:
            return self._faulted(event, self._fault)
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

    def _faulted(self, event: Event, fault: Failed) -> list[Event]:
        match event:
            case Noted() | Failed():
                return [event]
            case Finished(choices=choices) if any(choice.reason == "length" for choice in choices):
                return [event]
            case _:
                self._failed = True
                return [fault]

    def _started(self, event: PartStarted, call: ToolCall) -> Event:
        tool = self._names.tool(call.name)
        if tool is None or call.kind != "function":
            return event
        if tool.kind == "custom" or _is_strict(tool):
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
        if _is_strict(tool) and (lacking := _lacking(tool, call)):
            self._fault = Failed(error=_unreadable(tool, call, lacking))
            return []
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


def _is_strict(tool: Tool) -> bool:
    """A typed tool whose calls cannot be encoded in the client's dialect without the required members."""
    return tool.kind == "typed" and tool.strict is True


def _lacking(tool: Tool, call: ToolCall) -> str:
    """What the arguments of a strict tool's call lack; "" if nothing."""
    if call.args is None:
        return "a JSON object"
    missing = [name for name in (tool.schema or {}).get("required", ()) if name not in call.args]
    return f"a JSON object with {quote(missing[0])}" if missing else ""


def _unreadable(tool: Tool, call: ToolCall, expected: str) -> UpstreamError:
    return UpstreamError(
        f"the model called {quote(tool.name)} with {quote(call.raw[:200])}; expected {expected}.",
        status=502,
        code="invalid_tool_arguments",
    )


class _Knows(Struct, frozen=True):
    """What a back end accepts without translation."""

    native: frozenset[str]
    longest: int

    def tool(self, tool: Tool) -> bool:
        return (
            (tool.kind == "function" or tool.kind in self.native)
            and (not tool.namespace or "namespace" in self.native)
            and (not tool.is_deferred or "deferred" in self.native)
            and (tool.is_direct or "programs" in self.native)
            and (not self.longest or (len(tool.name) <= self.longest and has_legal_letters(tool.name)))
        )

    def part(self, part: Part) -> bool:
        match part:
            case ToolCall():
                return (
                    (part.kind == "function" or part.kind in self.native)
                    and (not part.namespace or "namespace" in self.native)
                    and self.name(part.name)
                )
            case ToolResult():
                return part.kind == "function" or part.kind in self.native
            case _:
                return True

    def name(self, name: str) -> bool:
        return not self.longest or is_legal(name, self.longest)

    def message(self, message: Message) -> bool:
        if message.declares_tools and "declared" not in self.native:
            return False
        if not message.parts:
            return _speaks(message) or "declared" in self.native
        return all(self.part(part) for part in message.parts)


def _plain_ids(messages: tuple[Message, ...], knows: _Knows) -> frozenset[str] | None:
    """The ids of all calls and results; None where something must be translated. One pass over every part of every request, which
    also collects the ids for the next step."""
    names: set[str] = set()
    ids: set[str] = set()
    for message in messages:
        for part in message.parts:
            if type(part) is ToolCall:
                if (part.namespace or part.kind != "function") and not knows.part(part):
                    return None
                names.add(part.name)
                ids.add(part.id)
            elif type(part) is ToolResult:
                if part.kind != "function" and not knows.part(part):
                    return None
                ids.add(part.call_id)
        if (message.declares_tools or not message.parts) and not knows.message(message):
            return None
    return frozenset(ids) if all(map(knows.name, names)) else None


def _speaks(message: Message) -> bool:
    """An instruction without parts only declared tools."""
    return message.role not in ("system", "developer")


def _offered(tools: tuple[Tool, ...], knows: _Knows, names: ToolNames, losses: list[Loss]) -> list[Tool]:
    written: list[Tool] = []
    described: set[str] = set()  # namespaces
    labels = _labels(tools, knows, names)
    for index, tool in enumerate(tools):
        if tool.kind == "hosted":
            if "hosted" in knows.native:
                written.append(tool)
                continue
            why = "it is run by the client's provider, and this back end has no such tool"
            losses.append(Loss("tool.hosted", f'tools "{tool.name[:60]}"', why))
            continue
        if not tool.is_direct and "programs" not in knows.native:
            why = "only programs may call it, and this back end runs none; it is not offered"
            losses.append(Loss("tool.allowed_callers", f'tools "{tool.name[:60]}"', why))
            continue
        label = labels[index]
        if knows.tool(tool) and label == tool.name:
            # The source may mark the tool as deferred; a back end that does not know that gets the tool without its source.
            written.append(
                tool if "deferred" in knows.native or tool.kind != "function" else replace(tool, source=None)
            )
        elif not tool.is_deferred:
            written.append(_function(_with_namespace(tool, described), label))
    return written


def _with_namespace(tool: Tool, described: set[str]) -> Tool:
    """Adds the description of a namespace to its first tool: back ends without namespaces have no other place for it."""
    if not tool.namespace_description or tool.namespace in described:
        return tool
    described.add(tool.namespace)
    about = f"About all tools of {tool.namespace}: {tool.namespace_description}"
    return replace(tool, description=f"{tool.description}\n\n{about}" if tool.description else about)


def _labels(tools: tuple[Tool, ...], knows: _Knows, names: ToolNames) -> dict[int, str]:
    """The flat name of each tool that is not hosted, by position. Tools that can keep their names are named first."""

    def rank(index: int) -> tuple[int, str]:
        wanted = tools[index].label or tools[index].name
        keeps_name = wanted == tools[index].name and knows.name(wanted)
        return (0 if keeps_name else 1 if is_legal(wanted, knows.longest or LONGEST) else 2), wanted

    places = [index for index, tool in enumerate(tools) if tool.kind != "hosted"]
    return {index: names.add(tools[index]) for index in sorted(places, key=rank)}


def _function(tool: Tool, label: str) -> Tool:
    if tool.kind == "custom":
        description = freeform.description_of(tool) or None
        return Tool(name=label, description=description, schema=freeform.schema_of(tool), extra=tool.extra)
    strict = tool.strict if tool.kind == "function" else None
    return Tool(name=label, description=tool.description, schema=tool.schema, strict=strict, extra=tool.extra)


def _choice(
    choice: ToolChoice, names: ToolNames, offered: set[str], native: frozenset[str], losses: list[Loss]
) -> ToolChoice | None:
    """The choice by flat names; None where it names no offered tool."""
    if choice.mode in ("auto", "none", "required") or (choice.mode == "hosted" and "hosted" in native):
        return choice
    is_typed = choice.mode == "hosted"
    found = [names.chosen(name, is_typed=is_typed) for name in choice.names]
    labels = tuple(dict.fromkeys(label for label in found if label in offered))
    if not labels:
        losses.append(Loss("tool_choice", "tool_choice", "it names only tools that this back end cannot be offered"))
        return None
    return ToolChoice(
        mode="named" if choice.mode == "hosted" else choice.mode, names=labels, is_required=choice.is_required
    )


def _message(message: Message, names: ToolNames, knows: _Knows) -> Message:
    if knows.message(message):
        return message
    return message.with_parts(tuple(part if knows.part(part) else _part(part, names) for part in message.parts))


def _part(part: Part, names: ToolNames) -> Part:
    match part:
        case ToolCall():
            raw = freeform.wrapped(part.raw) if part.kind == "custom" else part.raw
            return ToolCall(id=part.id, name=names.label(part), raw=raw, args=object_of(raw), extra=part.extra)
        case ToolResult():
            return replace(part, kind="function", item_id="")
        case _:
            return part
