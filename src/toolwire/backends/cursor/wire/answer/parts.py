"""Cursor: one answer, part by part: at most one text or thought is open at a time, and whatever else begins ends it."""

from __future__ import annotations

from .....dialects.shared.answer_in import Assembly, OpenPart
from .....events import Event
from .....types import Reasoning, Text, ToolCall
from .....wire.exact_json import object_of
from .blob_text import Untold
from .thoughts import Kind, Piece, Splitter


class Speech:
    """calls are those of this answer, whole; has_parts: it has anything at all; untold hears of all that is told as text."""

    def __init__(self, untold: Untold) -> None:
        self.calls: list[ToolCall] = []
        self.has_parts = False
        self._assembly = Assembly()
        self._splitter = Splitter()
        self._open: OpenPart | None = None
        self._kind: Kind = "text"
        self._untold = untold

    def say(self, text: str) -> list[Event]:
        return self._tell(self._splitter.feed(text))

    def think(self, text: str) -> list[Event]:
        return self._tell([*self._splitter.close(), ("thought", text)])

    def thought(self) -> list[Event]:
        """A thought is complete."""
        return self._end() if self._kind == "thought" else []

    def call(self, call_id: str, name: str, raw: str) -> list[Event]:
        events = self.pause()
        self.has_parts = True
        growing, started = self._assembly.start(ToolCall(id=call_id, name=name, raw=""))
        self.calls.append(ToolCall(id=call_id, name=name, raw=raw, args=object_of(raw)))
        return [*events, started, growing.grow(raw), *self._assembly.end(growing)]

    def pause(self) -> list[Event]:
        """What was begun is told to its end."""
        return self._tell(self._splitter.close()) + self._end()

    def _tell(self, pieces: list[Piece]) -> list[Event]:
        events: list[Event] = []
        for kind, text in pieces:
            if text:
                events += self._grow(kind, text)
        return events

    def _grow(self, kind: Kind, text: str) -> list[Event]:
        events: list[Event] = []
        if self._open is None or self._kind != kind:
            events += self._end()
            self._open, started = self._assembly.start(Text(text="") if kind == "text" else Reasoning(text=""))
            self._kind = kind
            self.has_parts = True
            events.append(started)
        if kind == "text":
            self._untold.told(text)
        return [*events, self._open.grow(text)]

    def _end(self) -> list[Event]:
        growing, self._open = self._open, None
        return [] if growing is None else self._assembly.end(growing)
