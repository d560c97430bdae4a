"""Web search engines that the gateway can use."""

from __future__ import annotations

from ...config.file import SearchConfig
from ..http.transport import Transport
from .command import CommandSearch
from .searcher import SearchEngine, Searcher
from .searxng import SearxngSearch

__all__ = ["CommandSearch", "SearchEngine", "Searcher", "SearxngSearch", "build_search"]


def build_search(config: SearchConfig, transport: Transport) -> Searcher:
    engine: SearchEngine
    if config.kind == "searxng":
        engine = SearxngSearch(config.url, transport, config.timeout)
    else:
        engine = CommandSearch(config.command)
    return Searcher(engine, timeout=config.timeout, results=config.results)
