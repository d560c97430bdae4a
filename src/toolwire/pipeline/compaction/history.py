"""The conversation that is compacted: its size, what follows the summary unchanged, and calls that wait for their results."""

from __future__ import annotations

from collections.abc import Sequence

from ...calls.turn import BYTES_PER_TOKEN
from ...types import Media, Message, Opaque, Part, Reasoning, Refusal, Text, ToolCall, ToolResult

_INSTRUCTIONS = ("system", "developer")
_MEDIUM = 6000  # characters: a picture costs about as much
_OPAQUE = 400
_MAX_TAIL = 32_000  # characters


def split_instructions(messages: Sequence[Message]) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """The instructions, which every request repeats, and the conversation. Instructions after its start belong to it."""
    heads, conversation = list[Message](), list[Message]()
    for message in messages:
        is_instruction = message.role in _INSTRUCTIONS and not conversation
        (heads if message.is_head or message.declares_tools or is_instruction else conversation).append(message)
    return tuple(heads), tuple(conversation)


def tokens_of(messages: Sequence[Message]) -> int:
    """An estimate by length."""
    return sum(map(size_of, messages)) // BYTES_PER_TOKEN


def size_of(message: Message) -> int:
    """In characters."""
    return sum(map(_size, message.parts))


def _size(part: Part) -> int:
    match part:
        case Text() | Refusal() | Reasoning():
            return len(part.text)
        case ToolCall():
            return len(part.name) + len(part.raw)
        case ToolResult():
            return sum(map(_size, part.parts))
        case Media():
            return _MEDIUM
        case Opaque():
            return _OPAQUE


def open_calls(messages: Sequence[Message]) -> list[ToolCall]:
    """Calls without a result, in order."""
    answered = {part.call_id for message in messages for part in message.parts if isinstance(part, ToolResult)}
    return [
        part for message in messages for part in message.parts if isinstance(part, ToolCall) and part.id not in answered
    ]


def waiting_message(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Open calls as one message: their results come after the summary."""
    calls = open_calls(messages)
    return (Message(role="assistant", parts=tuple(calls)),) if calls else ()


def last_turn(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The end of the conversation that stays as it is: from the last text of the user on, or the last calls with their results, or nothing
    if that is long. It never begins with a result."""
    total, size = sum(map(size_of, messages)), 0
    most, found = min(_MAX_TAIL, total // 2), len(messages)
    for index in range(len(messages) - 1, -1, -1):
        size += size_of(messages[index])
        if size > most:
            break
        if messages[index].role == "assistant" or is_users(messages[index]):
            found = index
        if is_users(messages[index]):
            break
    return messages[found:] or waiting_message(messages)


def is_users(message: Message) -> bool:
    """Whether the user has written it, and not only a tool."""
    return message.role == "user" and any(isinstance(part, Text | Media) for part in message.parts)
