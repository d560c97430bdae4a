"""Anthropic Messages: the provider's web search as the gateway shows it."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from toolwire.dialects.messages import web_search
from toolwire.dialects.shared.web_search import SearchHit, SearchOutcome, WebSearch
from toolwire.events import Noted, PartEnded, PartStarted
from toolwire.types import Opaque, Source, Tool


def tool(**value: Any) -> Tool:
    source = Source("messages", {"type": "web_search_20250305", "name": "web_search"} | value)
    return Tool(name="web_search", kind="hosted", source=source)


def shown(query: str = "q") -> Any:
    numbers = count(3)
    return web_search.shown(query, lambda prefix: f"{prefix}9", lambda: next(numbers))


def test_what_is_wanted() -> None:
    assert web_search.wanted(tool()) == WebSearch()
    limits = tool(allowed_domains=["a.b", 7], blocked_domains=["c.d"], max_uses=3, user_location={"city": "Oslo"})
    expected = WebSearch(allowed=("a.b",), blocked=("c.d",), max_uses=3, unheard=("user_location",))
    assert web_search.wanted(limits) == expected
    assert web_search.wanted(tool(type="web_search_20260318")) is not None


@pytest.mark.parametrize("uses", [0, -1, True, "3", None, 1.5])
def test_a_number_of_uses_that_is_none(uses: Any) -> None:
    wanted = web_search.wanted(tool(max_uses=uses))
    assert wanted is not None
    assert wanted.max_uses is None


def test_other_tools_are_no_search() -> None:
    assert web_search.wanted(tool(type="web_fetch_20250910")) is None
    assert web_search.wanted(Tool(name="web_search")) is None
    assert web_search.wanted(Tool(name="web_search", kind="hosted")) is None


def test_a_search_is_shown_and_remembered() -> None:
    search = shown()
    hits = (SearchHit("T", "https://a.b", "words é"), SearchHit("U", "https://c.d"))
    begun, delta, asked = search.call_events()
    assert isinstance(begun, PartStarted)
    assert isinstance(delta, Noted)
    assert begun.part.value == {"type": "server_tool_use", "id": "srvtoolu_tw1_9", "name": "web_search", "input": {}}
    assert delta.note.value == {"type": "input_json_delta", "partial_json": '{"query":"q"}'}
    assert (begun.index, delta.index, asked.index) == (3, 3, 3)
    _, found = search.found(SearchOutcome(hits=hits))
    assert isinstance(found, PartEnded)
    assert found.index == 4
    question, result = web_search.past(asked.part), web_search.past(found.part)
    assert question is not None
    assert result is not None
    assert (question.id, question.query, question.is_ours) == (result.id, "q", result.is_ours)
    assert result.found is not None
    assert result.found.splitlines()[2:] == ["1. T", "https://a.b", "words é", "", "2. U", "https://c.d"]


def test_a_failure_is_shown_by_its_code() -> None:
    begun, _ = shown().found(SearchOutcome(fault="too_many", why="slow down"))
    assert begun.part.value["content"] == {
        "type": "web_search_tool_result_error",
        "error_code": "too_many_requests",
    }
    remembered = web_search.past(begun.part)
    assert remembered is not None
    assert remembered.found == "The search failed: too_many_requests"


@pytest.mark.parametrize("sealed", ["EqgfCioIARgB", "tw1.!", "tw1.gICA", 7, None])
def test_what_the_provider_has_encrypted_stays_its_own(sealed: Any) -> None:
    entry = {"type": "web_search_result", "title": "T", "url": "https://a.b", "encrypted_content": sealed}
    value = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [entry, 7]}
    remembered = web_search.past(Opaque(dialect="messages", value=value))
    assert remembered is not None
    assert not remembered.is_ours
    assert remembered.found is not None
    assert remembered.found.endswith("1. T\nhttps://a.b")


@pytest.mark.parametrize(
    "value",
    [
        {"type": "server_tool_use", "name": "code_execution", "id": "1", "input": {}},
        {"type": "web_search_tool_result", "content": []},
        {"type": "text"},
    ],
)
def test_other_parts_are_no_search(value: dict[str, Any]) -> None:
    assert web_search.past(Opaque(dialect="messages", value=value)) is None


def test_strange_searches_are_no_trouble() -> None:
    for given in (None, 7, {}, {"query": 7}):
        value = {"type": "server_tool_use", "name": "web_search", "id": "1", "input": given}
        assert web_search.past(Opaque(dialect="messages", value=value)) is not None
    value = {"type": "web_search_tool_result", "tool_use_id": "1", "content": 7}
    remembered = web_search.past(Opaque(dialect="messages", value=value))
    assert remembered is not None
    assert remembered.found == "The search found nothing."


def test_searches_are_counted() -> None:
    extra = web_search.counted(2, {"messages": {"service_tier": "x"}, "chat": {}})
    counted = {"web_search_requests": 2, "web_fetch_requests": 0}
    assert extra == {"messages": {"service_tier": "x", "server_tool_use": counted}, "chat": {}}
