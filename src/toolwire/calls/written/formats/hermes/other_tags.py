"""Tags around what is not JSON: the forms of other models behind <tool_call>, and closing tags that close nothing."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from ..base import Block, Known, Read
from .tagged import OPENERS, Place

_LONGEST_TAG = 40


class BehindTag(Struct):
    """What other models write behind the same tag."""

    name: str
    inside: Callable[[str, Known], Block]
    openers: tuple[str, ...] = OPENERS
    place: Place = "line"

    def begin(self, opener: str, known: Known) -> Block:
        return _Inside(opener, known, self.inside)


class _Inside:
    """Reads the tag to its end, and then hands over."""

    def __init__(self, opener: str, known: Known, inside: Callable[[str, Known], Block]) -> None:
        self._tag = opener
        self._known = known
        self._inside = inside
        self._block: Block | None = None

    def feed(self, text: str) -> Read:
        if self._block is not None:
            return self._block.feed(text)
        for position, letter in enumerate(text, 1):
            self._tag += letter
            if letter == ">":
                self._block = self._inside(self._tag, self._known)
                return self._block.feed(text[position:])
            if not letter.isspace() or len(self._tag) > _LONGEST_TAG:
                return Read(status="none")
        return Read(status="more")

    def close(self) -> Read:
        return Read(status="none") if self._block is None else self._block.close()


class StrayTag(Struct):
    """A closing tag that closes nothing: behind a block it says nothing, either."""

    name: str = "stray"
    openers: tuple[str, ...] = ()
    place: Place = "line"

    def begin(self, opener: str, known: Known) -> Block:
        return _Inside(opener, known, _nothing)


class _Nothing:
    def feed(self, text: str) -> Read:
        return Read(status="done", rest=text)

    def close(self) -> Read:
        return Read(status="done")


def _nothing(opener: str, known: Known) -> Block:
    return _Nothing()
