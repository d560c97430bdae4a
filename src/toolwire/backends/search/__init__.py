"""Web search engines that the gateway can use."""

from __future__ import annotations

from .command import CommandSearch
from .registry import build_search
from .searcher import SearchEngine, Searcher
from .searxng import SearxngSearch

__all__ = ["CommandSearch", "SearchEngine", "Searcher", "SearxngSearch", "build_search"]
