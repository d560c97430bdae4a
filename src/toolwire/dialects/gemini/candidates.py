"""Gemini: one candidate of an answer under construction, from the parts that its chunks bring.

Texts that follow each other are one part, unless one of them is signed: a signature belongs to the part it came on, and to
nothing that stands around it (H074). Signed or not, they are one string (is_continuation). A signature without a word waits for what comes next, which it led to.
"""

from __future__ import annotations

from typing import Any

from ...events import Event, Noted, PartDelta
from ...types import Choice, Extra, Json, JsonObject, Opaque, Part, Reason, Reasoning, Refusal, Text, ToolCall
from ...wire.exact_json import encode
from ..shared.assembly import Assembly, Growing
from .logprobs import logprobs_in
from .shapes import NAME, REASONS, SIGNATURE, citations_in, name_in, text_in

_READ = frozenset({"content", "finishReason", "index", "logprobsResult"})
_TEXT = frozenset({"text", "thought", SIGNATURE})


class Nameless(ValueError):
    """A call that says of no tool that it is its."""


class Candidate:
    """finish is its own word for how it ended, "" while it goes on."""

    def __init__(self, assembly: Assembly, index: int, offered: frozenset[str]) -> None:
        self.finish = ""
        self.has_content = False  # words or calls; thoughts alone are no answer
        self._assembly = assembly
        self._index = index
        self._offered = offered
        self._members: JsonObject = {}
        self._open: Growing | None = None
        self._signature = ""  # of what comes next
        self._logprobs: tuple[Json, ...] = ()  # of the text that comes next
        self._has_calls = False
        self.grown: Growing | None = None  # the part to which the last chunk added text, if it did nothing else
        self._last: type | None = None  # type of the last part with content
        self._is_partial = False  # arguments come in pieces of their own form, which only their client understands

    @property
    def failed(self) -> bool:
        return self.finish in REASONS and REASONS[self.finish] is None

    @property
    def told(self) -> str:
        """What was said about the end, beside the word for it."""
        return text_in(self._members, "finishMessage")

    def read(self, value: JsonObject, *, is_whole: bool) -> list[Event]:
        """One chunk's share. is_whole: its parts are no pieces, and nothing follows. Raises Nameless."""
        events: list[Event] = []
        if "logprobsResult" in value:
            self._logprobs = logprobs_in(value["logprobsResult"])
        content = value.get("content")
        given = content.get("parts") if isinstance(content, dict) else None
        parts = given if isinstance(given, list) else []
        for part in parts:
            if isinstance(part, dict):
                if is_whole:
                    events += self._end_open()
                events += self._part(part)
        if events:  # many tell an end and go on (H029)
            self.finish = ""
        is_plain = len(parts) == len(events) == 1 and type(events[0]) is PartDelta and events[0].logprobs is None
        self.grown = self._open if is_plain else None
        if not value.keys() <= _READ:
            self._members |= {key: item for key, item in value.items() if key not in _READ}
        self.finish = text_in(value, "finishReason") or self.finish
        return events

    def end(self) -> tuple[list[Event], Choice]:
        reason = self._reason()
        events = self._cited() + self._end_open()
        if reason == "refused" and not self.has_content:
            words = f"The provider ended the answer: {self.finish}."
            events += self._single(Refusal(text="", extra={NAME: {}}), f"{words} {self.told}".strip())
        members = self._members | ({SIGNATURE: self._signature} if self._signature else {})
        extra: Extra = {NAME: members} if members else {}
        return events, Choice(reason=reason, raw_reason=self.finish, index=self._index, extra=extra)

    def _reason(self) -> Reason:
        reason = REASONS.get(self.finish, "other") or "other"
        return "tool_calls" if self._has_calls and reason in ("stop", "other") else reason

    def _part(self, part: JsonObject) -> list[Event]:
        if isinstance(call := part.get("functionCall"), dict):
            return self._call(part, call)
        text = part.get("text")
        if not isinstance(text, str) and part.get("thought") is True and part.keys() <= _TEXT:
            text = ""  # a signature alone
        if not isinstance(text, str):
            self.has_content = True
            return [*self._end_open(), *self._signed(), *self._single(Opaque(dialect=NAME, value=part))]
        return self._thought(part, text) if part.get("thought") is True else self._text(part, text)

    def _call(self, part: JsonObject, call: JsonObject) -> list[Event]:
        self._is_partial = self._is_partial or "partialArgs" in call or call.get("willContinue") is True
        self.has_content = True
        events = [*self._end_open(), *self._signed()]
        if self._is_partial:
            return [*events, *self._single(Opaque(dialect=NAME, value=part))]
        name = text_in(call, "name")
        if not name:
            raise Nameless
        self._has_calls = True
        members = {key: item for key, item in part.items() if key != "functionCall"}
        extra: Extra = {NAME: members} if members else {}
        opening = ToolCall(id=text_in(call, "id"), name=name_in(name, self._offered), raw="", extra=extra)
        return [*events, *self._single(opening, _raw(call.get("args")))]

    def _thought(self, part: JsonObject, text: str) -> list[Event]:
        events = [] if self._open is not None and isinstance(self._open.part, Reasoning) else self._end_open()
        if not text and not part.get(SIGNATURE):
            return events
        if self._open is None:
            events += self._signed()
            opening = Reasoning(text="", is_continuation=self._last is Reasoning, extra={NAME: {}})
            self._open, started = self._assembly.start(opening, self._index)
            events.append(started)
        self._last = Reasoning if text else self._last
        events += self._grow(text)
        if signature := text_in(part, SIGNATURE):
            events += self._assembly.end(self._open, encrypted=signature)
            self._open = self._last = None  # a signed thought is complete
        return events

    def _text(self, part: JsonObject, text: str) -> list[Event]:
        signature = text_in(part, SIGNATURE)
        if not text:
            events = self._signed() if signature else []
            self._signature = signature or self._signature
            return events
        self.has_content = True
        members = {key: item for key, item in part.items() if key not in ("text", "thought")} if len(part) > 1 else {}
        if not members and not self._signature and self._is_growing_text():
            return self._grow(text)
        events = [*self._end_open(), *self._signed()]
        extra: Extra = {NAME: members} if members else {}
        opening = Text(text="", is_continuation=self._last is Text, extra=extra)
        self._open, started = self._assembly.start(opening, self._index)
        self._last = Text
        return [*events, started, *self._grow(text)]

    def _is_growing_text(self) -> bool:
        part = self._open.part if self._open is not None else None
        return isinstance(part, Text) and not part.extra

    def _grow(self, text: str) -> list[Event]:
        if not text or self._open is None:
            return []
        if not self._logprobs or not isinstance(self._open.part, Text):
            return [self._open.grow(text)]
        entries, self._logprobs = self._logprobs, ()
        return [self._open.grow(text, entries)]

    def _signed(self) -> list[Event]:
        """The signature that waits, before what it led to."""
        if not self._signature:
            return []
        signature, self._signature = self._signature, ""
        growing, started = self._assembly.start(Reasoning(text="", extra={NAME: {}}), self._index)
        return [*self._end_open(), started, *self._assembly.end(growing, encrypted=signature)]

    def _single(self, part: Part, content: str = "") -> list[Event]:
        """A part that is whole at once."""
        self._last = type(part)
        growing, started = self._assembly.start(part, self._index)
        events: list[Event] = [started]
        if content:
            events.append(growing.grow(content))
        return events + self._assembly.end(growing)

    def _end_open(self) -> list[Event]:
        growing, self._open = self._open, None
        return [] if growing is None else self._assembly.end(growing)

    def _cited(self) -> list[Event]:
        """Sources are told at the end, and belong to the last text."""
        growing = self._open
        if growing is None or not isinstance(growing.part, Text):
            return []
        growing.citations += citations_in(self._members, growing.content)
        return [Noted(note=citation, index=growing.index) for citation in growing.citations]


def _raw(args: Any) -> str:
    if args is None:
        return "{}"
    return (args if args.strip() else "{}") if isinstance(args, str) else encode(args).decode()
