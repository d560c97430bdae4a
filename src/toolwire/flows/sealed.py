"""A flow as it is held in memory: redacted, each body one piece of bytes, and the times of its chunks beside it."""

from __future__ import annotations

from array import array

from msgspec import Struct

from ..telemetry.flow_draft import CHUNK_COST, FLOW_COST, FlowDraft, HeaderItems, WireDraft
from .record import (
    FlowReport,
    FlowSummary,
    RecordedFrame,
    RecordedMessage,
    RecordedRequest,
    RecordedResponse,
    RecordedWire,
)
from .redact import WireRedaction

_HEADER_COST = 200
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
    ends: array[int]
    times: array[float]
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

    @property
    def memory(self) -> int:
        headers = len(self.headers) + len(self.reply_headers)
        messages = sum(len(message.data) + CHUNK_COST for message in self.messages)
        return len(self.body) + len(self.reply) + 16 * len(self.ends) + _HEADER_COST * headers + messages

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


class SealedFlow:
    """search: all text in which a reader looks for words, lower case."""

    def __init__(
        self, summary: FlowSummary, client: SealedWire, upstream: list[SealedWire], reports: list[FlowReport]
    ) -> None:
        self.summary = summary
        self.client = client
        self.upstream = upstream
        self.reports = reports
        shared = sum(len(wire.body) for wire in upstream if wire.body is client.body)
        shared += sum(len(wire.reply) for wire in upstream if wire.reply is client.reply)
        texts = sum(len(report.before) + len(report.after) for report in reports)
        self.memory = FLOW_COST + client.memory + sum(wire.memory for wire in upstream) - shared + texts

    def contains(self, words: bytes) -> bool:
        """Whether a body contains this text, in lower case."""
        wires = (self.client, *self.upstream)
        return any(words in wire.body.lower() or words in wire.reply.lower() for wire in wires)


def seal_wires(draft: FlowDraft, redaction: WireRedaction) -> tuple[SealedWire, list[SealedWire]]:
    """The client's wire and those of the back ends, redacted. Equal bodies share their bytes."""
    start = draft.record.started
    client = _seal(draft.client, start, redaction, draft.secret)
    upstream = [_seal(wire, start, redaction, draft.secret) for wire in draft.upstream]
    if draft.messages:
        upstream.append(_messages(draft, redaction))
    for wire in upstream:
        wire.body = client.body if wire.body == client.body else wire.body
        wire.reply = client.reply if wire.reply == client.reply else wire.reply
    return client, upstream


def _seal(wire: WireDraft, start: float, redaction: WireRedaction, secret: str) -> SealedWire:
    chunks = list(wire.chunks)  # the request may still run
    reply, ends = b"".join([data for _, data in chunks]), list[int]()
    at = 0
    for _, data in chunks:
        at += len(data)
        ends.append(at)
    reply, ends = redaction.body(reply, ends, secret)
    url, mark, query = wire.url.partition("?")
    path = "/" + url.partition("://")[2].partition("/")[2] if "://" in url else url
    query = mark + redaction.query(query, secret) if query else ""
    return SealedWire(
        dialect=wire.dialect,
        url=redaction.text(url, secret) + query,
        method=wire.method,
        path=redaction.text(path, secret) + query,
        headers=_headers(wire.headers, redaction, secret),
        body=redaction.clean(wire.body, secret),
        request_size=wire.request_size,
        has_cut_request=wire.has_cut_request,
        status=wire.status,
        reply_headers=_headers(wire.reply_headers, redaction, secret),
        reply=reply,
        ends=array("Q", ends),
        times=array("d", [time - start for time, _ in chunks]),
        size=wire.size,
        is_cut=wire.is_cut,
        error=redaction.text(wire.error, secret) if wire.error else "",
        opened=since(wire.opened, start),
        connected=since(wire.connected, start),
        answered=since(wire.answered, start),
    )


def _headers(headers: HeaderItems, redaction: WireRedaction, secret: str) -> list[tuple[str, str]]:
    named = [(_text(name).lower(), _text(value)) for name, value in headers]
    return [(name, redaction.header(name, value, secret)) for name, value in named]


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("latin-1")


def _messages(draft: FlowDraft, redaction: WireRedaction) -> SealedWire:
    start, secret, messages = draft.record.started, draft.secret, list(draft.messages)
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
        ends=array("Q"),
        times=array("d"),
        messages=[
            RecordedMessage(
                t=round(message.time - start, 6),
                direction=message.direction,
                kind=message.kind,
                data=redaction.clean(message.data, secret).decode("utf-8", "replace"),
                size=message.size,
            )
            for message in messages
        ],
        opened=since(messages[0].time, start),
    )


def since(moment: float, start: float) -> float | None:
    """Seconds between the two; None where the moment never came."""
    return max(0.0, round(moment - start, 6)) if moment else None
