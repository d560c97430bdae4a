"""Blocks where a call may also be a part of a sentence, or in a form that nobody was told to write: whole and valid, or words."""

from __future__ import annotations

from msgspec.structs import replace

from ...types import Tool
from .base import Block, Broken, Closed, Known, Piece, Read


class Exacting:
    """The same tools, for a block that must be right: what cannot be read as a call of a known tool is text at once, and never Broken.

    needs_closing: so is what has no end of its own, unless the text ends there.
    """

    is_told = False

    def __init__(self, known: Known, *, needs_closing: bool = False) -> None:
        self._known = known
        self.needs_closing = needs_closing

    def tool(self, name: str) -> Tool | None:
        return self._known.tool(name)

    def fits(self, name: str, raw: str) -> bool:
        return self._known.fits(name, raw)


class Careful:
    """Says nothing before the block is done, and then only calls that fit their tools. repair: the word that all of them carry."""

    def __init__(self, block: Block, known: Known, repair: str = "") -> None:
        self._block = block
        self._known = known
        self._repairs = (repair,) if repair else ()
        self._calls: list[Closed] = []

    def feed(self, text: str) -> Read:
        return self._weigh(self._block.feed(text))

    def close(self) -> Read:
        return self._weigh(self._block.close())

    def _weigh(self, read: Read) -> Read:
        for piece in read.pieces:
            if type(piece) is Closed:
                self._calls.append(piece)
            elif type(piece) is Broken:
                return Read(status="none", rest=read.rest)
        if read.status == "none":
            return Read(status="none", rest=read.rest)
        if read.status == "more":
            return Read(status="more")
        if not self._calls or not all(self._known.fits(call.name, call.raw) for call in self._calls):
            return Read(status="none", rest=read.rest)
        return Read(status="done", pieces=[self._marked(call) for call in self._calls], rest=read.rest)

    def _marked(self, call: Closed) -> Piece:
        return replace(call, repairs=tuple(dict.fromkeys((*call.repairs, *self._repairs))))
