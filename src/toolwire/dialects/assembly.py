"""Parts under construction: indices of our own, pieces joined once, a complete part at the end."""

from __future__ import annotations

from typing import Any

import msgspec

from ..events import Event, PartDelta, PartEnded, PartStarted
from ..types import Citation, Json, Opaque, Part, Reasoning, Refusal, Text, ToolCall
from ..wire.exact import object_of


class Growing:
    """One open part: what it was at its start, and what has come since."""

    __slots__ = ("choice", "citations", "index", "logprobs", "part", "pieces")

    def __init__(self, index: int, part: Part, choice: int) -> None:
        self.index = index
        self.part = part
        self.choice = choice
        self.pieces: list[str] = []
        self.citations: list[Citation] = []
        self.logprobs: list[Json] = []

    @property
    def content(self) -> str:
        if len(self.pieces) > 1:
            self.pieces = ["".join(self.pieces)]
        return self.pieces[0] if self.pieces else ""


class Assembly:
    """Open parts by index; start, delta and end give the events to emit."""

    def __init__(self) -> None:
        self.count = 0
        self.open: dict[int, Growing] = {}

    def start(self, part: Part, choice: int = 0) -> tuple[Growing, Event]:
        growing = Growing(self.count, part, choice)
        self.open[self.count] = growing
        self.count += 1
        return growing, PartStarted(index=growing.index, part=part, choice=choice)

    def end(self, growing: Growing, *, is_cut: bool = False, **changes: Any) -> list[Event]:
        """Close it; a call that got no arguments has the empty object, said in one delta, unless the answer was cut there."""
        if self.open.pop(growing.index, None) is None:
            return []
        events: list[Event] = []
        is_function = isinstance(growing.part, ToolCall) and growing.part.kind == "function"
        if is_function and not is_cut and not growing.content.strip():
            growing.pieces.append("{}")
            events.append(PartDelta(growing.index, "{}"))
        part = completed(growing)
        if changes:
            part = msgspec.structs.replace(part, **changes)
        events.append(PartEnded(index=growing.index, part=part, choice=growing.choice))
        return events

    def is_open(self, growing: Growing) -> bool:
        return growing.index in self.open

    def end_all(self, *, is_cut: bool = False) -> list[Event]:
        events: list[Event] = []
        for growing in list(self.open.values()):
            events += self.end(growing, is_cut=is_cut)
        return events


def completed(growing: Growing) -> Part:
    """The part as it stands now."""
    part, content = growing.part, growing.content
    match part:
        case Text():
            return msgspec.structs.replace(
                part,
                text=content,
                citations=tuple(growing.citations),
                logprobs=tuple(growing.logprobs) if growing.logprobs else None,
            )
        case Refusal() | Reasoning():
            return msgspec.structs.replace(part, text=content)
        case ToolCall():
            args = object_of(content) if part.kind == "function" else None
            return msgspec.structs.replace(part, raw=content, args=args)
        case Opaque():
            return part
        case _:
            return part
