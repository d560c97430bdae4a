"""A BM25 index of tool definitions: names, descriptions and the names of their members. The same tools give the same order, always.

Ties are broken by the position in the list, because clients list their own tools before those of servers.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from hashlib import blake2b
from math import log

import msgspec

from ...types import JsonObject, Tool
from .terms import name_terms, name_words, query_terms, stem, text_terms

_NAME, _TEXT, _MEMBER = 3.0, 1.0, 0.5  # weights of a word by where it occurs
_HALF = 1.5  # of half of a word in a name
_SHORTEST = 3  # letters of such a half
_K1, _B = 1.2, 0.75
_COVERED = 0.5  # how much more a tool counts whose whole name is in the question
_LONGEST_TEXT = 300  # characters of a description; what follows is mostly examples and warnings
_MOST_MEMBERS = 40
_LONGEST_QUESTION = 4000
_MOST_QUESTIONS = 256
_MOST_INDEXES = 16
_MOST_TOOLS = 5000  # of an index in the cache


class ToolIndex:
    """Ranks tools by their position in the list that it was made of."""

    def __init__(self, tools: tuple[Tool, ...]) -> None:
        self._count = len(tools)
        self._names = [frozenset(name_terms(tool.name)) for tool in tools]
        weights = [_weights(tool, name) for tool, name in zip(tools, self._names, strict=True)]
        _split_compounds(weights, self._names)
        lengths = [sum(found.values()) for found in weights]
        average = sum(lengths) / max(1, len(lengths)) or 1.0
        self._postings: dict[str, list[tuple[int, float]]] = {}
        for place, found in enumerate(weights):
            norm = _K1 * (1 - _B + _B * lengths[place] / average)
            for term, weight in found.items():
                self._postings.setdefault(term, []).append((place, weight * (_K1 + 1) / (weight + norm)))
        self._known: dict[tuple[str, int], tuple[int, ...]] = {}

    def rank(self, question: str, most: int) -> tuple[int, ...]:
        """The positions of the best tools, the best one first; fewer than most where no other tool has a word of the question."""
        key = (question[-_LONGEST_QUESTION:], most)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _MOST_QUESTIONS:
                self._known.clear()
            known = self._known[key] = self._rank(*key)
        return known

    def _rank(self, question: str, most: int) -> tuple[int, ...]:
        terms = query_terms(question)
        scores: dict[int, float] = {}
        for term, factor in terms.items():
            postings = self._postings.get(term)
            if postings is None:
                continue
            rarity = factor * log(1 + (self._count - len(postings) + 0.5) / (len(postings) + 0.5))
            for place, weight in postings:
                scores[place] = scores.get(place, 0.0) + rarity * weight
        for place in scores:
            name = self._names[place]
            covered = sum(terms.get(term, 0.0) for term in name)
            scores[place] *= 1 + _COVERED * covered / (len(name) or 1)
        return tuple(heapq.nsmallest(most, scores, key=lambda place: (-scores[place], place)))


class ToolIndexes:
    """An LRU cache of indexes by the content of their tools. lock: guards it where several threads use it."""

    def __init__(self, lock: AbstractContextManager[object] | None = None) -> None:
        self._lock = lock or nullcontext()
        self._known: OrderedDict[bytes, ToolIndex] = OrderedDict()

    def index(self, tools: tuple[Tool, ...]) -> ToolIndex:
        key = _digest(tools)
        with self._lock:
            if (known := self._known.get(key)) is not None:
                self._known.move_to_end(key)
                return known
        made = ToolIndex(tools)
        if len(tools) > _MOST_TOOLS:  # one must not take the memory of all others
            return made
        with self._lock:
            self._known[key] = made
            while len(self._known) > _MOST_INDEXES:
                self._known.popitem(last=False)
        return made


def readable_text(tool: Tool) -> str:
    """The name, split at underscores and capitals, and the beginning of the description."""
    words = " ".join(word for part in tool.name.split("__") if part != "mcp" for word in name_words(part))
    return f"{words}. {(tool.description or '')[:_LONGEST_TEXT]}"


def _weights(tool: Tool, name: frozenset[str]) -> dict[str, float]:
    found = dict.fromkeys(name, _NAME)
    for term in text_terms((tool.description or "")[:_LONGEST_TEXT]):
        found[term] = found.get(term, 0.0) + _TEXT
    for member in _members(tool.schema or {}):
        for term in name_terms(member):
            found[term] = found.get(term, 0.0) + _MEMBER
    return found


def _split_compounds(weights: list[dict[str, float]], names: list[frozenset[str]]) -> None:
    """A name such as "worklog" is also found by "work" and "log", if these are words of other definitions."""
    known = {term for found in weights for term in found}
    halves: dict[str, tuple[str, ...]] = {}
    for term in {term for name in names for term in name if len(term) >= 2 * _SHORTEST}:
        cuts = range(_SHORTEST, len(term) - _SHORTEST + 1)
        pairs = ((stem(term[:cut]), stem(term[cut:])) for cut in cuts)
        halves[term] = next((pair for pair in pairs if known.issuperset(pair)), ())
    for found, name in zip(weights, names, strict=True):
        for half in (half for term in name for half in halves.get(term, ())):
            found[half] = found.get(half, 0.0) + _HALF


def _members(schema: JsonObject) -> Iterator[str]:
    properties = schema.get("properties")
    if isinstance(properties, dict):
        yield from (name for name, _ in zip(properties, range(_MOST_MEMBERS), strict=False) if isinstance(name, str))


def _digest(tools: tuple[Tool, ...]) -> bytes:
    """All that an index depends on."""
    content = [(tool.name, tool.description or "", *_members(tool.schema or {})) for tool in tools]
    return blake2b(msgspec.msgpack.encode(content), digest_size=16).digest()
