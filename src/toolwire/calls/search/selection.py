"""Which tools the model gets, where it cannot get all: a list that only grows while a conversation continues, so that prompt caches survive.

The list is derived from the request alone:

1. Base, in the order of the client: forced tools, tools that only the provider knows, the client's own tools, and the tools that fit
   the first message of the user best.
2. Then, in the order of the messages: tools that fit a later message of the user, tools that were called, and tools that were found
   by a search before such a call.
3. Last, the tools that the searches of this request have found.

If the list exceeds its limits, the oldest tools leave it that only fitted a message or were found and not called; then the oldest
called ones. Forced tools stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ...types import Message, RecurringTools, Request, Text, Tool, ToolCall
from .index import ToolIndex
from .terms import name_terms

BYTES_PER_TOKEN = 4
FOUND = 10  # tools for the first message, and for each search
_LATER = 3  # tools for each later message, and
_MOST_ASKED = 100  # of the first messages, whatever follows
_MOST_GROUPS = 40

FoundBefore: TypeAlias = Callable[[ToolCall], tuple[str, ...]]  # the tools that were found before a call


class ToolLimits(Struct, frozen=True):
    """count: tools. tokens: of all definitions together; 0 where only their number counts."""

    count: int
    tokens: int = 0


class SearchPlan(Struct, frozen=True, kw_only=True):
    """Why and how far the tools of a request are reduced. is_native: the back end searches."""

    limits: ToolLimits
    why: str
    is_native: bool = False


class ToolCatalog:
    """All tools of one request, searchable."""

    def __init__(self, tools: tuple[Tool, ...], index: ToolIndex, limits: ToolLimits) -> None:
        self.tools = tools
        self._index = index
        self._limits = limits
        self._places = {tool.name: place for place, tool in enumerate(tools)}
        self._costs: dict[int, int] = {}

    def find(self, question: str, names: Iterable[str] = ()) -> tuple[str, ...]:
        """The names of the tools that fit the question best. names: the only ones that may be called, if not all."""
        only = {self._places[name] for name in names if name in self._places}
        places = self._index.rank(question, len(self.tools) if only else FOUND)
        return tuple(self.tools[place].name for place in places if not only or place in only)[:FOUND]

    def select(self, request: Request, found: Iterable[str], before: FoundBefore) -> tuple[Tool, ...]:
        """The tools for this request. found: by the searches of this request."""
        chosen = _Chosen(self._limits, self._cost)
        forced = request.tool_choice.names if request.tool_choice is not None else ()
        chosen.pin(place for place, tool in enumerate(self.tools) if tool.name in forced or is_fixed(tool))
        questions = [_text(message) for message in request.messages if message.role == "user"]
        own = self._own()
        chosen.base(own, self._index.rank(next(filter(None, questions), ""), FOUND + len(own)))
        asked = 0
        for message in request.messages:
            if message.role == "user" and asked < _MOST_ASKED and (text := _text(message)):
                if asked:
                    chosen.suggest(self._index.rank(text, _LATER))
                asked += 1
            for part in message.parts:
                if isinstance(part, ToolCall):
                    chosen.suggest(self._places_of(before(part)))
                    chosen.call(self._places_of((part.name,)))
        chosen.suggest(self._places_of(found), is_new=True)
        return tuple(self.tools[place] for place in chosen.places())

    def loaded(self, request: Request, found: set[str]) -> set[str]:
        """The names of the tools that a back end with its own search gets at once: the base of the conversation, and called tools that
        no search in the history has found."""
        first = next((place for place, message in enumerate(request.messages) if message.role == "user"), 0)
        base = replace(request, messages=request.messages[: first + 1])
        called = {part.name for message in request.messages for part in message.parts if isinstance(part, ToolCall)}
        return {tool.name for tool in self.select(base, (), lambda call: ())} | (called - found)

    def overview(self) -> str:
        """The servers or namespaces of all tools, with the number of their tools."""
        groups: dict[str, int] = {}
        for tool in self.tools:
            if group := _group(tool.name):
                groups[group] = groups.get(group, 0) + 1
        large = [f"{group} ({count})" for group, count in groups.items() if count > 1]
        return ", ".join([*large[:_MOST_GROUPS], *(("...",) if len(large) > _MOST_GROUPS else ())])

    def _own(self) -> list[int]:
        """Tools that the client itself provides, not one of its servers: without a prefix where others have one, or of one word."""
        plain = [place for place, tool in enumerate(self.tools) if "__" not in tool.name]
        if len(plain) < len(self.tools):
            return plain
        return [place for place in plain if len(name_terms(self.tools[place].name)) == 1]

    def _places_of(self, names: Iterable[str]) -> list[int]:
        return [self._places[name] for name in names if name in self._places]

    def _cost(self, place: int) -> int:
        cost = self._costs.get(place)
        if cost is None:
            cost = self._costs[place] = token_cost(self.tools[place])
        return cost


class _Chosen:
    """The list while it grows. Pinned tools never leave it, called ones last."""

    def __init__(self, limits: ToolLimits, cost: Callable[[int], int]) -> None:
        self._limits = limits
        self._cost = cost
        self._order: dict[int, None] = {}
        self._pinned: set[int] = set()
        self._called: set[int] = set()
        self._new: set[int] = set()

    def pin(self, places: Iterable[int]) -> None:
        self._pinned.update(places)
        self._order.update(dict.fromkeys(self._pinned))

    def base(self, own: list[int], ranked: tuple[int, ...]) -> None:
        """Own tools take up to three quarters of the list, ranked ones up to a quarter, with at least one."""
        share = ToolLimits(max(1, self._limits.count * 3 // 4), self._limits.tokens * 3 // 4)
        kept = [place for place in own if self._fits(place, share)]
        self._pinned.update(kept)
        quarter = min(FOUND, max(1, self._limits.count // 4))
        self.suggest([place for place in ranked if place not in self._order][:quarter])
        self._order = dict.fromkeys(sorted(self._order))

    def suggest(self, places: Iterable[int], *, is_new: bool = False) -> None:
        for place in places:
            self._order.setdefault(place)
            if is_new:
                self._new.add(place)

    def call(self, places: Iterable[int]) -> None:
        for place in places:
            self._order.setdefault(place)
            self._called.add(place)

    def places(self) -> list[int]:
        order = list(self._order)
        free = [place for place in order if place not in self._pinned]
        old = [place for place in free if place not in self._called and place not in self._new]
        block = max(1, self._limits.count // 4)
        while old and self._exceeds(order):  # several at once, so that the list is the same for the next requests
            order = [place for place in order if place not in old[:block]]
            old = old[block:]
        for place in [*(place for place in free if place not in self._called), *free]:
            if not self._exceeds(order):
                break
            order = [other for other in order if other != place]
        return order

    def _exceeds(self, order: list[int]) -> bool:
        limits = self._limits
        return len(order) > limits.count or (limits.tokens > 0 and sum(map(self._cost, order)) > limits.tokens)

    def _fits(self, place: int, share: ToolLimits) -> bool:
        """Adds the tool if there is room for it."""
        if place in self._order:
            return True
        if len(self._order) >= share.count:
            return False
        if share.tokens and sum(map(self._cost, self._order)) + self._cost(place) > share.tokens:
            return False
        self._order[place] = None
        return True


def is_fixed(tool: Tool) -> bool:
    """Tools that cannot be searched: the provider runs them, or the client loads them."""
    return tool.kind == "hosted" or tool.is_deferred or not tool.is_direct


def tool_count(request: Request) -> int:
    """As a provider counts them: a namespace of its own dialect is one."""
    is_as_sent = bool(request.source) and not request.has_new_tools
    return len(request.source.get("tools") or ()) if is_as_sent else len(request.tools)


def token_cost(tool: Tool) -> int:
    """An estimate of the tokens of one definition, by its length."""
    content = (tool.name, tool.description or "", tool.schema or {})
    return len(msgspec.json.encode(content, enc_hook=str)) // BYTES_PER_TOKEN + 1


def token_total(tools: tuple[Tool, ...]) -> int:
    if not isinstance(tools, RecurringTools):
        return sum(map(token_cost, tools))
    known: int | None = tools.facts.get("tokens")
    if known is None:
        known = sum(map(token_cost, tools))
        tools.remember("tokens", known)
    return known


def _text(message: Message) -> str:
    """The last text: clients put notes of their own before what the user wrote."""
    return next((part.text for part in reversed(message.parts) if isinstance(part, Text) and part.text.strip()), "")


def _group(name: str) -> str:
    parts = [part for part in name.split("__") if part and part != "mcp"]
    if len(parts) > 1:
        return parts[0]
    head, _, rest = name.replace("-", "_").partition("_")
    return head if rest else ""
