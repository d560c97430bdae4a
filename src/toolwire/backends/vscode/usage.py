"""Usage of an answer for which VS Code told none: counted once by the model's own counter, else estimated; always said to be so."""

from __future__ import annotations

import asyncio

from msgspec import Struct

from ...calls.turn import BYTES_PER_TOKEN
from ...ids import new_id
from ...types import Loss, Usage
from ...wire.exact_json import encode
from ..sessions import SessionLost
from .inbox import Overflow
from .window import Window
from .wire.shapes import CallPart, Chat, ChatMessage, Part, ResultPart, TextPart, ThinkingPart

SECONDS = 0.5  # an answer's end may wait so long for its count
_LONGEST = 400_000  # characters; VS Code's counters take their time for more
COUNTED = Loss(
    "usage", "usage", "VS Code told no usage; the texts were counted by the model's own counter, without what it adds"
)
ESTIMATED = Loss(
    "usage", "usage", "VS Code told no usage and did not count; this is an estimate, a token for each four bytes"
)


class Measured(Struct, frozen=True):
    usage: Usage
    note: Loss


async def measured(window: Window, model: str, chat: Chat, said: str, seconds: float = SECONDS) -> Measured:
    """Never fails, and never takes longer than seconds."""
    asked = prompt_of(chat)
    if len(asked) + len(said) <= _LONGEST and window.is_open:
        try:
            async with asyncio.timeout(seconds):
                read, written = await asyncio.gather(_count(window, model, asked), _count(window, model, said))
        except (TimeoutError, SessionLost, Overflow):
            read = written = None
        if read is not None and written is not None:
            return Measured(Usage(input=read, output=written), COUNTED)
    return Measured(Usage(input=estimate(asked), output=estimate(said)), ESTIMATED)


def estimate(text: str) -> int:
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)


def prompt_of(chat: Chat) -> str:
    """What a model reads of it, as one text; pictures are left out."""
    tools = [f"{tool.name} {tool.description} {encode(tool.schema).decode()}" for tool in chat.tools]
    return "\n".join([*tools, *(text for message in chat.messages for text in _texts(message))])


def _texts(message: ChatMessage) -> list[str]:
    return [text for part in message.parts if (text := _text(part))]


def _text(part: Part) -> str:
    match part:
        case TextPart() | ThinkingPart():
            return part.text
        case CallPart():
            return f"{part.name} {encode(part.input).decode()}"
        case ResultPart():
            return "\n".join(filter(None, map(_text, part.parts)))
        case _:
            return ""


async def _count(window: Window, model: str, text: str) -> int | None:
    return await window.count(new_id("n_"), model, text) if text else 0
