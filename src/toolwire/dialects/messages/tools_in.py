"""Anthropic Messages: tools in, with the changes that messages make to the list."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...types import JsonObject, Source, Tool
from ...wire.fields import flag_or_none, list_or_none, missing, need_name, need_object, rest, text_or_none
from ..shared.requests import is_direct
from ..shared.tool_lists import TOOL_LISTS
from .shapes import NAME
from .typed_tools import schema_for

CHANGES = ("tool_addition", "tool_removal")  # blocks without content that change which tools exist
_TYPED = frozenset(
    ["name", "type", "defer_loading", "allowed_callers", "display_width_px", "display_height_px", "enable_zoom"]
)
_TOOL = frozenset({"name", "description", "input_schema", "type", "strict", "defer_loading"})


def tools_in(top: JsonObject) -> tuple[Tool, ...]:
    """A deferred tool is hidden until a reference in the conversation loads it. If the provider would search
    itself, all tools are visible, because no other back end can search."""
    listed = TOOL_LISTS.tools(list_or_none(top, "tools") or [], NAME, _listed)
    found = {tool.name: tool for tool in listed}
    for block in _changes(top):
        _apply(block, found)
    tools = _visible(found)
    return listed if tools == listed else tools


def _listed(items: list[Any]) -> tuple[Tool, ...]:
    return _visible({tool.name: tool for index, item in enumerate(items) for tool in [_tool(item, f"tools[{index}]")]})


def _visible(found: dict[str, Tool]) -> tuple[Tool, ...]:
    if any(tool.kind == "hosted" and _type(tool).startswith("tool_search_tool") for tool in found.values()):
        found = {name: _shown(tool) for name, tool in found.items()}
    return tuple(found.values())


def _type(tool: Tool) -> str:
    return str(tool.source.value.get("type")) if tool.source is not None else ""


def _changes(top: JsonObject) -> Iterator[JsonObject]:
    """Blocks that load, add or remove a tool, in order: references in results, changes in system messages."""
    messages = top.get("messages")
    for message in messages if isinstance(messages, list) else ():
        content = message.get("content") if isinstance(message, dict) else None
        for block in content if isinstance(content, list) else ():
            if not isinstance(block, dict):
                continue
            if block.get("type") in CHANGES:
                yield block
            elif block.get("type") == "tool_result" and isinstance(block.get("content"), list):
                yield from (piece for piece in block["content"] if isinstance(piece, dict))


def _apply(block: JsonObject, found: dict[str, Tool]) -> None:
    match block:
        case {"type": "tool_reference", "tool_name": str(name)}:
            _load(name, found)
        case {"type": "tool_addition", "tool": {"type": "tool_reference", "name": str(name)}}:
            _load(name, found)
        case {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": dict(definition)}}:
            tool = _shown(_tool(definition, "tool_addition.tool.definition"))
            found[tool.name] = tool
        case {"type": "tool_removal", "tool": {"type": "tool_reference", "name": str(name)}}:
            found.pop(name, None)


def _load(name: str, found: dict[str, Tool]) -> None:
    if name in found:
        found[name] = _shown(found[name])


def _shown(tool: Tool) -> Tool:
    if not tool.is_deferred:
        return tool
    members = {field: getattr(tool, field) for field in tool.__struct_fields__}
    return Tool(**members | {"is_deferred": False})


def _tool(item: Any, where: str) -> Tool:
    need_object(item, where)
    kind = text_or_none(item, "type", where)
    if kind not in (None, "custom"):
        return _builtin(item, str(kind))
    name = need_name(item, "name", where)
    if "input_schema" not in item:
        raise missing(f"{where}.input_schema", "an object")
    return Tool(
        name=name,
        description=text_or_none(item, "description", where),
        schema=need_object(item["input_schema"], f"{where}.input_schema"),
        strict=flag_or_none(item, "strict", where),
        is_deferred=flag_or_none(item, "defer_loading", where) or False,
        is_direct=is_direct(item),
        extra=rest(item, _TOOL, NAME),
        source=Source(NAME, item),
    )


def _builtin(item: JsonObject, kind: str) -> Tool:
    """A tool known by its type. One that the client runs has a schema for any model; others are hosted by the provider."""
    given = item.get("name")
    name = given if isinstance(given, str) and given else kind
    described = schema_for(kind, item)
    if described is None:
        return Tool(name=name, kind="hosted", source=Source(NAME, item))
    return Tool(
        name=name,
        description=described.description,
        schema=described.schema,
        kind="typed",
        is_deferred=item.get("defer_loading") is True,
        is_direct=is_direct(item),
        extra=rest(item, _TYPED, NAME),
        source=Source(NAME, item),
    )
