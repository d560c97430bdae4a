"""Queries a search engine with limits for time, size and domains. Its results are untrusted input."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from typing import Protocol
from urllib.parse import urlsplit

from ...dialects.shared.web_search import SearchHit, SearchOutcome, WebSearch
from ...errors import UpstreamError
from ...types import Json

_QUERY = 1000
_TITLE = 300
_URL = 2000
_SNIPPET = 1200
_WIDER = 4  # times as many results are requested if domains are filtered
_AT_ONCE = 8
# Control, invisible and bidirectional characters, which could hide text.
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff0-\uffff\ud800-\udfff"
    "\U000e0000-\U000e0fff]+"
)
_SPACES = re.compile(r"\s+")


class SearchEngine(Protocol):
    """One engine. A failure is an UpstreamError; the caller limits the time."""

    async def find(self, query: str, count: int) -> list[SearchHit]: ...


class Searcher:
    """An engine with the configured limits."""

    def __init__(self, engine: SearchEngine, *, timeout: float, results: int) -> None:
        self._engine = engine
        self._timeout = timeout
        self._results = results
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def ask(self, query: str, wanted: WebSearch) -> SearchOutcome:
        """Never raises: the model gets a failed search as its result."""
        query = tidy(query, _QUERY + 1)
        if not query:
            return SearchOutcome(fault="invalid", why='expected {"query": "..."} with search terms.')
        if len(query) > _QUERY:
            return SearchOutcome(fault="too_long", why=f"the query is longer than {_QUERY} characters.")
        is_limited = bool(wanted.allowed or wanted.blocked)
        try:
            async with asyncio.timeout(self._timeout), self._turns:
                found = await self._engine.find(query, self._results * (_WIDER if is_limited else 1))
        except TimeoutError:
            return SearchOutcome(fault="unavailable", why=f"no answer within {self._timeout:g} seconds.")
        except UpstreamError as error:
            return SearchOutcome(fault="too_many" if error.status == 429 else "unavailable", why=error.message)
        return SearchOutcome(hits=tuple(chosen(found, wanted)[: self._results]))


def chosen(hits: Iterable[SearchHit], wanted: WebSearch) -> list[SearchHit]:
    """Cleaned, without duplicate addresses, and only from domains that the client allows."""
    kept: dict[str, SearchHit] = {}
    for hit in hits:
        clean = SearchHit(tidy(hit.title, _TITLE) or hit.url[:_TITLE], hit.url, tidy(hit.snippet, _SNIPPET))
        if not _is_address(hit.url) or hit.url in kept or _is_from(hit.url, wanted.blocked):
            continue
        if not wanted.allowed or _is_from(hit.url, wanted.allowed):
            kept[hit.url] = clean
    return list(kept.values())


def hit_in(value: Json, snippet: str) -> SearchHit | None:
    """A result of an engine; snippet is the member that contains its excerpt."""
    if not isinstance(value, dict) or not isinstance(value.get("url"), str):
        return None
    title, words = value.get("title"), value.get(snippet)
    return SearchHit(title if isinstance(title, str) else "", value["url"], words if isinstance(words, str) else "")


def tidy(text: str, limit: int) -> str:
    """One line of visible characters."""
    return _SPACES.sub(" ", _UNSEEN.sub(" ", text[: limit * 4])).strip()[:limit]


def _is_address(url: str) -> bool:
    """A plain web address, which a client cannot open as anything else."""
    if len(url) > _URL or _UNSEEN.search(url) or _SPACES.search(url) or any(mark in url for mark in "<>\"'`\\"):
        return False
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc
    except ValueError:
        return False


def _is_from(url: str, domains: Sequence[str]) -> bool:
    """Includes subdomains. A domain may have the start of a path after it, compared up to a *."""
    parts = urlsplit(url)
    host = (parts.hostname or "").rstrip(".")
    for domain in domains:
        name, slash, path = domain.lower().removeprefix("https://").removeprefix("http://").partition("/")
        is_host = bool(name) and (host == name or host.endswith(f".{name}"))
        if is_host and parts.path.lower().startswith((slash + path).partition("*")[0].rstrip("/")):
            return True
    return False
