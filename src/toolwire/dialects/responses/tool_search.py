"""OpenAI Responses: the provider's own tool search. Of deferred tools the model only knows the name and the description."""

from __future__ import annotations

from msgspec.structs import replace

from ...types import Opaque, Source, Tool
from .shapes import NAME

SEARCH_TOOL = Tool(name="tool_search", kind="hosted", source=Source(NAME, {"type": "tool_search"}))


def deferred(tool: Tool) -> Tool:
    if tool.source is not None and tool.source.dialect == NAME:
        return replace(tool, is_deferred=True, source=Source(NAME, {**tool.source.value, "defer_loading": True}))
    return replace(
        tool, is_deferred=True, extra={**tool.extra, NAME: {**tool.extra.get(NAME, {}), "defer_loading": True}}
    )


def found_names(part: Opaque) -> tuple[str, ...]:
    """The tools that a past search has loaded, which is still in the history."""
    match part.value:
        case {"type": "tool_search_output", "tools": list(tools)}:
            return tuple(str(found["name"]) for found in tools if isinstance(found, dict) and "name" in found)
        case _:
            return ()
