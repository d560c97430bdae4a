"""What a reader of written calls works with: the pieces that it finds, the tools that may be meant, and the form of a grammar.

A model without a tool interface writes its calls into the text. `Sentinel` looks through that text for openers; at one, a Grammar makes a
Block, and the Block reads on until its call is whole or turns out to be none. Blocks are state machines over letters: where the text was
cut into pieces must never make a difference.
"""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from ....types import Tool


class PlainText(Struct, frozen=True, tag="words"):
    """Text for the reader, as it came."""

    text: str


class CallOpened(Struct, frozen=True, tag="opened"):
    """A call has begun, and nothing of its span will be text. Followed by any number of Grew, and one Closed or Broken."""

    name: str


class CallGrew(Struct, frozen=True, tag="grew"):
    """More of the raw arguments of the call that is open."""

    text: str


class CallClosed(Struct, frozen=True, kw_only=True, tag="closed"):
    """A whole call, begun by Opened or not. All that Grew adds up to raw. repairs: stable words for what was out of form."""

    name: str
    raw: str
    repairs: tuple[str, ...] = ()


class CallBroken(Struct, frozen=True, kw_only=True, tag="broken"):
    """A span that can only be meant as a call, and cannot be read as one. text is all of it, as the model wrote it; name is "" where even
    that is unknown."""

    text: str
    why: str
    name: str = ""
    raw: str = ""


class Imagined(Struct, frozen=True, tag="imagined"):
    """The model goes on to write the result of its own call: from here on, nothing it says is worth reading."""

    text: str


class Thought(Struct, frozen=True, tag="thought"):
    """What the model says to itself, marked as such in its text: not for the reader, and never a call."""

    text: str


Piece: TypeAlias = PlainText | CallOpened | CallGrew | CallClosed | CallBroken | Imagined | Thought


class BlockRead(Struct, kw_only=True):
    """What one feeding came to. more: the block wants more text; done: it is over, rest lies behind it; none: it was no call at all, and
    no Opened was ever given: its whole span is text."""

    status: Literal["more", "done", "none"]
    pieces: list[Piece] = []
    rest: str = ""


class ToolLookup(Protocol):
    """The tools of the request."""

    @property
    def is_instructed(self) -> bool:
        """Whether the model was told to write calls as <tool_call> blocks, so that one that cannot be read is Broken and not text."""

    def tool(self, name: str) -> Tool | None:
        """The tool meant, also with an invented prefix ("functions.x") or in another spelling."""

    def fits(self, name: str, raw: str) -> bool:
        """Whether the tool is known, and these arguments are JSON that validates against its schema."""


class Block(Protocol):
    """One span, from behind its opener."""

    def feed(self, text: str) -> BlockRead: ...

    def close(self) -> BlockRead:
        """The text is over: done or none."""


class Grammar(Protocol):
    """place: where its openers count. start: only as the first thing of the text, and the call must be all of it; line: at the start of
    a line, or behind another block; anywhere: the opener is a token that no prose contains."""

    name: str
    openers: tuple[str, ...]
    place: Literal["start", "line", "anywhere"]

    def begin(self, opener: str, known: ToolLookup) -> Block: ...
