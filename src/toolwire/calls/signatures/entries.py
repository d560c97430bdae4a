"""The signature vault: what a back end wants back of its turns, remembered for clients that drop it.

Providers refuse calls without the reasoning that led to them (H075, H082, H083) or without the proof that hangs on the call itself
(H074), and most clients have no place for either. So the thoughts of each turn with calls are remembered, with their places between
its texts and calls. When such a turn comes back without them they are put back (restoring.py), all or none:

- Only what this back end made, for the same model; nothing is invented, and nothing is changed (H076, H077, H079).
- Only if the calls are as they were. Texts may have been shortened, for no proof covers them.
- Thoughts that stood apart stay apart. Where what was between them is not there as it was, none is put back, because
  providers refuse thoughts that were moved together (H080).
- A client that hands back its reasoning gets nothing added. One that hands back the words without the proof gets the
  thoughts in their place, if the words are the same.

Turns without calls are not remembered: every provider lets their reasoning go.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

import msgspec
from msgspec import Struct

from ...types import JsonObject, Message, Opaque, Part, Reasoning, Refusal, Text, ToolCall
from ...wire.exact_json import BadJson, decode, encode
from .fingerprint import NameOf, print_of, text_print


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


class Thoughts(Struct, frozen=True, kw_only=True):
    """What stands together, behind so many calls, and so many characters of text since the last of them. The provider's own
    parts among them are those of tools that it ran."""

    parts: tuple[Reasoning | Opaque, ...]
    calls: int = 0
    text: int = 0


class Secrets(Struct, frozen=True, kw_only=True):
    """What is remembered of a turn. turn tells its calls, texts the words before each of them; members are those of each call."""

    turn: str
    dialect: str
    texts: tuple[str, ...] = ()
    thoughts: tuple[Thoughts, ...] = ()
    members: tuple[JsonObject, ...] = ()


class Span(NamedTuple):
    """A turn with calls that lacks something: messages[start:end]."""

    start: int
    end: int
    calls: tuple[ToolCall, ...]
    is_thinking: bool  # it has its reasoning, and lacks only members of its calls


def secrets_of(parts: Sequence[Part], needs: Needs, name_of: NameOf) -> Secrets | None:
    """Of one turn as the client got it, complete; None where there is nothing to remember."""
    calls = [part for part in parts if isinstance(part, ToolCall)]
    thoughts = _thoughts(parts, needs) if calls else ()
    members = tuple(call.extra.get(needs.dialect, {}) for call in calls)
    if not any(members):
        members = ()
    if not thoughts and not (members and needs.has_members):
        return None
    return Secrets(
        turn=print_of(calls, name_of),
        dialect=needs.dialect,
        texts=tuple(map(text_print, texts_of(parts))),
        thoughts=thoughts,
        members=members,
    )


def lacking(messages: Sequence[Message], needs: Needs) -> list[Span]:
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
                calls.append(part)  # type: ignore[arg-type] # the line above says what it is, at half the cost of isinstance
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


def packed(secrets: Secrets) -> bytes:
    return encode(msgspec.to_builtins(secrets, builtin_types=(Decimal,)))


def unpacked(data: bytes) -> Secrets | None:
    """None if it is not what packed() wrote: an older gateway's, or damaged."""
    try:
        return msgspec.convert(decode(data), Secrets)
    except (BadJson, msgspec.ValidationError):
        return None


def _thoughts(parts: Sequence[Part], needs: Needs) -> tuple[Thoughts, ...]:
    """Those behind the last call led to nothing that could be asked for again."""
    proven = {part.item_id for part in parts if isinstance(part, Reasoning) and needs.takes(part)}
    groups: list[Thoughts] = []
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
                    groups.append(Thoughts(parts=tuple(open_parts), calls=calls, text=text))
                    open_parts = []
                calls, text = (calls + 1, 0) if isinstance(part, ToolCall) else (calls, text + len(part.text))
            case _:
                pass
    if open_parts and needs.has_members:  # a message has one place for them, and they may be told behind its calls
        last = groups.pop() if groups else Thoughts(parts=())
        groups.append(Thoughts(parts=(*last.parts, *open_parts), calls=last.calls, text=last.text))
    has_reasoning = any(isinstance(part, Reasoning) for group in groups for part in group.parts)
    return tuple(groups) if has_reasoning else ()


def _add(spans: list[Span], span: Span, needs: Needs) -> None:
    if not span.is_thinking or (needs.has_members and not any(call.extra for call in span.calls)):
        spans.append(span)
