"""Who is told what happens: a person, or a program that reads one JSON object per line."""

from __future__ import annotations

from typing import Protocol, TextIO

from ...agent.events import LoopEvent, plain
from ...wire.exact_json import encode
from .escape import json_escape
from .terminal import Terminal


class Reporter(Protocol):
    """take gets every event of an answer, the last of which is complete, however it ended."""

    def begin(self) -> None:
        """An answer has been asked for."""

    def take(self, event: LoopEvent) -> None: ...

    def tick(self) -> None:
        """Nothing has happened for a moment."""

    def note(self, text: str) -> None:
        """About the conversation, not a part of it."""

    def fault(self, text: str) -> None: ...


class JsonLines:
    """Events on the stream, notes for people beside it."""

    def __init__(self, stream: TextIO, about: Terminal) -> None:
        self._stream = stream
        self._about = about

    def begin(self) -> None:
        pass

    def take(self, event: LoopEvent) -> None:
        # Whatever is not ASCII is escaped: U+2028 ends a line for some readers, and a terminal obeys controls.
        text = encode(plain(event)).decode()
        self._stream.write("".join(char if " " <= char < "\x7f" else json_escape(char) for char in text) + "\n")
        self._stream.flush()

    def tick(self) -> None:
        pass

    def note(self, text: str) -> None:
        self._about.line(text, "dim")

    def fault(self, text: str) -> None:
        self._about.line(f"error: {text}", "red")
