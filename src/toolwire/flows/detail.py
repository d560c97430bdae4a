"""One flow with everything that is known about it: what is stored, and what is computed when a reader asks for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ..dialects import DIALECTS
from ..dialects.base import ResponseDecoder
from ..errors import GatewayError
from ..events import Event, Failed
from ..types import JsonObject, Request
from .record import Flow, FlowSummary
from .sealed import SealedFlow, SealedWire

_MAX_EVENTS = 20_000


def flow_record(flow: SealedFlow) -> Flow:
    return Flow(
        summary=flow.summary,
        client=flow.client.record(),
        upstream=[wire.record() for wire in flow.upstream],
        reports=flow.reports,
        events=list(events_of(flow)),
    )


def detail(flow: SealedFlow) -> JsonObject:
    """For the API: the members of the summary, and the rest of the flow beside them."""
    found: JsonObject = msgspec.to_builtins(flow_record(flow))
    return {**found.pop("summary"), **found}


def events_of(flow: SealedFlow) -> Iterator[JsonObject]:
    """What the answer means, in canonical events, each with its time. Decoded from the replies of the back ends; where those have no
    dialect, from what the client got. upstream: which reply it is from, None for the client's."""
    wires = [(number, wire) for number, wire in enumerate(flow.upstream) if wire.dialect in DIALECTS]
    sources: Sequence[tuple[int | None, SealedWire]] = wires or [(None, flow.client)]
    count = 0
    for number, wire in sources:
        for event in _decoded(flow.summary, wire):
            yield {**event, "upstream": number}
            count += 1
            if count >= _MAX_EVENTS:
                return


def _decoded(summary: FlowSummary, wire: SealedWire) -> Iterator[JsonObject]:
    if wire.dialect not in DIALECTS or wire.status is None or wire.status >= 300 or not wire.reply:
        return
    dialect = DIALECTS[wire.dialect]
    request = Request(model=summary.model, messages=(), stream=wire.is_stream, origin=summary.dialect)
    decoder: ResponseDecoder = dialect.stream_decoder(request) if wire.is_stream else dialect.body_decoder(request)
    start, t = 0, 0.0
    try:
        for end, t in zip(wire.ends, wire.times, strict=True):
            yield from (_event(event, t) for event in decoder.feed(wire.reply[start:end]))
            start = end
        yield from (_event(event, t) for event in decoder.close())
    except Exception as fault:  # a decoder meets the bytes of any server here, and a reader wants the rest of the flow
        yield {"t": round(t, 6), "type": "undecodable", "text": type(fault).__name__}


def _event(event: Event, t: float) -> JsonObject:
    if isinstance(event, Failed):
        error: GatewayError = event.error
        return {"t": round(t, 6), "type": "failed", "error": error.code, "text": error.message}
    value: Any = msgspec.to_builtins(event, enc_hook=str)
    return {"t": round(t, 6), **value}
