"""OpenAI Responses: the provider's web search as the gateway shows it."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire.dialects.responses import web_search
from toolwire.dialects.shared.web_search import SearchHit, SearchOutcome, WebSearch
from toolwire.types import Opaque, Source, Tool


def tool(**value: Any) -> Tool:
    return Tool(name="web_search", kind="hosted", source=Source("responses", {"type": "web_search"} | value))


def past(**value: Any) -> Any:
    return web_search.past(Opaque(dialect="responses", value={"type": "web_search_call", "id": "ws_1"} | value))


def shown() -> Any:
    return web_search.shown("q", lambda prefix: f"{prefix}9", lambda: 3)


def test_what_is_wanted() -> None:
    assert web_search.wanted(tool()) == WebSearch()
    assert web_search.wanted(tool(type="web_search_preview_2025_03_11", search_context_size="medium")) == WebSearch()
    asked = tool(filters={"allowed_domains": ["a.b"]}, user_location={"city": "Oslo"}, search_context_size="high")
    expected = WebSearch(allowed=("a.b",), unheard=("user_location", "search_context_size"))
    assert web_search.wanted(asked) == expected
    assert web_search.wanted(tool(filters=7)) == WebSearch()


def test_other_tools_are_no_search() -> None:
    assert web_search.wanted(tool(type="file_search")) is None
    assert web_search.wanted(Tool(name="web_search")) is None


def test_a_search_is_shown_and_remembered() -> None:
    search = shown()
    begun, *steps = search.call_events()
    assert begun.part.value["status"] == "in_progress"
    *last, ended = search.found(SearchOutcome(hits=(SearchHit("T", "https://a.b", "words"),)))
    names = [note.note.value["type"] for note in (*steps, *last)]
    assert names == [f"response.web_search_call.{word}" for word in ("in_progress", "searching", "completed")]
    assert {event.index for event in (begun, *steps, *last, ended)} == {3}
    assert ended.part.value == {
        "id": "ws_tw1_9",
        "type": "web_search_call",
        "status": "completed",
        "action": {
            "type": "search",
            "query": "q",
            "queries": ["q"],
            "sources": [{"type": "url", "url": "https://a.b"}],
        },
    }
    remembered = web_search.past(ended.part)
    assert remembered is not None
    assert (remembered.query, remembered.is_ours) == ("q", True)
    assert "https://a.b" in str(remembered.found)


def test_a_failure_is_shown_by_its_status() -> None:
    (ended,) = shown().found(SearchOutcome(fault="unavailable", why="down"))
    assert ended.part.value["status"] == "failed"
    remembered = web_search.past(ended.part)
    assert remembered is not None
    assert remembered.found == "The search failed."


@pytest.mark.parametrize(
    ("action", "query"),
    [
        ({"type": "search", "queries": ["a", "b"], "query": "a"}, "a; b"),
        ({"type": "open_page", "url": "https://a.b"}, "https://a.b"),
        ({"type": "find_in_page", "pattern": "x", "url": "https://a.b"}, "x; https://a.b"),
        (None, ""),
        (7, ""),
        ({"query": 7, "queries": [7], "sources": [7, {}]}, ""),
    ],
)
def test_what_was_looked_for(action: Any, query: str) -> None:
    remembered = past(action=action)
    assert (remembered.query, remembered.found, remembered.is_ours) == (query, None, False)


def test_other_items_are_no_search() -> None:
    assert past(type="file_search_call") is None


def test_this_dialect_counts_no_searches() -> None:
    assert web_search.counted(2, {"responses": {"a": 1}}) == {"responses": {"a": 1}}
