"""Which requests get their web search run by the gateway, and what becomes of them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from toolwire.backends.base import Backend, EventReply, Model
from toolwire.backends.search import Searcher
from toolwire.calls.tools.kinds import to_functions
from toolwire.dialects import DIALECTS
from toolwire.dialects.shared.web_search import SearchHit
from toolwire.pipeline.search import Searching
from toolwire.profiles import PLAIN
from toolwire.types import Request, Text, ToolCall, ToolResult

HOSTED = {
    "messages": {"type": "web_search_20250305", "name": "web_search", "allowed_domains": ["a.b"]},
    "responses": {"type": "web_search", "filters": {"allowed_domains": ["a.b"]}},
}
CLIENTS = tuple(HOSTED)


class Inner:
    """A back end that is never asked."""

    name = "inner"

    def __init__(self, dialect: str = "", *tool_kinds: str) -> None:
        self.dialect = dialect
        self.profile = PLAIN
        self.tool_kinds = frozenset(tool_kinds)

    async def models(self) -> list[Model]:
        return [Model(id="m")]

    async def open(self, request: Request, *, is_verbatim: bool) -> EventReply:
        raise AssertionError("nobody asks it")

    async def close(self) -> None:
        raise AssertionError("it is not the gateway's to close here")


class Silent:
    async def find(self, query: str, count: int) -> list[SearchHit]:
        return []


def around(request: Request, inner: Backend | None = None) -> tuple[Backend, Request]:
    return Searching(Searcher(Silent(), timeout=1.0, results=5)).around(inner or Inner("chat"), request)


def request_of(client: str, *tools: Any, said: Any = (), **more: Any) -> Request:
    user = {"role": "user", "content": "hi"}
    body: dict[str, Any] = {"model": "m", "tools": list(tools), **more}
    body |= {"messages": [user, *said], "max_tokens": 9} if client == "messages" else {"input": [user, *said]}
    return DIALECTS[client].decode_request(json.dumps(body).encode(), {})


@pytest.mark.parametrize("client", CLIENTS)
def test_H107_a_hosted_search_becomes_a_function(client: str) -> None:
    inner = Inner("chat", "hosted")
    backend, lowered = around(request_of(client, HOSTED[client]), inner)
    assert (backend.name, backend.dialect, backend.tool_kinds) == ("inner", "", frozenset())
    (tool,) = lowered.tools
    assert (tool.name, tool.kind, tool.source) == ("web_search", "function", None)
    assert tool.schema is not None
    assert list(tool.schema["properties"]) == ["query"]
    assert "a.b" in str(tool.description)
    assert lowered.has_new_tools
    assert not to_functions(lowered).losses


@pytest.mark.parametrize("client", CLIENTS)
def test_a_back_end_that_has_it_is_left_alone(client: str) -> None:
    request, inner = request_of(client, HOSTED[client]), Inner(client, "hosted")
    assert around(request, inner) == (inner, request)
    assert around(request, Inner(client))[0].dialect == ""


@pytest.mark.parametrize("client", ["chat", *CLIENTS])
def test_a_request_without_it_is_left_alone(client: str) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "web_search_options": {}}
    plain = DIALECTS["chat"].decode_request(json.dumps(body).encode(), {})
    request = plain if client == "chat" else request_of(client)
    inner = Inner("chat" if client != "chat" else "messages")
    backend, same = around(request, inner)
    assert backend is inner
    assert same is request


def test_other_hosted_tools_are_still_lost() -> None:
    fetch = {"type": "web_fetch_20250910", "name": "web_fetch"}
    _, lowered = around(request_of("messages", HOSTED["messages"], fetch))
    assert [tool.kind for tool in lowered.tools] == ["function", "hosted"]
    assert [loss.feature for loss in to_functions(lowered).losses] == ["tool.hosted"]


def test_the_function_has_a_name_of_its_own() -> None:
    own = [{"type": "function", "name": name, "parameters": {}} for name in ("web_search", "web_search_2")]
    _, lowered = around(
        request_of("responses", HOSTED["responses"], *own, HOSTED["responses"] | {"type": "web_search_preview"})
    )
    assert [tool.name for tool in lowered.tools] == ["web_search_3", "web_search", "web_search_2"]


def test_the_function_keeps_its_name_beside_names_that_are_rewritten() -> None:
    own = {"type": "function", "name": "web.search", "parameters": {}}
    _, lowered = around(request_of("responses", own, HOSTED["responses"]))
    names = [tool.name for tool in to_functions(lowered).request.tools]
    assert names[0] == "web_search"
    assert len(set(names)) == 2


@pytest.mark.parametrize(
    ("client", "choice", "mode", "names"),
    [
        ("messages", {"type": "tool", "name": "web_search"}, "named", ("web_search",)),
        ("messages", {"type": "any"}, "required", ()),
        ("responses", {"type": "web_search"}, "named", ("web_search",)),
        (
            "responses",
            {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "web_search"}]},
            "allowed",
            ("web_search",),
        ),
        ("responses", "auto", "auto", ()),
    ],
)
def test_a_choice_of_it_is_a_choice_of_the_function(
    client: str, choice: Any, mode: str, names: tuple[str, ...]
) -> None:
    _, lowered = around(request_of(client, HOSTED[client], tool_choice=choice))
    assert lowered.tool_choice is not None
    assert (lowered.tool_choice.mode, lowered.tool_choice.names) == (mode, names)


SEALED = "tw1.d29yZHM="  # "words"


def _past(search_id: str = "srvtoolu_tw1_1") -> list[dict[str, Any]]:
    hit = {"type": "web_search_result", "title": "T", "url": "https://a.b", "encrypted_content": SEALED}
    return [
        {
            "role": "assistant",
            "content": [
                {"type": "server_tool_use", "id": search_id, "name": "web_search", "input": {"query": "q"}},
                {"type": "web_search_tool_result", "tool_use_id": search_id, "content": [hit]},
                {"type": "text", "text": "so"},
            ],
        },
        {"role": "user", "content": "and?"},
    ]


def test_earlier_searches_are_calls_where_the_tool_is_offered() -> None:
    _, lowered = around(request_of("messages", HOSTED["messages"], said=_past()))
    call, result = lowered.messages[1].parts[0], lowered.messages[2].parts[0]
    assert isinstance(call, ToolCall)
    assert (call.name, call.args) == ("web_search", {"query": "q"})
    assert isinstance(result, ToolResult)
    assert result.call_id == call.id
    assert isinstance(result.parts[0], Text)
    assert "words" in result.parts[0].text
    assert [message.role for message in lowered.messages] == ["user", "assistant", "tool", "assistant", "user"]


@pytest.mark.parametrize("inner", [Inner("chat"), Inner("messages"), Inner("messages", "hosted")])
def test_earlier_searches_are_words_elsewhere(inner: Inner) -> None:
    backend, same = around(request_of("messages", said=_past()), inner)
    assert backend is inner
    assert same.wire == b""
    assert same.messages[1].source is None
    text = "".join(part.text for part in same.messages[1].parts if isinstance(part, Text))
    assert all(word in text for word in ("[Searched the web: q]", "https://a.b", "words", "so"))


def test_a_providers_own_searches_go_back_to_it() -> None:
    inner = Inner("messages", "hosted")
    request = request_of("messages", said=_past("srvtoolu_1"))
    assert around(request, inner) == (inner, request)


def test_what_is_no_part_of_it_is_the_inner_ones() -> None:
    backend, _ = around(request_of("messages", HOSTED["messages"]))
    assert asyncio.run(backend.models()) == [Model(id="m")]
    asyncio.run(backend.close())
