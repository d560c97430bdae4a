"""A SearXNG instance as a search: one GET, its JSON taken apart."""

from __future__ import annotations

from urllib.parse import urlencode

from ...dialects.shared.web_search import SearchHit
from ...errors import UpstreamError
from ...wire.exact_json import BadJson, decode
from ..http.transport import Timeouts, Transport
from .searcher import hit_in

_MAX_BODY = 4 << 20
_HEADERS = {"accept": "application/json", "user-agent": "toolwire"}


class SearxngSearch:
    def __init__(self, url: str, transport: Transport, timeout: float) -> None:
        self._url = url.rstrip("/")
        self._transport = transport
        self._timeouts = Timeouts(connect=timeout, first_byte=timeout, idle=timeout)

    async def find(self, query: str, count: int) -> list[SearchHit]:
        asked = urlencode({"q": query, "format": "json"})
        response = await self._transport.send("GET", f"{self._url}/search?{asked}", _HEADERS, timeouts=self._timeouts)
        try:
            if response.status != 200:
                why = " It must allow format=json: `search.formats` in its settings." if response.status == 403 else ""
                message = f"the search engine answered with status {response.status}.{why}"
                raise UpstreamError(message, status=response.status, code="search_failed")
            return _hits_in(await response.read_all(_MAX_BODY))[:count]
        finally:
            response.abort()


def _hits_in(body: bytes) -> list[SearchHit]:
    try:
        value = decode(body)
    except BadJson:
        value = None
    results = value.get("results") if isinstance(value, dict) else None
    if not isinstance(results, list):
        raise UpstreamError("the search engine's answer is no list of results in JSON.", code="search_failed")
    return [hit for result in results if (hit := hit_in(result, "content")) is not None]
