"""A flow as it is held in memory: redacted, each body one piece of bytes, and the times of its chunks beside it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from msgspec import Struct
from msgspec.structs import replace

from ..telemetry.flow_draft import FlowDraft, Headers, WireDraft, header_items
from .record import (
    Flow,
    FlowReport,
    FlowSummary,
    RecordedFrame,
    RecordedMessage,
    RecordedRequest,
    RecordedResponse,
    RecordedWire,
)
from .redact import FlowRedaction, is_hidden

_STREAM = "text/event-stream"


class SealedWire(Struct, kw_only=True):
    """ends: offsets in reply at which its chunks end; times: when they were received, in seconds since the flow started."""

    dialect: str
    url: str
    method: str
    path: str
    headers: list[tuple[str, str]]
    body: bytes
    request_size: int
    has_cut_request: bool
    status: int | None = None
    reply_headers: list[tuple[str, str]] = []
    reply: bytes = b""
    ends: list[int]
    times: list[float]
    size: int = 0
    is_cut: bool = False
    error: str = ""
    messages: list[RecordedMessage] = []
    opened: float | None = None
    connected: float | None = None
    answered: float | None = None

    @property
    def is_stream(self) -> bool:
        return any(name == "content-type" and _STREAM in value for name, value in self.reply_headers)

    def chunks(self) -> Iterator[tuple[float, bytes]]:
        """The pieces of the reply as they were received."""
        start = 0
        for t, end in zip(self.times, self.ends, strict=True):
            yield t, self.reply[start:end]
            start = end

    def frames(self) -> list[RecordedFrame]:
        """The events of a stream, each with its blank line: together they are the whole body."""
        found, start, chunk = list[RecordedFrame](), 0, 0
        while start < len(self.reply):
            end = self._frame_end(start)
            while chunk < len(self.ends) - 1 and self.ends[chunk] < end:
                chunk += 1
            t = self.times[chunk] if self.times else 0.0
            found.append(RecordedFrame(t=round(t, 6), data=self.reply[start:end].decode("utf-8", "replace")))
            start = end
        return found

    def record(self) -> RecordedWire:
        request = RecordedRequest(
            method=self.method,
            path=self.path,
            headers=self.headers,
            body=self.body.decode("utf-8", "replace"),
            size=self.request_size,
            truncated=self.has_cut_request,
        )
        response = None
        if self.status is not None or self.reply:
            is_stream = self.is_stream
            response = RecordedResponse(
                status=self.status,
                headers=self.reply_headers,
                body=None if is_stream else self.reply.decode("utf-8", "replace"),
                frames=self.frames() if is_stream else None,
                size=self.size,
                truncated=self.is_cut,
            )
        return RecordedWire(
            dialect=self.dialect,
            url=self.url,
            request=request,
            response=response,
            error=self.error,
            messages=self.messages,
            opened=self.opened,
            connected=self.connected,
            answered=self.answered,
        )

    def _frame_end(self, start: int) -> int:
        ends = [at + len(blank) for blank in (b"\n\n", b"\r\n\r\n") if (at := self.reply.find(blank, start)) >= 0]
        return min(ends, default=len(self.reply))


class SealedFlow(Struct, kw_only=True):
    """A flow without secrets."""

    summary: FlowSummary
    client: SealedWire
    upstream: list[SealedWire]
    reports: list[FlowReport]

    def contains(self, words: bytes) -> bool:
        """Whether a body contains this text, in lower case."""
        wires = (self.client, *self.upstream)
        return any(words in wire.body.lower() or words in wire.reply.lower() for wire in wires)


def sealed_from(flow: Flow, seq: int) -> SealedFlow:
    """A flow that was read from a file, with a number of this process."""
    return SealedFlow(
        summary=replace(flow.summary, seq=seq),
        client=_wire_from(flow.client),
        upstream=[_wire_from(wire) for wire in flow.upstream],
        reports=flow.reports,
    )


def _wire_from(wire: RecordedWire) -> SealedWire:
    request, response = wire.request, wire.response
    found = SealedWire(
        dialect=wire.dialect,
        url=wire.url,
        method=request.method,
        path=request.path,
        headers=request.headers,
        body=request.body.encode("utf-8", "replace"),
        request_size=request.size,
        has_cut_request=request.truncated,
        ends=[],
        times=[],
        error=wire.error,
        messages=wire.messages,
        opened=wire.opened,
        connected=wire.connected,
        answered=wire.answered,
    )
    if response is not None:
        frames = [RecordedFrame(t=wire.answered or 0.0, data=response.body or "")]
        pieces = [frame.data.encode("utf-8", "replace") for frame in response.frames or frames]
        found.status, found.reply_headers = response.status, response.headers
        found.reply, found.ends = b"".join(pieces), list(accumulate(map(len, pieces)))
        found.times = [frame.t for frame in response.frames or frames]
        found.size, found.is_cut = response.size, response.truncated
    return found


def texts_of(draft: FlowDraft) -> Iterator[bytes]:
    """Everything in which a secret may be, except for headers that are hidden by their names."""
    bodies: set[bytes] = set()  # a body that is passed unchanged is searched once
    for wire in (draft.client, *draft.upstream):
        yield wire.url.encode("utf-8", "replace")
        bodies.update((wire.body, b"".join(list(wire.pieces))))
        yield wire.error.encode("utf-8", "replace")
        for name, value in (*header_items(wire.headers), *header_items(wire.reply_headers)):
            if not is_hidden(_text(name)):
                yield value.encode("latin-1", "replace") if isinstance(value, str) else value
    for message in draft.messages:
        yield message.data
    yield from bodies


def seal_wires(draft: FlowDraft, redaction: FlowRedaction) -> tuple[SealedWire, list[SealedWire]]:
    """The client's wire and those of the back ends, redacted."""
    start = draft.record.started
    client = _seal(draft.client, start, redaction)
    upstream = [_seal(wire, start, redaction) for wire in draft.upstream]
    if draft.messages:
        upstream.append(_messages(draft, redaction))
    return client, upstream


def _seal(wire: WireDraft, start: float, redaction: FlowRedaction) -> SealedWire:
    pieces = list(wire.pieces)  # the request may still run
    times = wire.times[: len(pieces)]
    reply, ends = redaction.reply(b"".join(pieces), list(accumulate(map(len, pieces))))
    url, mark, query = wire.url.partition("?")
    path = "/" + url.partition("://")[2].partition("/")[2] if "://" in url else url
    query = mark + redaction.query(query) if query else ""
    return SealedWire(
        dialect=wire.dialect,
        url=redaction.text(url) + query,
        method=wire.method,
        path=redaction.text(path) + query,
        headers=_headers(wire.headers, redaction),
        body=redaction.clean(wire.body),
        request_size=wire.request_size,
        has_cut_request=wire.has_cut_request,
        status=wire.status,
        reply_headers=_headers(wire.reply_headers, redaction),
        reply=reply,
        ends=ends,
        times=[round(time - start, 6) for time in times],
        size=wire.size,
        is_cut=wire.is_cut,
        error=redaction.text(wire.error),
        opened=since(wire.opened, start),
        connected=since(wire.connected, start),
        answered=since(wire.answered, start),
    )


def _headers(headers: Headers, redaction: FlowRedaction) -> list[tuple[str, str]]:
    named = [(_text(name).lower(), _text(value)) for name, value in header_items(headers)]
    return [(name, redaction.header(name, value)) for name, value in named]


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("latin-1")


def _messages(draft: FlowDraft, redaction: FlowRedaction) -> SealedWire:
    start, messages = draft.record.started, list(draft.messages)
    contents = redaction.messages([message.data for message in messages])
    return SealedWire(
        dialect="",
        url=messages[0].backend,
        method="",
        path="",
        headers=[],
        body=b"",
        request_size=sum(message.size for message in messages if message.direction == "sent"),
        has_cut_request=False,
        size=sum(message.size for message in messages if message.direction == "received"),
        ends=[],
        times=[],
        messages=[
            RecordedMessage(
                t=round(message.time - start, 6),
                direction=message.direction,
                kind=message.kind,
                data=data.decode("utf-8", "replace"),
                size=message.size,
            )
            for message, data in zip(messages, contents, strict=True)
        ],
        opened=since(messages[0].time, start),
    )


def since(moment: float, start: float) -> float | None:
    """Seconds between the two; None where the moment never came."""
    return max(0.0, round(moment - start, 6)) if moment else None
