"""Anthropic Messages: the provider's web search: declaration, display and history. Snippets are sent under a seal, where the
provider has its own encryption, so that the client sends them back with the conversation."""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable

from ...events import Event, Noted, PartEnded, PartStarted
from ...types import Extra, Json, JsonObject, Opaque, Tool
from ...wire.exact_json import encode
from ..shared.sealed_reasoning import MARK, is_sealed
from ..shared.web_search import NOTHING, PastSearch, SearchHit, SearchOutcome, WebSearch, hits_text, texts_in
from .shapes import NAME

_UNHEARD = ("user_location",)
_CODES = {
    "invalid": "invalid_tool_input",
    "too_long": "query_too_long",
    "too_many": "too_many_requests",
    "used_up": "max_uses_exceeded",
    "unavailable": "unavailable",
}
_CALLED = "web_search"
_PREFIX = "srvtoolu_tw1_"


def wanted(tool: Tool) -> WebSearch | None:
    value = tool.source.value if tool.source is not None else {}
    if tool.kind != "hosted" or not str(value.get("type")).startswith("web_search_"):
        return None
    uses = value.get("max_uses")
    return WebSearch(
        allowed=texts_in(value.get("allowed_domains")),
        blocked=texts_in(value.get("blocked_domains")),
        max_uses=uses if isinstance(uses, int) and not isinstance(uses, bool) and uses > 0 else None,
        unheard=tuple(name for name in _UNHEARD if value.get(name)),
    )


def past(part: Opaque) -> PastSearch | None:
    match part.value:
        case {"type": "server_tool_use", "name": "web_search", "id": str(search_id)}:
            given = part.value.get("input")
            query = given.get("query") if isinstance(given, dict) else None
            return PastSearch(id=search_id, query=str(query or ""), is_ours=search_id.startswith(_PREFIX))
        case {"type": "web_search_tool_result", "tool_use_id": str(search_id)}:
            found = _found_in(part.value.get("content"))
            return PastSearch(id=search_id, found=found, is_ours=search_id.startswith(_PREFIX))
        case _:
            return None


def shown(query: str, mint: Callable[[str], str], place: Callable[[], int]) -> _Shown:
    return _Shown(query, mint(_PREFIX), place)


def counted(searches: int, own: Extra) -> Extra:
    counters = {**own.get(NAME, {}), "server_tool_use": {"web_search_requests": searches, "web_fetch_requests": 0}}
    return {**own, NAME: counters}


class _Shown:
    """A block for the query, and one for the results."""

    def __init__(self, query: str, search_id: str, place: Callable[[], int]) -> None:
        self._query = query
        self._id = search_id
        self._place = place

    def call_events(self) -> list[Event]:
        index, given = self._place(), {"query": self._query}
        block: JsonObject = {"type": "server_tool_use", "id": self._id, "name": _CALLED, "input": {}}
        delta: JsonObject = {"type": "input_json_delta", "partial_json": encode(given).decode()}
        return [
            PartStarted(index=index, part=Opaque(dialect=NAME, value=block)),
            Noted(note=Opaque(dialect=NAME, value=delta), index=index),
            PartEnded(index=index, part=Opaque(dialect=NAME, value=block | {"input": given})),
        ]

    def found(self, outcome: SearchOutcome) -> list[Event]:
        index, content = self._place(), _content(outcome)
        block = {"type": "web_search_tool_result", "tool_use_id": self._id, "content": content}
        part = Opaque(dialect=NAME, value=block)
        return [PartStarted(index=index, part=part), PartEnded(index=index, part=part)]


def _content(outcome: SearchOutcome) -> Json:
    if outcome.fault:
        return {"type": "web_search_tool_result_error", "error_code": _CODES[outcome.fault]}
    return [
        {
            "type": "web_search_result",
            "title": hit.title,
            "url": hit.url,
            "encrypted_content": MARK + b64encode(hit.snippet.encode()).decode(),
            "page_age": None,
        }
        for hit in outcome.hits
    ]


def _found_in(content: Json) -> str:
    if isinstance(content, dict):
        return f"The search failed: {content.get('error_code')}"
    hits = [_hit(entry) for entry in content if isinstance(entry, dict)] if isinstance(content, list) else []
    return hits_text(hits) if hits else NOTHING


def _hit(entry: JsonObject) -> SearchHit:
    title, url = entry.get("title"), entry.get("url")
    return SearchHit(str(title or ""), str(url or ""), _unsealed(entry.get("encrypted_content")))


def _unsealed(value: Json) -> str:
    if not is_sealed(value):
        return ""
    try:
        return b64decode(value[len(MARK) :], validate=True).decode()
    except (Base64Error, ValueError):
        return ""
