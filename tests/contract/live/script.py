"""What a model says in a test of live streams, and what of it has been received after each frame."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

TOOLS = ("look", "write")


class Words(NamedTuple):
    """A piece of text."""

    pieces: tuple[str, ...]


class Call(NamedTuple):
    """A call; pieces are its arguments."""

    name: str
    id: str
    pieces: tuple[str, ...]

    @property
    def raw(self) -> str:
        return "".join(self.pieces)


class Part:
    """One part as far as it has come."""

    def __init__(self, name: str = "") -> None:
        self.name = name  # of the tool; "" for text
        self.content = ""
        self.is_closed = False  # the back end has said that it is complete, or has gone on with something else

    @property
    def is_call(self) -> bool:
        return bool(self.name)

    @property
    def is_whole(self) -> bool:
        if not self.is_call:
            return True
        try:
            json.loads(self.content)
        except ValueError:
            return False
        return True


class Frame(NamedTuple):
    """Bytes of the back end, and all that has been received once they are read: (tool, content, whether it is closed)."""

    wire: bytes
    received: tuple[tuple[str, str, bool], ...]
    tells_end: bool = False


class Recorder:
    """Writes frames and notes what each of them adds."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self._parts: list[Part] = []
        self._last: Part | None = None

    def begin(self, name: str = "") -> Part:
        part = Part(name)
        self._parts.append(part)
        return part

    def grow(self, part: Part, text: str = "") -> None:
        if self._last is not None and self._last is not part and self._last.is_whole:
            self._last.is_closed = True
        self._last = part
        part.content += text

    def frame(self, wire: bytes, *, tells_end: bool = False) -> None:
        received = tuple((part.name, part.content, part.is_closed) for part in self._parts)
        self.frames.append(Frame(wire, received, tells_end))


def cut(text: str, places: Sequence[int]) -> tuple[str, ...]:
    """The text in pieces; places that lie outside are ignored."""
    inner = sorted({place for place in places if 0 < place < len(text)})
    return tuple(text[start:end] for start, end in zip([0, *inner], [*inner, len(text)], strict=True))


def every_cut(text: str) -> list[tuple[str, ...]]:
    """The text in all the ways in which it can be cut."""
    places = range(1, len(text))
    return [cut(text, [place for place in places if mask >> place & 1]) for mask in range(0, 1 << len(text), 2)]
