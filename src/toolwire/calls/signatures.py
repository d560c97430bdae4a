"""Reasoning signatures: what a back end needs back with its turns, for clients that drop it.

Providers refuse calls without the reasoning that led to them (H075, H082, H083) or without the signature on the call itself (H074), and
most clients have no place for either. So the reasoning of each turn with calls is stored, with its position between texts and calls.
When the turn comes back without it, all of it is restored, or none:

- Only what this back end made, for the same model; nothing is invented or changed (H076, H077, H079).
- Only if the calls are unchanged: the same names, values, ids and order; key order, spacing and number format do not count. Texts
  may have been shortened, because no signature covers them.
- Separate reasoning stays separate. If what was between two pieces has changed, none is restored, because providers refuse reasoning
  that was moved together (H080).
- A client that sends its reasoning back gets nothing added. One that sends the text without the signature gets it replaced, if the text
  is the same.

Turns without calls are not stored: every provider accepts them without their reasoning.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from hashlib import blake2b
from typing import Any, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..types import JsonObject, Message, Opaque, Part, Reasoning, Refusal, Text, ToolCall, ToolResult
from ..wire.exact_json import BadJson, decode, encode


class Needs(Struct, frozen=True, kw_only=True):
    """What a back end takes back. proofs are members of Reasoning; it takes a thought that has one of them.

    is_marked: and only one that is marked as its dialect's. has_members: what it adds to a thought or a call counts as proof.
    """

    dialect: str
    proofs: tuple[str, ...] = ()
    is_marked: bool = False
    has_members: bool = False

    def takes(self, part: Reasoning) -> bool:
        if self.has_members and part.extra.get(self.dialect):
            return True
        if self.is_marked and self.dialect not in part.extra:
            return False
        return any(getattr(part, proof) for proof in self.proofs)


class ThoughtGroup(Struct, frozen=True, kw_only=True):
    """Adjacent reasoning, after `calls` calls and `text` characters of text since the last of them. Opaque parts among it belong to
    tools that the provider ran."""

    parts: tuple[Reasoning | Opaque, ...]
    calls: int = 0
    text: int = 0


class Secrets(Struct, frozen=True, kw_only=True):
    """What is stored of a turn. turn: a fingerprint of its calls; texts: of the text before each call; members: of each call."""

    turn: str
    dialect: str
    texts: tuple[str, ...] = ()
    thoughts: tuple[ThoughtGroup, ...] = ()
    members: tuple[JsonObject, ...] = ()


class Span(NamedTuple):
    """A turn with calls that lacks something: messages[start:end]."""

    start: int
    end: int
    calls: tuple[ToolCall, ...]
    is_thinking: bool  # it has its reasoning, and lacks only members of its calls


def secrets_of(parts: Sequence[Part], needs: Needs, name_of: NameOf) -> Secrets | None:
    """Of one turn as the client got it, complete; None where there is nothing to remember."""
    calls: list[ToolCall] = []
    members: list[JsonObject] = []
    has_thoughts = False
    for part in parts:
        if isinstance(part, ToolCall):
            calls.append(part)
            members.append(part.extra.get(needs.dialect, {}))
        has_thoughts = has_thoughts or isinstance(part, Reasoning)
    has_members = any(members)
    thoughts = _thoughts(parts, needs) if has_thoughts and calls else ()
    if not thoughts and not (has_members and needs.has_members):
        return None
    return Secrets(
        turn=print_of(calls, name_of),
        dialect=needs.dialect,
        texts=tuple(map(text_print, texts_of(parts))),
        thoughts=thoughts,
        members=tuple(members) if has_members else (),
    )


def turns_without_reasoning(messages: Sequence[Message], needs: Needs) -> list[Span]:
    """Turns with calls and without what the back end wants with them; every request pays for this look."""
    spans: list[Span] = []
    calls: list[ToolCall] = []
    start, is_thinking = -1, False
    for number, message in enumerate(messages):
        if message.role != "assistant":
            if calls:
                _add(spans, Span(start, number, tuple(calls), is_thinking), needs)
                calls = []
            start = -1
            continue
        if start < 0:
            start, is_thinking = number, False
        for part in message.parts:
            kind = type(part)
            if kind is ToolCall:
                calls.append(part)  # type: ignore[arg-type] # the type was compared above, at half the cost of isinstance
            elif kind is Reasoning and not is_thinking:
                is_thinking = needs.takes(part)  # type: ignore[arg-type] # as above
    if calls:
        _add(spans, Span(start, len(messages), tuple(calls), is_thinking), needs)
    return spans


def is_carried(messages: Sequence[Message], needs: Needs) -> bool:
    """Whether the client hands reasoning back, by the last turn with calls."""
    has_calls = False
    for message in reversed(messages):
        if message.role != "assistant":
            if has_calls:
                return False
            continue
        for part in message.parts:
            if isinstance(part, Reasoning) and needs.takes(part):
                return True
            has_calls = has_calls or isinstance(part, ToolCall)
    return False


def texts_of(parts: Sequence[Part]) -> list[str]:
    """The text before each call, and behind the last."""
    texts: list[list[str]] = [[]]
    for part in parts:
        if isinstance(part, ToolCall):
            texts.append([])
        elif isinstance(part, (Text, Refusal)):
            texts[-1].append(part.text)
    return ["".join(pieces) for pieces in texts]


def pack(secrets: Secrets) -> bytes:
    return encode(msgspec.to_builtins(secrets, builtin_types=(Decimal,)))


def unpack(data: bytes) -> Secrets | None:
    """None if it is not what packed() wrote: an older gateway's, or damaged."""
    try:
        return msgspec.convert(decode(data), Secrets)
    except (BadJson, msgspec.ValidationError):
        return None


def _thoughts(parts: Sequence[Part], needs: Needs) -> tuple[ThoughtGroup, ...]:
    """Reasoning after the last call is left out: no call of the history needs it."""
    proven = {part.item_id for part in parts if isinstance(part, Reasoning) and needs.takes(part)}
    groups: list[ThoughtGroup] = []
    open_parts: list[Reasoning | Opaque] = []
    calls = text = 0
    for part in parts:
        match part:
            case Reasoning() if needs.takes(part) or (part.item_id and part.item_id in proven):
                open_parts.append(part)
            case Opaque() if part.dialect == needs.dialect:
                open_parts.append(part)
            case Opaque():  # the gateway ran a tool here: the back end knows what came before as another turn
                groups, open_parts = [], []
            case Text(text="") | Refusal(text=""):
                pass
            case Text() | Refusal() | ToolCall():
                if open_parts:
                    groups.append(ThoughtGroup(parts=tuple(open_parts), calls=calls, text=text))
                    open_parts = []
                calls, text = (calls + 1, 0) if isinstance(part, ToolCall) else (calls, text + len(part.text))
            case _:
                pass
    if open_parts and needs.has_members:  # a message has one place for them, and they may come after its calls
        last = groups.pop() if groups else ThoughtGroup(parts=())
        groups.append(ThoughtGroup(parts=(*last.parts, *open_parts), calls=last.calls, text=last.text))
    has_reasoning = any(isinstance(part, Reasoning) for group in groups for part in group.parts)
    return tuple(groups) if has_reasoning else ()


def _add(spans: list[Span], span: Span, needs: Needs) -> None:
    if not span.is_thinking or (needs.has_members and not any(call.extra for call in span.calls)):
        spans.append(span)


NameOf: TypeAlias = Callable[[str], str]  # a call's id in the one form that all dialects can carry

_RUN = re.compile(r"[A-Za-z0-9]{9,}")
_DIFFERENT = 6
_EXACT = 2**53  # whole numbers up to here are the same in every language
_OPENING = 20  # messages in which the first user message is looked for
_END = 200  # characters at either end that identify a long text
_LONG = 1000
_LONGEST = 200  # of an id that is compared


def print_of(calls: Iterable[ToolCall], name_of: NameOf) -> str:
    """Equal for the same calls in the same order."""
    digest = blake2b(digest_size=16)
    for call in calls:
        for piece in (name_of(call.id), call.name, _arguments(call)):
            data = piece.encode("utf-8", "surrogatepass")
            digest.update(b"%d " % len(data) + data)
    return digest.hexdigest()


def text_print(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest() if text else ""


def is_random(call_id: str, name: str) -> bool:
    """Whether no other call has this id. Some servers count calls in every conversation alike, or use the tool's name."""
    rest = call_id.replace(name, "") if name else call_id
    return any(
        len(set(found)) >= _DIFFERENT and any(map(str.isdigit, found)) for found in _RUN.findall(rest[:_LONGEST])
    )


class Leading:
    """Fingerprints of what led to a turn: the first user message, and the message before the turn."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages = messages
        user = next((message for message in messages[:_OPENING] if message.role == "user"), None)
        first = "" if user is None else "".join(map(_content, user.parts))
        self._first = blake2b(f"{first}\0".encode("utf-8", "surrogatepass"), digest_size=16)

    def print_of(self, start: int) -> str:
        """For the turn that begins here."""
        messages = self._messages
        while start and messages[start - 1].role == "assistant":
            start -= 1
        digest = self._first.copy()
        if start:
            before = messages[start - 1]
            parts = before.parts
            content = _content(parts[0]) if len(parts) == 1 else "".join(map(_content, parts))
            digest.update((before.role + content).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()


def _content(part: Part) -> str:
    if isinstance(part, (Text, Refusal)):
        text = part.text
    elif isinstance(part, ToolResult):
        texts = [piece.text for piece in part.parts if isinstance(piece, Text)]
        text = texts[0] if len(texts) == 1 else "".join(texts)
    else:
        return type(part).__name__
    return f"{len(text)} {text if len(text) < _LONG else text[:_END] + text[-_END:]} "


def _arguments(call: ToolCall) -> str:
    if call.args is None:
        return call.raw
    try:
        return json.dumps(call.args, sort_keys=True, default=_plain)
    except (RecursionError, ValueError):  # nested too deep, or a whole number of thousands of digits
        return call.raw


def _plain(number: Any) -> int | float:
    """1.0 and 1 are the same to many clients."""
    assert isinstance(number, Decimal)
    is_whole = abs(number) < _EXACT and number == number.to_integral_value()
    return int(number) if is_whole else float(number)


_BEHIND = 1 << 62  # behind all text


def restore_reasoning(
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
    thoughts: list[ThoughtGroup] | None = []
    if not span.is_thinking:
        thoughts = _placed(turn, secrets)
    if thoughts is None or (not thoughts and not secrets.members) or print_of(span.calls, name_of) != secrets.turn:
        return None
    writer = _Writer(secrets, thoughts, is_run)
    for message in turn:
        writer.add(message)
    is_same = len(writer.out) == len(turn) and all(one is other for one, other in zip(writer.out, turn, strict=True))
    return None if is_same else writer.out


def _placed(turn: tuple[Message, ...], secrets: Secrets) -> list[ThoughtGroup] | None:
    """The position of each group in the turn as the client sent it; None where it is unknown, or the client's reasoning differs."""
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
    """Writes a turn with its reasoning; messages that do not change stay the same objects."""

    def __init__(self, secrets: Secrets, thoughts: list[ThoughtGroup], is_run: bool) -> None:
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
