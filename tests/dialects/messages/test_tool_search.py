"""The provider's own tool search, in the form of this dialect."""

from __future__ import annotations

from toolwire.dialects.messages.tool_search import SEARCH_TOOL, deferred, found_names
from toolwire.types import Opaque, Source, Tool


def test_a_deferred_tool_is_marked_in_its_source_or_beside_it() -> None:
    own = deferred(Tool(name="t", source=Source("messages", {"name": "t"})))
    assert own.source == Source("messages", {"name": "t", "defer_loading": True})
    other = deferred(Tool(name="t", source=Source("chat", {}), extra={"messages": {"cache_control": 1}}))
    assert other.extra == {"messages": {"cache_control": 1, "defer_loading": True}}
    assert own.is_deferred
    assert not SEARCH_TOOL.is_deferred


def test_tools_that_were_found() -> None:
    content = {"tool_references": [{"type": "tool_reference", "tool_name": "t"}, 5]}
    assert found_names(Opaque(dialect="messages", value={"type": "tool_search_tool_result", "content": content})) == (
        "t",
    )
    assert found_names(Opaque(dialect="messages", value={"type": "tool_search_tool_result", "content": []})) == ()
