"""OpenAI Responses: the provider's web search: declaration, display and history. Its item contains the query and the addresses that were
found, but no titles or excerpts."""

from __future__ import annotations

from collections.abc import Callable

from ...events import Event, Noted, PartEnded, PartStarted
from ...types import Extra, Json, JsonObject, Opaque, Tool
from ..shared.web_search import PastSearch, SearchHit, SearchOutcome, WebSearch, hits_text, texts_in
from .shapes import NAME

_UNHEARD = ("user_location", "search_context_size")
_USUAL = ("medium", {"type": "approximate"})
_PREFIX = "ws_tw1_"


def wanted(tool: Tool) -> WebSearch | None:
    value = tool.source.value if tool.source is not None else {}
    if tool.kind != "hosted" or not str(value.get("type")).startswith("web_search"):
        return None
    filters = value.get("filters")
    filters = filters if isinstance(filters, dict) else {}
    return WebSearch(
        allowed=texts_in(filters.get("allowed_domains")),
        blocked=texts_in(filters.get("blocked_domains")),
        unheard=tuple(name for name in _UNHEARD if value.get(name) and value[name] not in _USUAL),
    )


def past(part: Opaque) -> PastSearch | None:
    match part.value:
        case {"type": "web_search_call"}:
            search_id = str(part.value.get("id") or "ws_0")
            return PastSearch(
                id=search_id,
                query=_query_in(part.value.get("action")),
                found=_found_in(part.value),
                is_ours=search_id.startswith(_PREFIX),
            )
        case _:
            return None


def shown(query: str, mint: Callable[[str], str], place: Callable[[], int]) -> _Shown:
    return _Shown(query, mint(_PREFIX), place())


def counted(searches: int, own: Extra) -> Extra:
    """This dialect does not count searches."""
    return own


class _Shown:
    """One item, open while the search runs."""

    def __init__(self, query: str, search_id: str, index: int) -> None:
        self._query = query
        self._id = search_id
        self._index = index

    def call_events(self) -> list[Event]:
        begun = Opaque(dialect=NAME, value=self._item("in_progress"))
        return [PartStarted(index=self._index, part=begun), self._step("in_progress"), self._step("searching")]

    def found(self, outcome: SearchOutcome) -> list[Event]:
        if outcome.fault:
            return [PartEnded(index=self._index, part=Opaque(dialect=NAME, value=self._item("failed")))]
        item = self._item("completed")
        item["action"]["sources"] = [{"type": "url", "url": hit.url} for hit in outcome.hits]
        return [self._step("completed"), PartEnded(index=self._index, part=Opaque(dialect=NAME, value=item))]

    def _item(self, status: str) -> JsonObject:
        action = {"type": "search", "query": self._query, "queries": [self._query]}
        return {"id": self._id, "type": "web_search_call", "status": status, "action": action}

    def _step(self, status: str) -> Noted:
        value = {"type": f"response.web_search_call.{status}", "output_index": 0, "item_id": self._id}
        return Noted(note=Opaque(dialect=NAME, value=value), index=self._index)


def _query_in(action: Json) -> str:
    """The query of the model, or the address that it opened."""
    action = action if isinstance(action, dict) else {}
    words = [action.get("query"), *texts_in(action.get("queries")), action.get("pattern"), action.get("url")]
    return "; ".join(dict.fromkeys(word for word in words if isinstance(word, str) and word))


def _found_in(item: JsonObject) -> str | None:
    if item.get("status") == "failed":
        return "The search failed."
    action = item.get("action")
    sources = action.get("sources") if isinstance(action, dict) else None
    urls = [source.get("url") for source in sources if isinstance(source, dict)] if isinstance(sources, list) else []
    hits = [SearchHit("", url) for url in urls if isinstance(url, str)]
    return hits_text(hits) if hits else None
