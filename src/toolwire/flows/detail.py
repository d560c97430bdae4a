"""One flow with everything that is known about it: what is stored, and what is computed when a reader asks for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from ..dialects import DIALECTS
from ..dialects.base import Decode
from ..errors import GatewayError
from ..events import Event, FoldedAnswer, fold
from ..types import JsonObject, Request
from .changes import FlowChanges, changes_between
from .events import decode_reply, event_json
from .record import Flow, FlowSummary
from .sealed import SealedFlow, SealedWire

_MAX_EVENTS = 20_000


def flow_record(flow: SealedFlow, *, has_events: bool = False) -> Flow:
    """has_events: decode the replies."""
    return Flow(
        summary=flow.summary,
        client=flow.client.record(),
        upstream=[wire.record() for wire in flow.upstream],
        reports=flow.reports,
        events=list(events_of(flow)) if has_events else [],
    )


def detail(flow: SealedFlow, previous: SealedFlow | None = None) -> JsonObject:
    """For the API: the members of the summary, and the rest of the flow beside them. previous: the flow before it in its conversation."""
    found: JsonObject = msgspec.to_builtins(flow_record(flow, has_events=True))
    changes: FlowChanges | None = changes_between(previous, flow) if previous is not None else None
    return {**found.pop("summary"), **found, "changes": msgspec.to_builtins(changes)}


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


def request_of(flow: SealedFlow, decode: Decode | None) -> Request | None:
    """None if its body is not recorded as a whole, or is no request."""
    if decode is None or flow.client.has_cut_request or not flow.client.body:
        return None
    try:
        return decode(flow.client.body, {})
    except GatewayError:
        return None


def answer_of(flow: SealedFlow) -> FoldedAnswer | None:
    """As the client received it; if its dialect cannot be decoded, as the last back end sent it. None if it is not complete."""
    for wire in (flow.client, *reversed(flow.upstream)):
        try:
            return fold(_reply_events(flow, wire))
        except GatewayError:
            continue
    return None


def _decoded(summary: FlowSummary, wire: SealedWire) -> Iterator[JsonObject]:
    if wire.status is None or wire.status >= 300 or not wire.reply:
        return
    request = Request(model=summary.model, messages=(), stream=wire.is_stream, origin=summary.dialect)
    for t, event in decode_reply(wire.dialect, request, wire.chunks()):
        yield event_json(t, event)


def _reply_events(flow: SealedFlow, wire: SealedWire) -> Iterator[Event]:
    request = Request(model=flow.summary.model, messages=(), stream=wire.is_stream, origin=flow.summary.dialect)
    for _, event in decode_reply(wire.dialect, request, wire.chunks()):
        if not isinstance(event, str):
            yield event
