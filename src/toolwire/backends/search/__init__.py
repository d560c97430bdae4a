"""Searches of the web that the gateway can ask: where their I/O lives."""

from __future__ import annotations

from .command import CommandSearch
from .registry import build_search
from .searcher import SearchEngine, Searcher
from .searxng import SearxngSearch

__all__ = ["CommandSearch", "SearchEngine", "Searcher", "SearxngSearch", "build_search"]
