"""The provider's own tool search, in the form of this dialect."""

from __future__ import annotations

from toolwire.dialects.responses.tool_search import SEARCH_TOOL, deferred, found_names
from toolwire.types import Opaque, Source, Tool


def test_a_deferred_tool_is_marked_in_its_source_or_beside_it() -> None:
    own = deferred(Tool(name="t", source=Source("responses", {"name": "t"})))
    assert own.source == Source("responses", {"name": "t", "defer_loading": True})
    assert deferred(Tool(name="t")).extra == {"responses": {"defer_loading": True}}
    assert not SEARCH_TOOL.is_deferred


def test_tools_that_were_found() -> None:
    found = Opaque(dialect="responses", value={"type": "tool_search_output", "tools": [{"name": "t"}, None]})
    assert found_names(found) == ("t",)
    assert found_names(Opaque(dialect="responses", value={"type": "web_search_call"})) == ()
