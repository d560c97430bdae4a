"""Chat Completions: tools in, wherever a request declares them, and the choice among them.

Besides the list there are the bare functions of old clients, and tools in a system message, which Kimi accepts from that message on
(its documentation calls them dynamic tools). Some clients write a tool in the flat form of Responses; it is converted to
the form of this dialect, because back ends refuse the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...types import JsonObject, Source, Tool, ToolChoice
from ...wire.fields import (
    flag_or_none,
    list_or_none,
    need_list,
    need_name,
    need_object,
    need_text,
    object_or_none,
    rest,
    text_or_none,
    wrong,
)
from ..shared.requests import CACHE_HINT, with_hint
from ..shared.tool_lists import TOOL_LISTS
from .shapes import NAME

DECLARING_ROLES = ("system", "developer")
_FUNCTION = frozenset({"name", "description", "parameters", "strict"})


def in_own_form(top: JsonObject) -> JsonObject:
    """The same body with every flat tool, and a flat choice of one, in the form of this dialect; itself where there is none."""
    changed: JsonObject = {}
    if isinstance(tools := top.get("tools"), list) and any(
        _is_flat(tool) for tool in tools if isinstance(tool, dict) and "function" not in tool
    ):
        changed["tools"] = [_nested(tool) if _is_flat(tool) else tool for tool in tools]
    choice = top.get("tool_choice")
    if isinstance(choice, dict) and _is_flat(choice):
        changed["tool_choice"] = {"type": "function", "function": {"name": choice["name"]}}
    if isinstance(messages := top.get("messages"), list) and any(
        _has_flat(item) for item in messages if isinstance(item, dict) and "tools" in item
    ):
        changed["messages"] = [
            {**item, "tools": [_nested(tool) if _is_flat(tool) else tool for tool in item["tools"]]}
            if _has_flat(item)
            else item
            for item in messages
        ]
    return {**top, **changed} if changed else top


def tools_in(top: JsonObject) -> tuple[Tool, ...]:
    """Old clients list bare functions; a back end of this dialect gets them as they are, others as tools. What a message
    declares replaces what has the same name and was declared before."""
    legacy = tuple(
        _function(need_object(item, f"functions[{index}]"), f"functions[{index}]", None)
        for index, item in enumerate(list_or_none(top, "functions") or ())
    )
    tools = TOOL_LISTS.tools(list_or_none(top, "tools") or [], NAME, _listed)
    listed = (*tools, *legacy) if legacy else tools
    later = {tool.name: tool for tool in _declared(top)}
    return (*(tool for tool in listed if tool.name not in later), *later.values()) if later else listed


def declares_tools(item: JsonObject) -> bool:
    """Whether this message brings tools with it."""
    return item.get("role") in DECLARING_ROLES and bool(item.get("tools"))


def choice_in(value: Any) -> ToolChoice | None:
    source = Source(NAME, value)
    match value:
        case None:
            return None
        case "auto" | "none" | "required":
            return ToolChoice(mode=value, source=source)
        case "any":
            return ToolChoice(mode="required", source=source)
        case {"type": "function" | "custom", "function": {"name": str(name)}}:
            return ToolChoice(mode="named", names=(name,), source=source)
        case {"type": "function" | "custom", "custom": {"name": str(name)}} | {"type": "function", "name": str(name)}:
            return ToolChoice(mode="named", names=(name,), source=source)
        case {"type": "allowed_tools"}:
            return _allowed(value, source)
        case {"type": str(kind)} if kind not in ("function", "custom"):
            return ToolChoice(mode="hosted", source=source)
    found = value if isinstance(value, str) else None
    expected = '"auto", "none", "required", or an object that names a tool'
    raise wrong("tool_choice", found, expected) if found else wrong("tool_choice", value, expected)


def old_choice_in(top: JsonObject) -> ToolChoice | None:
    """Among bare functions."""
    match top.get("function_call"):
        case None:
            return None
        case "auto" | "none" as mode:
            return ToolChoice(mode=mode)
        case {"name": str(name)}:
            return ToolChoice(mode="named", names=(name,))
    raise wrong("function_call", top["function_call"], '"auto", "none", or an object with the name of a function')


def _declared(top: JsonObject) -> Iterator[Tool]:
    messages = top.get("messages")
    for number, item in enumerate(messages if isinstance(messages, list) else ()):
        if isinstance(item, dict) and "tools" in item and declares_tools(item):
            where = f"messages[{number}]"
            for index, tool in enumerate(need_list(item, "tools", where)):
                yield _tool(tool, f"{where}.tools[{index}]")


def _listed(items: list[Any]) -> tuple[Tool, ...]:
    return tuple([_tool(item, f"tools[{index}]") for index, item in enumerate(items)])


def _tool(item: Any, where: str) -> Tool:
    need_object(item, where)
    kind = need_text(item, "type", where)
    source = Source(NAME, item)
    if kind == "function":
        return _function(need_object(item.get("function"), f"{where}.function"), f"{where}.function", source)
    if kind == "custom":
        custom = need_object(item.get("custom"), f"{where}.custom")
        return Tool(
            name=need_name(custom, "name", f"{where}.custom"),
            description=text_or_none(custom, "description", where),
            kind="custom",
            grammar=_grammar(custom.get("format")),
            source=source,
        )
    return Tool(name=kind, kind="hosted", source=source)


def _function(function: JsonObject, where: str, source: Source | None) -> Tool:
    extra = {} if function.keys() <= _FUNCTION else rest(function, _FUNCTION, NAME)
    hint = function.get(CACHE_HINT) or (None if source is None else source.value.get(CACHE_HINT))
    return Tool(
        name=need_name(function, "name", where),
        description=text_or_none(function, "description", where),
        schema=object_or_none(function, "parameters", where),
        strict=flag_or_none(function, "strict", where),
        extra=extra if hint is None else with_hint(extra, hint),
        source=source,
    )


def _grammar(form: Any) -> str:
    """The grammar for the text of a freeform tool, if the request has one."""
    match form:
        case {"grammar": {"definition": str(definition), "syntax": str(syntax)}}:
            return f"({syntax}) {definition.strip()}"
    return ""


def _allowed(value: JsonObject, source: Source) -> ToolChoice:
    inner = value.get("allowed_tools")
    allowed = inner if isinstance(inner, dict) else value
    names = []
    for index, tool in enumerate(need_list(allowed, "tools", "tool_choice")):
        where = f"tool_choice.tools[{index}]"
        need_object(tool, where)
        function = tool.get("function") if isinstance(tool.get("function"), dict) else tool
        names.append(need_name(function, "name", where))
    return ToolChoice(mode="allowed", names=tuple(names), is_required=allowed.get("mode") == "required", source=source)


def _is_flat(item: Any) -> bool:
    return (
        isinstance(item, dict)
        and item.get("type") == "function"
        and "function" not in item
        and isinstance(item.get("name"), str)
    )


def _has_flat(item: Any) -> bool:
    return (
        isinstance(item, dict)
        and item.get("role") in DECLARING_ROLES
        and isinstance(tools := item.get("tools"), list)
        and any(map(_is_flat, tools))
    )


def _nested(tool: JsonObject) -> JsonObject:
    return {"type": "function", "function": {key: value for key, value in tool.items() if key != "type"}}
