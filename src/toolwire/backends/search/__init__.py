"""Searches of the web that the gateway can ask: where their I/O lives."""

from __future__ import annotations

from .asking import Search, Searcher
from .command import CommandSearch
from .registry import build_search
from .searxng import SearxngSearch

__all__ = ["CommandSearch", "Search", "Searcher", "SearxngSearch", "build_search"]
