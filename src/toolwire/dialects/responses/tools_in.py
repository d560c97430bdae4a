"""OpenAI Responses: tools in, wherever a request declares them: in its list, in items, in what a search has found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from ...types import Json, JsonObject, Source, Tool, ToolChoice
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
from .shapes import NAME
from .typed_tools import TYPED, flat, is_client_run

_FUNCTION = frozenset({"type", "name", "description", "parameters", "strict", "defer_loading"})
_CUSTOM = frozenset({"type", "name", "description", "format", "defer_loading"})
_DECLARING = ("additional_tools", "tool_search_output")


def without_chat_shapes(top: JsonObject) -> JsonObject:
    """The same body with the tools and the choice as this dialect writes them, where a client wrote them as Chat Completions
    does: {"type": "function", "function": {...}}. The same object where nothing has to change."""
    changed: JsonObject = {}
    tools, choice = top.get("tools"), top.get("tool_choice")
    if isinstance(tools, list) and any(map(_has_chat_shape, tools)):
        changed["tools"] = [_flat_shape(tool) if _has_chat_shape(tool) else tool for tool in tools]
    if isinstance(choice, dict) and _has_chat_shape(choice):
        changed["tool_choice"] = _flat_shape(choice)
    return {**top, **changed} if changed else top


def _has_chat_shape(value: Any) -> bool:
    kind = value.get("type") if isinstance(value, dict) else None
    return kind in ("function", "custom") and "name" not in value and isinstance(value.get(kind), dict)


def _flat_shape(value: JsonObject) -> JsonObject:
    kind = value["type"]
    inner = dict(value[kind])
    form = inner.get("format")
    if isinstance(form, dict) and isinstance(form.get("grammar"), dict):
        inner["format"] = {"type": form.get("type", "grammar"), **form["grammar"]}
    return {"type": kind, **inner, **{key: item for key, item in value.items() if key not in ("type", kind)}}


def tools_in(top: JsonObject) -> tuple[Tool, ...]:
    """Flattened, and each once: what an item declares later replaces what was declared before."""
    found: dict[tuple[str, str, str], Tool] = {}
    listed = list_or_none(top, "tools") or []
    is_searching = any(isinstance(tool, dict) and _is_search(tool) for tool in listed)
    for tool in _flattened(listed, "tools", is_searching):
        found[_identity(tool)] = tool
    given = top.get("input")
    for index, item in enumerate(given if isinstance(given, list) else ()):
        if isinstance(item, dict) and item.get("type") in _DECLARING:
            where = f"input[{index}].tools"
            for tool in _flattened(list_or_none(item, "tools", f"input[{index}]") or [], where, is_searching=False):
                found[_identity(tool)] = tool
    return tuple(found.values())


def _identity(tool: Tool) -> tuple[str, str, str]:
    """A tool by type may stand beside a function of that name: their calls are items of different types."""
    return (tool.kind if tool.kind in ("hosted", "typed") else "", tool.namespace, tool.name)


def declares(items: list[Any]) -> bool:
    """Whether any of these items brings tools with it."""
    return any(item.get("type") in _DECLARING for item in items)


def _is_search(tool: JsonObject) -> bool:
    """The client finds tools itself: those it defers wait until it has."""
    return tool.get("type") == "tool_search" and tool.get("execution") == "client"


def _flattened(tools: list[Any], listed: str, is_searching: bool) -> Iterator[Tool]:
    for index, item in enumerate(tools):
        place = f"{listed}[{index}]"
        need_object(item, place)
        if need_text(item, "type", place) != "namespace":
            yield _tool(item, place, "", is_searching)
            continue
        name, about = need_name(item, "name", place), text_or_none(item, "description", place) or ""
        for number, inner in enumerate(need_list(item, "tools", place)):
            where = f"{place}.tools[{number}]"
            tool = _tool(need_object(inner, where), where, name, is_searching)
            yield replace(tool, namespace_description=about) if about and tool.namespace else tool


def _tool(item: JsonObject, where: str, namespace: str, is_searching: bool) -> Tool:
    kind = need_text(item, "type", where)
    if kind not in ("function", "custom"):
        return _builtin(item, kind)
    name = need_name(item, "name", where)
    description = text_or_none(item, "description", where)
    is_deferred = is_searching and (flag_or_none(item, "defer_loading", where) or False)
    label = flat(namespace, name)
    if kind == "custom":
        return Tool(
            name=name,
            description=description,
            kind="custom",
            namespace=namespace,
            label=label,
            grammar=_grammar(item.get("format")),
            is_deferred=is_deferred,
            extra=rest(item, _CUSTOM, NAME),
            source=Source(NAME, item),
        )
    return Tool(
        name=name,
        description=description,
        schema=object_or_none(item, "parameters", where),
        strict=flag_or_none(item, "strict", where),
        namespace=namespace,
        label=label,
        is_deferred=is_deferred,
        extra=rest(item, _FUNCTION, NAME),
        source=Source(NAME, item),
    )


def _builtin(item: JsonObject, kind: str) -> Tool:
    if not is_client_run(item):
        return Tool(name=kind, kind="hosted", source=Source(NAME, item))
    typed, is_search = TYPED[kind], kind == "tool_search"  # its arguments are the client's own matter
    given = item.get("parameters") if is_search else None
    description = item.get("description")
    return Tool(
        name=kind,
        description=description if isinstance(description, str) and description else typed.description,
        schema=given if isinstance(given, dict) else typed.schema,
        strict=not is_search,
        kind="typed",
        label=typed.label,
        source=Source(NAME, item),
    )


def _grammar(form: Json) -> str:
    """What the text must look like, by any of the ways to say it."""
    if not isinstance(form, dict):
        return ""
    definition, syntax = form.get("definition"), form.get("syntax")
    if not isinstance(definition, str) or not definition.strip():
        return ""
    return f"({syntax}) {definition.strip()}" if isinstance(syntax, str) else definition.strip()


def choice_in(value: Any) -> ToolChoice | None:
    source = Source(NAME, value)
    match value:
        case None:
            return None
        case "auto" | "none" | "required":
            return ToolChoice(mode=value, source=source)
        case {"type": "function" | "custom", "name": str(name)}:
            return ToolChoice(mode="named", names=(_full(value, name),), source=source)
        case {"type": "allowed_tools"}:
            names = []
            for index, tool in enumerate(need_list(value, "tools", "tool_choice")):
                need_object(tool, f"tool_choice.tools[{index}]")
                names.append(_full(tool, str(tool.get("name") or tool.get("type") or "")))
            is_required = value.get("mode") == "required"
            return ToolChoice(mode="allowed", names=tuple(names), is_required=is_required, source=source)
        case {"type": str(kind)} if kind not in ("function", "custom"):
            return ToolChoice(mode="hosted", names=(kind,), source=source)
    raise wrong("tool_choice", value, '"auto", "none", "required", or an object that names a tool')


def _full(tool: JsonObject, name: str) -> str:
    namespace = tool.get("namespace")
    return flat(namespace, name) if isinstance(namespace, str) else name
