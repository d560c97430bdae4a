"""Anthropic Messages: the provider's own tool search. Deferred tools are not part of the prompt until a search loads them."""

from __future__ import annotations

from msgspec.structs import replace

from ...types import Opaque, Source, Tool
from .shapes import NAME

SEARCH_TOOL = Tool(
    name="tool_search_tool_bm25",
    kind="hosted",
    source=Source(NAME, {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}),
)


def deferred(tool: Tool) -> Tool:
    if tool.source is not None and tool.source.dialect == NAME:
        return replace(tool, is_deferred=True, source=Source(NAME, {**tool.source.value, "defer_loading": True}))
    return replace(
        tool, is_deferred=True, extra={**tool.extra, NAME: {**tool.extra.get(NAME, {}), "defer_loading": True}}
    )


def found_names(part: Opaque) -> tuple[str, ...]:
    """The tools that a past search has loaded, which is still in the history."""
    match part.value:
        case {"type": "tool_search_tool_result", "content": {"tool_references": list(references)}}:
            return tuple(
                str(found["tool_name"]) for found in references if isinstance(found, dict) and "tool_name" in found
            )
        case _:
            return ()
