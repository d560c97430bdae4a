"""Turns complete parts into the events of a stream, for back ends that make answers in this process."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias, assert_never

from ..errors import BadRequest
from ..events import Event, Noted, PartDelta, PartEnded, PartStarted, content_of, emptied
from ..types import Json, Media, Message, Opaque, Part, Reasoning, Refusal, Request, Text, ToolCall, ToolResult, Usage

Cutter: TypeAlias = Callable[[str], list[str]]  # a text -> its pieces, which join to that text

_MOST_CHOICES = 128
_WORD = re.compile(r"\S+\s*|\s+")


def choice_events(choices: Sequence[Sequence[Part]], cut: Cutter) -> Iterator[Event]:
    """The events of all parts, one choice after the other, without Started and Finished."""
    index = 0
    for choice, parts in enumerate(choices):
        for part in parts:
            yield from part_events(part, index, choice, cut)
            index += 1


def part_events(part: Part, index: int, choice: int, cut: Cutter) -> Iterator[Event]:
    """A text with logprobs has one for each of its pieces."""
    yield PartStarted(index=index, part=emptied(part), choice=choice)
    logprobs = part.logprobs if isinstance(part, Text) else None
    for position, piece in enumerate(cut(content_of(part))):
        yield PartDelta(index, piece, None if logprobs is None else logprobs[position : position + 1])
    if isinstance(part, Text):
        for citation in part.citations:
            yield Noted(note=citation, index=index)
    yield PartEnded(index=index, part=part, choice=choice)


def split_words(text: str) -> list[str]:
    """Each word with the space that follows it."""
    return _WORD.findall(text)


def chunk_splitter(size: int) -> Cutter:
    """Pieces of that many characters; 0: all in one."""

    def cut(text: str) -> list[str]:
        if size <= 0:
            return [text] if text else []
        return [text[start : start + size] for start in range(0, len(text), size)]

    return cut


def batches(events: Iterable[Event]) -> Iterator[list[Event]]:
    """Each batch ends with a delta or with the end of a part."""
    batch: list[Event] = []
    for event in events:
        batch.append(event)
        if isinstance(event, PartDelta | PartEnded):
            yield batch
            batch = []
    if batch:
        yield batch


def requested_choices(request: Request) -> int:
    """The number of answers that the client requests. Raises BadRequest if it is out of range."""
    wanted = request.sampling.choices
    if not 1 <= wanted <= _MOST_CHOICES:
        raise BadRequest(f"found {wanted} choices; expected 1 to {_MOST_CHOICES}.", where="n")
    return wanted


def estimated_usage(request: Request, choices: Sequence[Sequence[Part]]) -> Usage:
    """Four characters per token, at least one token each way."""
    written = [part for parts in choices for part in parts]
    thought = sum(len(part.text) for part in written if isinstance(part, Reasoning))
    return Usage(
        input=tokens(sum(map(message_length, request.messages))),
        output=tokens(sum(len(content_of(part)) for part in written)),
        reasoning=tokens(thought) if thought else 0,
    )


def tokens(characters: int) -> int:
    return max(1, characters // 4)


def message_length(message: Message) -> int:
    return sum(len(text_of(part)) for part in message.parts)


def text_of(part: Part) -> str:
    """The text of a part as a model reads it; media are named in brackets."""
    match part:
        case Text() | Refusal() | Reasoning():
            return part.text
        case ToolCall():
            return part.raw
        case ToolResult():
            return "".join(map(text_of, part.parts))
        case Media():
            return f"[{part.kind}]"
        case Opaque():
            return ""
        case _:
            assert_never(part)


def results_of(messages: Iterable[Message]) -> list[ToolResult]:
    """The tool results of a conversation, in order."""
    return [part for message in messages for part in message.parts if isinstance(part, ToolResult)]


def plausible_logprobs(pieces: Iterable[str]) -> tuple[Json, ...]:
    """One entry for each piece, always with the same probability."""
    return tuple(
        {
            "token": piece,
            "logprob": -0.1,
            "bytes": list(piece.encode("utf-8", "surrogatepass")),
            "top_logprobs": [],
        }
        for piece in pieces
    )
