"""Runs answers through decoders and encoders without a server, and checks the contract of events on the way."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from tests.backends.event_contract import check_events
from toolwire.dialects import DIALECTS, FRONTS
from toolwire.dialects.base import AnswerContext, Mint, ResponseDecoder
from toolwire.events import Event, Failed, Finished, FoldedAnswer, PartDelta, PartEnded, PartStarted, fold
from toolwire.types import Message, Opaque, Part, Request, Role
from toolwire.wire.exact_json import decode
from toolwire.wire.sse import SseReader

NAMES = ("chat", "responses", "messages")
ALL = (*NAMES, "gemini")
NOW = 1_800_000_000
PROMPTS: dict[str, dict[str, Any]] = {
    "chat": {"messages": [{"role": "user", "content": "hi"}], "stream_options": {"include_usage": True}},
    "responses": {"input": "hi"},
    "messages": {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 100},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
    "interactions": {"input": "hi"},
    "ollama": {"messages": [{"role": "user", "content": "hi"}]},
}


def make_request(dialect: str, *, is_stream: bool = True, **members: Any) -> Request:
    body = {"model": "m", **PROMPTS[dialect], "stream": is_stream, **members}
    return FRONTS[dialect].decode_request(json.dumps(body).encode(), {})


def message_of(role: Role, *parts: Part) -> Message:
    return Message(role=role, parts=parts)


def numbered_ids() -> Mint:
    numbers = itertools.count(1)
    return lambda prefix: f"{prefix}{next(numbers):024x}"


def pieces(data: bytes, cuts: Iterable[int]) -> list[bytes]:
    places = [0, *sorted(cuts), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(places)]


def run(decoder: ResponseDecoder, chunks: Iterable[bytes]) -> list[Event]:
    events: list[Event] = []
    for chunk in chunks:
        events += decoder.feed(chunk)
    return events + decoder.close()


def events_in(dialect: str, *chunks: bytes, request: Request | None = None) -> list[Event]:
    """What a stream means; whatever it holds, the contract of events must be kept."""
    events = run(DIALECTS[dialect].stream_decoder(request or make_request(dialect)), chunks)
    check(events)
    return events


def body_in(dialect: str, body: bytes, request: Request | None = None) -> list[Event]:
    events = run(DIALECTS[dialect].body_decoder(request or make_request(dialect, is_stream=False)), [body])
    check(events)
    return events


def irregular_in(dialect: str, data: bytes, request: Request | None = None) -> str:
    decoder = DIALECTS[dialect].stream_decoder(request or make_request(dialect))
    run(decoder, [data])
    return decoder.irregular


def check(events: Sequence[Event]) -> None:
    """The contract, for decoders: an answer that fails before it begins is Failed alone."""
    if len(events) == 1 and isinstance(events[0], Failed):
        return
    check_events(_without_opaque_ends(events))


def _without_opaque_ends(events: Sequence[Event]) -> list[Event]:
    """What we do not interpret may end as another value than it began; and choices may come with gaps."""
    starts = {event.index: event.part for event in events if isinstance(event, PartStarted)}
    ranks: dict[int, int] = {}
    if isinstance(events[-1], Finished):
        ranks = {index: rank for rank, index in enumerate(sorted({one.index for one in events[-1].choices}))}
    kept: list[Event] = []
    for event in events:
        if isinstance(event, PartStarted | PartEnded):
            event = msgspec.structs.replace(event, choice=ranks.get(event.choice, event.choice))
        if isinstance(event, PartEnded) and isinstance(event.part, Opaque) and event.index in starts:
            assert isinstance(starts[event.index], Opaque)
            event = msgspec.structs.replace(event, part=starts[event.index])
        if isinstance(event, Finished):
            choices = tuple(msgspec.structs.replace(one, index=ranks[one.index]) for one in event.choices)
            event = msgspec.structs.replace(event, choices=choices)
        kept.append(event)
    return kept


def out(dialect: str, events: Iterable[Any], request: Request | None = None) -> bytes:
    """What a client of this dialect is sent."""
    request = request or make_request(dialect)
    encoder = FRONTS[dialect].encoder(AnswerContext(request=request, mint=numbered_ids(), now=NOW))
    return b"".join([*(encoder.send(event) for event in events), encoder.close()])


def body_out(dialect: str, events: Iterable[Any]) -> Any:
    return decode(out(dialect, events, make_request(dialect, is_stream=False)))


def answer_in(dialect: str, *chunks: bytes, request: Request | None = None) -> FoldedAnswer:
    return fold(events_in(dialect, *chunks, request=request))


def frames(data: bytes) -> list[tuple[str, Any]]:
    """(event name, value) of each frame; the value of [DONE] is that text."""
    reader = SseReader()
    found = reader.feed(data)
    assert reader.close() == [], "a stream ends with a whole frame"
    return [
        (frame.event, "[DONE]" if frame.data == b"[DONE]" else json.loads(frame.data, parse_constant=_refuse))
        for frame in found
    ]


def _refuse(name: str) -> Any:
    raise AssertionError(f"{name} is not JSON")


def texts_of(events: Iterable[Event], index: int) -> str:
    return "".join(event.text for event in events if isinstance(event, PartDelta) and event.index == index)


def terminal(events: Sequence[Event]) -> Finished | Failed:
    last = events[-1]
    assert isinstance(last, Finished | Failed)
    return last


def failure(events: Sequence[Event]) -> Failed:
    last = events[-1]
    assert isinstance(last, Failed), last
    return last
