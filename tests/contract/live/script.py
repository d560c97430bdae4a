"""The answer of a model in tests of live streams, and what was received of it after each frame."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

TOOLS = ("look", "write")


class Words(NamedTuple):
    """A piece of text."""

    pieces: tuple[str, ...]


class Call(NamedTuple):
    """A call; pieces are the fragments of its arguments."""

    name: str
    id: str
    pieces: tuple[str, ...]

    @property
    def raw(self) -> str:
        return "".join(self.pieces)


class Part:
    """One part as far as it was received."""

    def __init__(self, name: str = "") -> None:
        self.name = name  # of the tool; "" for text
        self.content = ""
        self.is_closed = False  # the back end has marked it as complete, or has started another part

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
    """Bytes of the back end, and the parts received so far: (tool, content, whether it is closed)."""

    wire: bytes
    received: tuple[tuple[str, str, bool], ...]
    tells_end: bool = False


class Recorder:
    """Writes frames and records what each of them adds."""

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
    """The text, split at these positions; positions outside are ignored."""
    inner = sorted({place for place in places if 0 < place < len(text)})
    return tuple(text[start:end] for start, end in zip([0, *inner], [*inner, len(text)], strict=True))


def every_cut(text: str) -> list[tuple[str, ...]]:
    """The text in all ways in which it can be split."""
    places = range(1, len(text))
    return [cut(text, [place for place in places if mask >> place & 1]) for mask in range(0, 1 << len(text), 2)]
