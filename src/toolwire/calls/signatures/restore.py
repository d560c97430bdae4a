"""The signature vault: what is remembered of a turn is put back where it stood, or nowhere."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ...types import Message, Opaque, Part, Reasoning, Refusal, Text, ToolCall
from .entries import Secrets, Span, Thoughts, texts_of
from .fingerprint import NameOf, print_of, text_print

_BEHIND = 1 << 62  # behind all text


def restored(
    messages: tuple[Message, ...], found: Sequence[tuple[Span, Secrets]], name_of: NameOf, *, is_run: bool
) -> tuple[tuple[Message, ...], int]:
    """With how many turns got something back; the same object if none did. is_run: each part of a turn is a message."""
    written: list[Message] = []
    done = turns = 0
    for span, secrets in found:
        turn = messages[span.start : span.end]
        whole = _whole(turn, span, secrets, name_of, is_run)
        if whole is not None:
            written += (*messages[done : span.start], *whole)
            done, turns = span.end, turns + 1
    return (*written, *messages[done:]) if turns else messages, turns


def _whole(
    turn: tuple[Message, ...], span: Span, secrets: Secrets, name_of: NameOf, is_run: bool
) -> list[Message] | None:
    """The turn with what it lacks; None where it lacks nothing, or is not what it was."""
    thoughts: list[Thoughts] | None = []
    if not span.is_thinking:
        thoughts = _placed(turn, secrets)
    if thoughts is None or (not thoughts and not secrets.members) or print_of(span.calls, name_of) != secrets.turn:
        return None
    writer = _Writer(secrets, thoughts, is_run)
    for message in turn:
        writer.add(message)
    is_same = len(writer.out) == len(turn) and all(one is other for one, other in zip(writer.out, turn, strict=True))
    return None if is_same else writer.out


def _placed(turn: tuple[Message, ...], secrets: Secrets) -> list[Thoughts] | None:
    """Where each belongs in the turn as the client has it; None where that cannot be said, or its own words differ."""
    thoughts = list(secrets.thoughts)
    if not thoughts:
        return thoughts
    parts = [part for message in turn for part in message.parts]
    own = [part for part in parts if isinstance(part, Reasoning)]
    if own and _words(own) not in ("", _words([part for group in thoughts for part in group.parts])):
        return None
    dialects = {part.dialect for group in thoughts for part in group.parts if isinstance(part, Opaque)}
    if dialects and any(isinstance(part, Opaque) and part.dialect in dialects for part in parts):
        return None
    is_as_was = [text_print(text) == was for text, was in zip(texts_of(parts), secrets.texts, strict=False)]
    for number, group in enumerate(thoughts):
        if not (group.calls < len(is_as_was) and is_as_was[group.calls]):
            if number and thoughts[number - 1].calls == group.calls:  # they would come together
                return None
            thoughts[number] = replace(group, text=_BEHIND if group.text else 0)
    return thoughts


def _words(parts: Sequence[Part]) -> str:
    """Without spacing: clients join thoughts in their own way."""
    return "".join("".join(part.text.split()) for part in parts if isinstance(part, Reasoning))


class _Writer:
    """A turn written anew; messages that gain nothing stay the same objects."""

    def __init__(self, secrets: Secrets, thoughts: list[Thoughts], is_run: bool) -> None:
        self.out: list[Message] = []
        self._dialect = secrets.dialect
        self._members = secrets.members
        self._due = thoughts[::-1]
        self._replaces = bool(thoughts)
        self._is_run = is_run
        self._calls = self._text = 0
        self._parts: list[Part] = []
        self._message = Message(role="assistant", parts=())

    def add(self, message: Message) -> None:
        self._message = message
        for part in message.parts:
            match part:
                case Reasoning():
                    if not self._replaces:
                        self._parts.append(part)
                case Text() | Refusal():
                    self._say(part)
                case ToolCall():
                    self._text = _BEHIND
                    self._put()
                    self._parts.append(self._with_members(part))
                    self._calls, self._text = self._calls + 1, 0
                case _:
                    self._put()
                    self._parts.append(part)
        if self._parts or not message.parts:
            self._close()

    def _say(self, part: Text | Refusal) -> None:
        """A client may have joined texts between which there was a thought."""
        rest, end = part.text, self._text + len(part.text)
        self._put()
        while self._due and self._due[-1].calls == self._calls and self._due[-1].text < end:
            length = self._due[-1].text - self._text
            self._parts.append(replace(part, text=rest[:length]))
            rest, self._text = rest[length:], self._text + length
            self._put()
        self._text = end
        self._parts.append(part if rest is part.text else replace(part, text=rest))

    def _put(self) -> None:
        """Every thought whose place is here."""
        while self._due and self._due[-1].calls == self._calls and self._due[-1].text <= self._text:
            group = self._due.pop()
            if not self._is_run:
                self._parts += group.parts
                continue
            if self._parts:
                self._close()
            self.out.append(Message(role="assistant", parts=group.parts))

    def _close(self) -> None:
        given = self._message.parts
        is_same = len(self._parts) == len(given) and all(
            one is other for one, other in zip(self._parts, given, strict=True)
        )
        self.out.append(self._message if is_same else self._message.with_parts(tuple(self._parts)))
        self._parts = []

    def _with_members(self, call: ToolCall) -> ToolCall:
        kept = self._members[self._calls] if self._calls < len(self._members) else {}
        own = call.extra.get(self._dialect, {})
        if kept.keys() <= own.keys():
            return call
        return replace(call, extra={**call.extra, self._dialect: {**kept, **own}})
