"""The types of the scanner: the pieces that it finds, and the lookup of tools.

A model without a tool interface writes its calls into the text. CallScanner looks for openers in that text; at one, a Grammar creates a Block,
and the Block reads until its call is complete or turns out to be none. Where the text was cut into pieces never matters.
"""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from ....types import Tool


class PlainText(Struct, frozen=True, tag="words"):
    """Text of the answer, unchanged."""

    text: str


class CallOpened(Struct, frozen=True, tag="opened"):
    """A call has begun, and its span is not text. Followed by any number of CallGrew, and one CallClosed or CallBroken."""

    name: str


class CallGrew(Struct, frozen=True, tag="grew"):
    """More of the raw arguments of the call that is open."""

    text: str


class CallClosed(Struct, frozen=True, kw_only=True, tag="closed"):
    """A complete call, with or without a CallOpened. The CallGrew texts add up to raw. repairs: stable labels of what was repaired."""

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
    """The model continues with an invented result of its own call: the rest of the text is dropped."""

    text: str


class Thought(Struct, frozen=True, tag="thought"):
    """Reasoning that is marked in the text: not part of the answer, and never a call."""

    text: str


Piece: TypeAlias = PlainText | CallOpened | CallGrew | CallClosed | CallBroken | Imagined | Thought


class BlockRead(Struct, kw_only=True):
    """The result of one feed. more: the block needs more text; done: it has ended, rest follows it; none: it is no call, and its whole span is
    text; pieces is empty then and was before."""

    status: Literal["more", "done", "none"]
    pieces: list[Piece] = []
    rest: str = ""


class ToolLookup(Protocol):
    """The tools of the request."""

    @property
    def is_instructed(self) -> bool:
        """Whether a prompt asks for calls as <tool_call> blocks, so that an unreadable one is CallBroken and not text."""

    def tool(self, name: str) -> Tool | None:
        """The tool meant, also with an invented prefix ("functions.x") or in another spelling."""

    def fits(self, name: str, raw: str) -> bool:
        """Whether the tool is known, and these arguments are JSON that validates against its schema."""
