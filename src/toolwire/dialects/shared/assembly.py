"""Parts under construction: indices of our own, pieces joined once, a complete part at the end."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from ...events import Event, PartDelta, PartEnded, PartStarted
from ...types import Citation, Json, JsonObject, Opaque, Part, Reasoning, Refusal, Text, ToolCall
from ...wire.exact_json import object_of

_MARKS = re.compile(r'["\\{}\[\]]')


class Balance:
    """Whether the text so far is one closed JSON value; each character is looked at once."""

    __slots__ = ("_depth", "_is_escaped", "_is_text", "is_closed", "is_spoilt")

    def __init__(self) -> None:
        self._depth = 0
        self._is_text = False
        self._is_escaped = False
        self.is_closed = False
        self.is_spoilt = False  # something came behind the end

    def read(self, text: str) -> None:
        if self.is_closed:
            self.is_spoilt = self.is_spoilt or bool(text.strip())
            return
        skipped = 1 if self._is_escaped and text else 0
        for match in _MARKS.finditer(text, skipped):
            at, mark = match.start(), match.group()
            if at < skipped:
                continue
            if self._is_text:
                if mark == "\\":
                    skipped = at + 2
                self._is_text = mark != '"'
            elif mark == '"':
                self._is_text = True
            elif mark in "{[":
                self._depth += 1
            elif mark in "}]":
                self._depth -= 1
                if self._depth <= 0:
                    self.is_closed = True
                    self.is_spoilt = bool(text[at + 1 :].strip())
                    return
        self._is_escaped = skipped > len(text) if text else self._is_escaped


class Growing:
    """One open part: what it was at its start, and what has come since. Its content changes in grow() and nowhere else."""

    __slots__ = ("_pieces", "choice", "citations", "index", "logprobs", "part")

    def __init__(self, index: int, part: Part, choice: int) -> None:
        self.index = index
        self.part = part
        self.choice = choice
        self._pieces: list[str] = []
        self.citations: list[Citation] = []
        self.logprobs: list[Json] = []

    def grow(self, text: str, logprobs: tuple[Json, ...] | None = None) -> PartDelta:
        self._pieces.append(text)
        if logprobs is None:
            return PartDelta(self.index, text)
        self.logprobs += logprobs
        return PartDelta(self.index, text, logprobs)

    @property
    def is_empty(self) -> bool:
        return not self._pieces

    @property
    def pieces(self) -> list[str]:
        return [piece for piece in self._pieces if piece]

    @property
    def content(self) -> str:
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    @property
    def value(self) -> JsonObject | None:
        """Only a call's arguments are a value."""
        return None


class GrowingCall(Growing):
    """An open function call. value is its arguments once they are a complete JSON object; it is computed on demand and reads each
    piece once."""

    __slots__ = ("_balance", "_seen", "_value")

    def __init__(self, index: int, part: Part, choice: int, balance: Balance | None = None) -> None:
        super().__init__(index, part, choice)
        self._balance = balance
        self._seen = 0  # pieces that the balance has read
        self._value: JsonObject | None = None

    @property
    def value(self) -> JsonObject | None:
        balance = self._balance = self._balance or Balance()
        was_closed = balance.is_closed
        while self._seen < len(self._pieces):
            balance.read(self._pieces[self._seen])
            self._seen += 1
        if balance.is_spoilt:
            self._value = None
        elif balance.is_closed and not was_closed:
            self._value = object_of(self.content)
        return self._value

    @property
    def content(self) -> str:
        pieces, seen = self._pieces, self._seen
        if len(pieces) > 2:
            self._pieces = ["".join(pieces[:seen]), "".join(pieces[seen:])]
            self._seen = 1
        return "".join(self._pieces)


class Assembly:
    """Open parts by index; start, delta and end give the events to emit."""

    def __init__(self) -> None:
        self.count = 0
        self.open: dict[int, Growing] = {}

    def start(self, part: Part, choice: int = 0) -> tuple[Growing, Event]:
        is_function = isinstance(part, ToolCall) and part.kind == "function"
        growing = (GrowingCall if is_function else Growing)(self.count, part, choice)
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
            events.append(growing.grow("{}"))
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
