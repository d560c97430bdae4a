"""An answer read as the gateway reads it, and held against what was meant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal

from toolwire.calls.arguments import Repaired, Valid
from toolwire.calls.schemas import Schemas
from toolwire.calls.validation import CallTally, CallValidator, OfferedTools, ToolOffer
from toolwire.calls.written.splitter import CallSplitter, SplitterPolicy
from toolwire.events import Event, Finished, PartDelta, PartEnded, PartStarted, Started
from toolwire.types import Choice, Text, Tool, ToolCall

from .borrowed import same
from .cases import Call

Json = Any

# broken: the gateway knows that a call was meant, and the model can be told. lost: a call stayed text. wrong: a call came that nobody meant.
Outcome = Literal["equal", "broken", "lost", "wrong"]

_HELD = SplitterPolicy(is_held=True)


@dataclass(frozen=True)
class Heard:
    """What came of an answer: all calls, as the guard would get them, and the text for the reader."""

    calls: tuple[ToolCall, ...]
    words: str


class Reader:
    """One set of tools; is_instructed: the model was told of them in words."""

    def __init__(self, tools: Sequence[Tool], schemas: Schemas, *, is_instructed: bool) -> None:
        self._offer = ToolOffer(tools)
        self._schemas = schemas
        self._is_told = is_instructed

    def hear(self, text: str, size: int = 0) -> Heard:
        """Read whole, or in pieces of this size."""
        numbers = count()
        known = OfferedTools(self._offer, self._schemas, self._is_told)
        spoken = CallSplitter(known, self._offer, lambda prefix: f"{prefix}{next(numbers)}", _HELD)
        calls, words = [], []
        for event in (event for sent in _events(text, size or len(text)) for event in spoken.send([sent])):
            if isinstance(event, PartEnded):
                if isinstance(event.part, ToolCall):
                    calls.append(event.part)
                elif isinstance(event.part, Text):
                    words.append(event.part.text)
        return Heard(tuple(calls), "".join(words))

    def outcome(self, heard: Heard, meant: Sequence[Call], *, may_repair: bool, is_cut: bool = False) -> Outcome:
        """A call that differs, or one too many, is wrong whatever else came right. is_cut: the server says that a limit ended it."""
        checking = CallValidator(self._offer, self._schemas, CallTally())
        findings = [checking.find(call, is_cut=is_cut, may_repair=may_repair) for call in heard.calls]
        good = [
            (call.name, finding.args)
            for call, finding in zip(heard.calls, findings, strict=True)
            if isinstance(finding, Valid | Repaired)
        ]
        if not _is_part(good, meant):
            return "wrong"
        if len(good) < len(findings):
            return "broken"
        return "equal" if len(good) == len(meant) else "lost"


def _is_part(found: list[tuple[str, Json]], meant: Sequence[Call]) -> bool:
    """Whether these are some of the calls that were meant, in their order."""
    left = iter(meant)
    return all(any(call.name == name and same(args, call.arguments) for call in left) for name, args in found)


def _events(text: str, size: int) -> Iterator[Event]:
    yield Started(id="answer", model="model")
    yield PartStarted(index=0, part=Text(text=""))
    for start in range(0, len(text), max(1, size)):
        yield PartDelta(0, text[start : start + size])
    yield PartEnded(index=0, part=Text(text=text))
    yield Finished(choices=(Choice(index=0, reason="stop"),))
