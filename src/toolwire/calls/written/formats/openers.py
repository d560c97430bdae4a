"""Finds the openers of all grammars with one expression, and tries the grammars that begin there.

An opener in lower case matches any case; one with capitals only itself. Where the text ends inside a possible opener the decision waits, so
the length of the longest opener is all that is ever held. At an opener each grammar reads what the one before it could not, until one
succeeds (Trial).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from .base import BlockRead, ToolLookup
from .grammar import Block, Grammar
from .hermes.tagged import STRAY_TAG

THOUGHTS = ("think", "thinking", "reasoning")
RESULTS = ("<tool_result", "<tool_response")
STRAYS = ("</tool_call", "</tool_calls", "</function_call", "</function_calls", "</tool-call")


class FoundOpener(Struct, frozen=True):
    """text: as it was written, the longest reading. choices: the grammars that begin so, each with what it takes for its opener."""

    text: str
    kind: str
    choices: tuple[tuple[str, Grammar], ...] = ()


class Openers:
    """kinds of openings: block; think and unthink, result, stray: marks that the reader of the text itself knows.

    opening: letters with which one may begin; suspicious: those, and the ones that code begins and ends with.
    """

    def __init__(self, grammars: Sequence[Grammar]) -> None:
        regular: dict[str, list[Grammar]] = {}
        for grammar in grammars:
            if grammar.place != "start":
                for opener in grammar.openers:
                    regular.setdefault(opener, []).append(grammar)
        self._blocks = {opener: tuple(found) for opener, found in regular.items()}
        self._marks = {
            **{f"<{word}>": "think" for word in THOUGHTS},
            **{f"</{word}>": "unthink" for word in THOUGHTS},
            **dict.fromkeys(RESULTS, "result"),
            **dict.fromkeys(STRAYS, "stray"),
        }
        self._starts = [
            (opener, grammar) for grammar in grammars if grammar.place == "start" for opener in grammar.openers
        ]
        known = sorted([*self._blocks, *self._marks], key=len, reverse=True)
        self._by_start: dict[str, list[str]] = {}
        for opener in known:
            self._by_start.setdefault(opener[:2].lower(), []).append(opener)
        self._prefixes = _prefixes(known)
        self._start_prefixes = _prefixes(opener for opener, _ in self._starts)
        self.longest = len(known[0])
        self.opening = _suspicious(known)
        self.suspicious = re.compile(f"`|~|{self.opening.pattern}")

    def may_become(self, text: str, position: int) -> bool:
        """Whether the text ends here inside an opener, or inside a longer one than it has."""
        if len(text) - position >= self.longest:
            return False
        rest = text[position:]
        return rest in self._prefixes or rest.lower() in self._prefixes

    def at(self, text: str, position: int) -> FoundOpener | None:
        """What begins here, the longest opener first."""
        choices: list[tuple[str, Grammar]] = []
        for opener in self._by_start.get(text[position : position + 2].lower(), ()):
            written = text[position : position + len(opener)]
            if opener not in (written, written.lower()):
                continue
            kind = self._marks.get(opener, "block")
            if kind != "block" and not choices:
                return FoundOpener(written, kind, ((written, STRAY_TAG),) if kind == "stray" else ())
            choices += [(written, grammar) for grammar in self._blocks.get(opener, ())]
        return FoundOpener(choices[0][0], "block", tuple(choices)) if choices else None

    def may_start(self, text: str) -> bool:
        return text in self._start_prefixes

    def starts(self, text: str) -> tuple[tuple[str, Grammar], ...]:
        """Those that begin a text so, and must be all of it: the longest first."""
        found = [(opener, grammar) for opener, grammar in self._starts if text.startswith(opener)]
        return tuple(sorted(found, key=lambda pair: -len(pair[0])))


def _prefixes(openers: Iterable[str]) -> frozenset[str]:
    return frozenset(opener[:end] for opener in openers for end in range(1, len(opener)))


def _suspicious(openers: Iterable[str]) -> re.Pattern[str]:
    """Matches what prose rarely contains: the first two letters of any opener; the first five of those that begin like words, and
    the first three of those with a common second letter.

    All alternatives begin with a literal letter, so that the engine skips everything else quickly.
    """
    seconds: dict[str, set[str]] = {}
    choices: list[str] = []
    for opener in openers:
        if opener[0].isalnum():
            choices.append(re.escape(opener[:5]))
            choices += [f"{re.escape(opener[:end])}\\Z" for end in range(4, 0, -1)]
        elif opener[1] in " *":
            third = re.escape(opener[2])
            choices += [f"{re.escape(opener[:2])}(?:{third}|{third.upper()}|\\Z)", f"{re.escape(opener[0])}\\Z"]
        else:
            seconds.setdefault(opener[0], set()).update((opener[1], opener[1].upper()))
    for first, found in sorted(seconds.items()):
        choices.append(f"{re.escape(first)}(?:[{re.escape(''.join(sorted(found)))}]|\\Z)")
    return re.compile("|".join(choices))


# What must be so before a block counts: nothing; it is valid; and nothing follows on its line; and nothing follows at all.
Until: TypeAlias = Literal["nothing", "valid", "line", "end"]


class Trial:
    """A block that fails only if all of its grammars do. until: what the current grammar must wait for."""

    def __init__(self, opening: FoundOpener, known: ToolLookup, until: Callable[[Grammar], Until]) -> None:
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

    def feed(self, text: str) -> BlockRead:
        self.size += len(text)
        if not self._is_sure:
            self._fed.append(text)
        return self._weigh(self._block.feed(text), is_over=False)

    def close(self) -> BlockRead:
        return self._weigh(self._block.close(), is_over=True)

    def _weigh(self, read: BlockRead, *, is_over: bool) -> BlockRead:
        while read.status == "none" and self._left:
            self._block, self._start, self.until = self._next()
            read = self._block.feed(self.span[self._start :])
            if is_over and read.status == "more":
                read = self._close_behind(read)
        if read.status == "more" and read.pieces:
            self._is_sure = True
            self._fed.clear()
        return read

    def _close_behind(self, first: BlockRead) -> BlockRead:
        last = self._block.close()
        return BlockRead(status=last.status, pieces=first.pieces + last.pieces, rest=last.rest)

    def _next(self) -> tuple[Block, int, Until]:
        written, grammar = self._left.pop()
        until = self._until(grammar)
        return grammar.begin(written, self._known, is_exact=until != "nothing"), len(written), until
