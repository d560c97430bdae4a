"""Canonical events of recorded replies: decoded again from the bytes, so that recording need not store them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import msgspec

from ..dialects import DIALECTS
from ..dialects.base import ResponseDecoder
from ..errors import GatewayError
from ..events import Event, Failed, PartDelta, PartStarted
from ..telemetry import Record
from ..types import JsonObject, Request

Chunks: TypeAlias = Iterable[tuple[float, bytes]]  # when a piece was received, and the piece


def decode_reply(dialect: str, request: Request, chunks: Chunks) -> Iterator[tuple[float, Event | str]]:
    """Each event with the time of its piece. A text says why the rest cannot be decoded. request.stream: the reply is a stream."""
    if dialect not in DIALECTS:
        return
    found = DIALECTS[dialect]
    decoder: ResponseDecoder = found.stream_decoder(request) if request.stream else found.body_decoder(request)
    t = 0.0
    try:
        for t, data in chunks:
            yield from ((t, event) for event in decoder.feed(data))
        yield from ((t, event) for event in decoder.close())
    except Exception as fault:  # a decoder meets the bytes of any server here, and a reader wants the rest of the flow
        yield t, type(fault).__name__


def first_content(dialect: str, record: Record, chunks: Chunks) -> float | None:
    """When the first text or call of a stream was received."""
    request = Request(model=record.model, messages=(), stream=True, origin=record.dialect)
    for t, event in decode_reply(dialect, request, chunks):
        if isinstance(event, PartDelta | PartStarted):
            return t
    return None


def event_json(t: float, event: Event | str) -> JsonObject:
    if isinstance(event, str):
        return {"t": round(t, 6), "type": "undecodable", "text": event}
    if isinstance(event, Failed):
        error: GatewayError = event.error
        return {"t": round(t, 6), "type": "failed", "error": error.code, "text": error.message}
    value: Any = msgspec.to_builtins(event, enc_hook=str)
    return {"t": round(t, 6), **value}
