"""One opener and all the grammars that may have written it: each reads what the one before it could not, until one makes sense of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from .base import Block, Grammar, Known, Read
from .hermes.inline import Careful, Exacting
from .openers import Opening

# What must be so before a block counts: nothing; it is valid; and nothing follows on its line; and nothing follows at all.
Until: TypeAlias = Literal["nothing", "valid", "line", "end"]


class Trial:
    """Reads like a block, and is none only if all of its grammars say so. until: what the grammar that reads now must wait for."""

    def __init__(self, opening: Opening, known: Known, until: Callable[[Grammar], Until]) -> None:
        self.opening = opening
        self.size = 0
        self._known = known
        self._until = until
        self._left = list(reversed(opening.choices))
        self._fed: list[str] = []  # all of it, while it may still turn out to be words
        self._is_sure = False
        self._block, self._start, self.until = self._next()

    @property
    def span(self) -> str:
        """What was written, unless something of it was given already."""
        return self.opening.text + "".join(self._fed)

    def feed(self, text: str) -> Read:
        self.size += len(text)
        if not self._is_sure:
            self._fed.append(text)
        return self._weigh(self._block.feed(text), is_over=False)

    def close(self) -> Read:
        return self._weigh(self._block.close(), is_over=True)

    def _weigh(self, read: Read, *, is_over: bool) -> Read:
        while read.status == "none" and self._left:
            self._block, self._start, self.until = self._next()
            read = self._block.feed(self.span[self._start :])
            if is_over and read.status == "more":
                read = self._close_behind(read)
        if read.status == "more" and read.pieces:
            self._is_sure = True
            self._fed.clear()
        return read

    def _close_behind(self, first: Read) -> Read:
        last = self._block.close()
        return Read(status=last.status, pieces=first.pieces + last.pieces, rest=last.rest)

    def _next(self) -> tuple[Block, int, Until]:
        written, grammar = self._left.pop()
        until = self._until(grammar)
        if until == "nothing":
            return grammar.begin(written, self._known), len(written), until
        exacting = Exacting(self._known, needs_closing=True)
        return Careful(grammar.begin(written, exacting), self._known), len(written), until
