"""Answers out, the part that all dialects share: whole bodies, and joining texts that are separate parts in one dialect and one string in
another.

Two texts of a message are two paragraphs, so the separator is a blank line, with three exceptions: there is white space at the seam already; the
first text has citations, so it is a piece of a sentence that the second continues; the second is marked as a continuation, because the two
were one string in the back end's dialect. The rule uses only what a stream knows when the second text begins. Therefore a streamed answer
and a whole one are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from msgspec.structs import replace

from ...events import Event, FoldedAnswer, Folder, PartDelta, PartEnded, PartStarted
from ...types import JsonObject, Part, Reasoning, Refusal, Text
from ...wire.exact_json import encode
from ...wire.sse import Frame
from ..base import AnswerContext

Words: TypeAlias = Text | Refusal | Reasoning

BLANK_LINE = "\n\n"


class BodyEncoder:
    """The whole answer in one body, once its last event has come; an answer that failed raises its error instead."""

    def __init__(self, context: AnswerContext, body_of: Callable[[FoldedAnswer, AnswerContext], JsonObject]) -> None:
        self._context = context
        self._body_of = body_of
        self._folder = Folder()
        self._value: JsonObject | None = None

    def send(self, event: Event) -> bytes:
        self._folder.send(event)
        return b""

    def observe(self, event: Event) -> None:
        self._folder.send(event)

    def passed(self, frame: Frame) -> None:
        pass

    def resume(self, last: Frame | None) -> None:
        pass

    def close(self) -> bytes:
        self._value = self._body_of(self._folder.answer(), self._context)
        return encode(self._value)

    def final(self) -> JsonObject | None:
        return self._value


def separator(before: Words, after: Words, text: str) -> str:
    """The separator between two texts; text is the beginning of the second one."""
    if after.is_continuation or not before.text or not text:
        return ""
    if before.text[-1].isspace() or text[0].isspace():
        return ""
    return "" if isinstance(before, Text) and before.citations else BLANK_LINE


def join_texts(parts: Iterable[Words]) -> str:
    """All of them as one string."""
    pieces: list[str] = []
    before: Words | None = None
    for part in parts:
        if part.text:
            pieces += [part.text] if before is None else [separator(before, part, part.text), part.text]
            before = part
    return "".join(pieces)


def with_seams(parts: Iterable[Part]) -> list[Part]:
    """For dialects whose clients concatenate adjacent texts: the same parts, each text starting with its separator."""
    found: list[Part] = []
    before: Part | None = None
    for part in parts:
        if isinstance(part, Text | Refusal | Reasoning) and type(part) is type(before) and part.text:
            assert isinstance(before, Text | Refusal | Reasoning)
            between = separator(before, part, part.text)
            found.append(replace(part, text=between + part.text) if between else part)
        else:
            found.append(part)
        if not isinstance(part, Text | Refusal | Reasoning) or part.text:
            before = part
    return found


class Seams:
    """The same for a streamed answer. is_strict: only adjacent texts are joined; else all texts of a kind in a choice are."""

    __slots__ = ("_before", "_begun", "_is_strict")

    def __init__(self, *, is_strict: bool = False) -> None:
        self._is_strict = is_strict
        self._before: dict[tuple[int, type], Words] = {}
        self._begun: dict[int, tuple[Words, Words]] = {}  # parts without a delta yet, each with the text before it

    def begin(self, event: PartStarted) -> bool:
        """Whether a separator may be needed: then call before() with the first delta."""
        part = event.part
        before = self._before.get((event.choice, type(part)))
        if before is None or not isinstance(part, Text | Refusal | Reasoning) or part.is_continuation:
            return False
        self._begun[event.index] = (before, part)
        return True

    def before(self, delta: PartDelta) -> str:
        """The separator before this delta."""
        begun = self._begun.pop(delta.index, None)
        return "" if begun is None else separator(*begun, delta.text)

    def end(self, event: PartEnded) -> None:
        self._begun.pop(event.index, None)
        words = event.part if isinstance(event.part, Text | Refusal | Reasoning) else None
        if words is not None and not words.text:
            return
        if self._is_strict:
            self._before = {key: known for key, known in self._before.items() if key[0] != event.choice}
        if words is not None:
            self._before[event.choice, type(words)] = words
