"""The same text as a stream of Chat Completions, through all that stands between a back end and a client that speak it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from itertools import count
from typing import Any

from toolwire.calls.schemas import Schemas
from toolwire.calls.turn import Turn
from toolwire.calls.validation import OfferedTools, ToolOffer
from toolwire.calls.written.splitter import CallSplitter, SplitterPolicy
from toolwire.dialects import DIALECTS
from toolwire.dialects.base import AnswerContext
from toolwire.events import Event, PartEnded
from toolwire.pipeline.verbatim import Tap, Translator, tap_of
from toolwire.types import Message, Request, Text, Tool, ToolCall

from .reading import Heard

Json = Any


class Line:
    """One stream. A tap passes bytes that are right as they came; a translator writes all of them anew."""

    def __init__(
        self, tools: Sequence[Tool], schemas: Schemas, *, is_tap: bool, listens: bool, is_instructed: bool = False
    ) -> None:
        numbers = count()
        mint = lambda prefix: f"{prefix}{next(numbers)}"  # noqa: E731 # one line, three users
        request = Request(
            model="model",
            messages=(Message(role="user", parts=(Text(text="?"),)),),
            tools=tuple(tools),
            stream=True,
            origin="chat",
        )
        offer = ToolOffer(tools)
        spoken = (
            CallSplitter(OfferedTools(offer, schemas, is_instructed), offer, mint, SplitterPolicy())
            if listens
            else None
        )
        turn = Turn(request, mint, splitter=None if spoken is None else lambda first: spoken)
        make_encoder = partial(DIALECTS["chat"].encoder, AnswerContext(request=request, mint=mint, now=1))
        decoder = DIALECTS["chat"].stream_decoder(request)
        self.pipe: Tap | Translator = (
            tap_of(decoder, turn, make_encoder, None) if is_tap else Translator(decoder, turn, make_encoder)
        )


def heard_through(line: Line, text: str, size: int) -> Heard:
    """What a client can make of it: calls and text, as the events say that leave."""
    events: list[Event] = []
    output: list[bytes] = []
    for data in frames(text, size):
        batch = line.pipe.feed(data)
        events += batch.events
        output.append(batch.wire)
    batch = line.pipe.close()
    calls = [event.part for event in [*events, *batch.events] if isinstance(event, PartEnded)]
    words = _content(b"".join([*output, batch.wire]))
    return Heard(tuple(part for part in calls if isinstance(part, ToolCall)), words)


def _content(wire: bytes) -> str:
    chunks = [json.loads(line[6:]) for line in wire.decode().split("\n") if line.startswith("data: {")]
    return "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk.get("choices", ()))


def frames(text: str, size: int) -> list[bytes]:
    """A stream as servers write it, one frame for each piece."""
    deltas = [{"content": text[start : start + size]} for start in range(0, len(text), size)]
    return [
        _frame({"role": "assistant", "content": ""}),
        *map(_frame, deltas),
        _frame({}, "stop"),
        b"data: [DONE]\n\n",
    ]


def _frame(delta: Json, reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
    chunk = {"id": "a", "object": "chat.completion.chunk", "created": 1, "model": "model", "choices": [choice]}
    return b"data: " + json.dumps(chunk, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"
