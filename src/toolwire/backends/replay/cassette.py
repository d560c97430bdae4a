"""Reads a cassette: JSON lines, each a recorded flow (docs/flows.md), and decodes its request and its answer.

Only the members that a replay needs are read, so cassettes of later versions can be read as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from ...dialects import DIALECTS, FRONTS
from ...errors import ConfigError, GatewayError, quote
from ...events import Event, Failed
from ...types import Request

_MAX_BYTES = 1 << 30


class _Frame(Struct, frozen=True):
    t: float
    data: str


class _Sent(Struct, frozen=True):
    path: str
    body: str
    truncated: bool = False


class _Received(Struct, frozen=True):
    status: int | None
    body: str | None = None
    frames: list[_Frame] | None = None
    truncated: bool = False


class _Wire(Struct, frozen=True):
    dialect: str
    request: _Sent
    response: _Received | None = None


class _Summary(Struct, frozen=True):
    model: str = ""


class _Flow(Struct, frozen=True):
    summary: _Summary
    client: _Wire
    upstream: list[_Wire] = []


class TimedEvents(Struct, frozen=True):
    """t: seconds since the first byte of the answer."""

    t: float
    events: list[Event]


class CassetteEntry(Struct, frozen=True, kw_only=True):
    """number: its line in the file. is_partial: the request refers to a stored answer, so it has only the new messages.

    status and error: of a request that was refused."""

    number: int
    dialect: str
    model: str
    request: Request
    answer: tuple[TimedEvents, ...] = ()
    status: int = 200
    error: GatewayError | None = None

    @property
    def is_partial(self) -> bool:
        state = self.request.state
        return state is not None and bool(state.previous or state.conversation or state.is_leaning)


def read_cassette(path: Path) -> list[CassetteEntry]:
    """Raises ConfigError for a file that is no cassette."""
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise ConfigError(f"the cassette has more than {_MAX_BYTES >> 20} MB.", where=str(path))
        data = path.read_bytes()
    except OSError as fault:
        raise ConfigError(f"the cassette cannot be read: {fault.strerror}.", where=str(path)) from None
    entries = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip():
            entry = _entry(line, number, path)
            if entry is not None:
                entries.append(entry)
    return entries


def _entry(line: bytes, number: int, path: Path) -> CassetteEntry | None:
    """None for a flow without an answer: its client disconnected, or it is no request to a model."""
    try:
        flow = msgspec.json.decode(line, type=_Flow)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
        raise ConfigError(f"line {number} is no recorded flow: {fault}.", where=str(path)) from None
    if flow.client.dialect not in FRONTS:
        known = ", ".join(FRONTS)
        raise ConfigError(
            f"line {number}: found the dialect {quote(flow.client.dialect)}; expected one of {known}.", where=str(path)
        )
    wire, sent = _answered_wire(flow), flow.client.request
    if wire is None or wire.response is None or wire.response.status is None:
        return None
    if sent.truncated or wire.response.truncated:
        raise ConfigError(
            f"line {number} was recorded only in part.",
            where=str(path),
            hint="Record it again: `toolwire record FILE`.",
        )
    try:
        request = _request(flow.client)
    except GatewayError as fault:
        raise ConfigError(f"line {number}: {fault.message}", where=str(path)) from None
    if request is None:
        return None
    entry = CassetteEntry(number=number, dialect=flow.client.dialect, model=flow.summary.model, request=request)
    if wire.response.status >= 300:
        error = DIALECTS[wire.dialect].decode_error(wire.response.status, (wire.response.body or "").encode(), {})
        return msgspec.structs.replace(entry, status=wire.response.status, error=error)
    return msgspec.structs.replace(entry, answer=tuple(_answer(wire.response, wire.dialect, request)))


def _answered_wire(flow: _Flow) -> _Wire | None:
    """What the client got, if its dialect can be decoded; else what the back end sent last."""
    if flow.client.dialect in DIALECTS:
        return flow.client
    return next((wire for wire in reversed(flow.upstream) if wire.dialect in DIALECTS and wire.response), None)


def _request(wire: _Wire) -> Request | None:
    front = FRONTS[wire.dialect]
    path, _, query = wire.request.path.partition("?")
    short = path.removeprefix("/v1").rstrip("/")
    endpoint = front.routes.get(short) or front.routes.get(path) or front.match(path, query.encode())
    if endpoint is None or endpoint.decode is None or endpoint.task != "answer":
        return None
    return endpoint.decode(wire.request.body.encode(), {})


def _answer(response: _Received, dialect: str, request: Request) -> Iterator[TimedEvents]:
    codec = DIALECTS[dialect]
    if response.frames is None:
        decoder = codec.body_decoder(request)
        yield TimedEvents(0.0, [*decoder.feed((response.body or "").encode()), *decoder.close()])
        return
    stream = codec.stream_decoder(request)
    first = response.frames[0].t if response.frames else 0.0
    t = 0.0
    for frame in response.frames:
        t = max(0.0, frame.t - first)
        if events := stream.feed(frame.data.encode()):
            yield TimedEvents(t, events)
    if events := stream.close():
        yield TimedEvents(t, [event for event in events if not isinstance(event, Failed)] or events)
