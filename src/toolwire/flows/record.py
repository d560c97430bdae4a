"""The flow record: one request with both wires and everything the gateway reports about it. The form on disk and in the API.

docs/flows.md documents every member. Members may be added; existing ones do not change their meaning.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

VERSION = 1


class RecordedRequest(Struct, frozen=True, kw_only=True):
    """size: bytes that were sent. truncated: body is only the beginning."""

    method: str
    path: str
    headers: list[tuple[str, str]]
    body: str
    size: int
    truncated: bool


class RecordedFrame(Struct, frozen=True, kw_only=True):
    """t: seconds since the flow started."""

    t: float
    data: str


class RecordedResponse(Struct, frozen=True, kw_only=True):
    """A stream has frames, any other response a body."""

    status: int | None
    headers: list[tuple[str, str]]
    body: str | None
    frames: list[RecordedFrame] | None
    size: int
    truncated: bool


class RecordedMessage(Struct, frozen=True, kw_only=True):
    """For back ends that are not reached over HTTP."""

    t: float
    direction: str
    kind: str
    data: str
    size: int


class RecordedWire(Struct, frozen=True, kw_only=True):
    """One request to a back end, or the client's. opened, connected, answered: seconds since the flow started."""

    dialect: str
    url: str
    request: RecordedRequest
    response: RecordedResponse | None
    error: str = ""
    messages: list[RecordedMessage] = []
    opened: float | None = None
    connected: float | None = None
    answered: float | None = None


class RecordedCall(Struct, frozen=True, kw_only=True):
    """valid_before: as the model wrote it. valid_after: as the client got it. None where calls are not checked."""

    id: str
    name: str
    valid_before: bool | None
    valid_after: bool | None


class RecordedUsage(Struct, frozen=True, kw_only=True):
    input: int
    cached: int
    output: int
    reasoning: int


class FlowTimings(Struct, frozen=True, kw_only=True):
    """Seconds. queue: until the first request to the back end. connect: of that request. The others: since the start."""

    queue: float | None = None
    connect: float | None = None
    first_byte: float | None = None
    first_token: float | None = None
    total: float | None = None


class FlowReport(Struct, frozen=True, kw_only=True):
    """Something that the gateway did. kind: fallback, repair, loss, correction or fault. before, after: the arguments of a repaired call."""

    kind: str
    code: str
    where: str
    text: str
    tool: str = ""
    before: str = ""
    after: str = ""


class FlowSummary(Struct, frozen=True, kw_only=True):
    """outcome: open, ok, error or client_gone. previous: the flow before this one in the same conversation."""

    id: str
    seq: int
    started: float
    ended: float | None
    dialect: str
    path: str
    model: str
    backend: str
    backend_dialect: str
    sent_model: str
    stream: bool
    status: int | None
    outcome: str
    error: str
    message: str
    verbatim: bool
    translated: str
    route: str
    repairs: int
    losses: int
    corrections: int
    calls: list[RecordedCall]
    usage: RecordedUsage | None
    cost: float | None
    timings: FlowTimings
    conversation: str
    previous: str | None
    key: str
    preview: str
    request_id: str = ""
    how: str = ""
    took_over: str = ""


class Flow(Struct, frozen=True, kw_only=True):
    """One request, redacted. events: what the answer means, decoded from the wire."""

    summary: FlowSummary
    client: RecordedWire
    upstream: list[RecordedWire]
    reports: list[FlowReport]
    events: list[dict[str, Any]] = []
    version: int = VERSION
