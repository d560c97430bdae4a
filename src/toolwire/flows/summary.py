"""What a list of flows shows of each one, and the reports of what the gateway did, both from the record of the request."""

from __future__ import annotations

from hashlib import blake2b

from ..calls.validation import CallMade
from ..telemetry import Record
from ..telemetry.flow_draft import FlowDraft
from ..types import Message, Request, Text, Usage
from .record import FlowReport, FlowSummary, FlowTimings, RecordedCall, RecordedUsage
from .redact import WireRedaction
from .sealed import since

_PREVIEW = 160
_HASHED = 10_000
_MAX_REPORTS = 200
_VALID = {"right": (True, True), "repaired": (False, True), "unchecked": (None, None)}


def summarize(draft: FlowDraft, redaction: WireRedaction) -> FlowSummary:
    """Of a request that is open or has ended."""
    record, secret = draft.record, draft.secret
    is_over = bool(record.ended) and draft.is_answered
    ended = draft.started + record.ended - record.started if is_over else None
    return FlowSummary(
        id=draft.id,
        seq=draft.seq,
        started=round(draft.started, 6),
        ended=None if ended is None else round(ended, 6),
        dialect=record.dialect,
        path=redaction.text(draft.client.url.partition("?")[0], secret),
        model=redaction.text(record.model, secret),
        backend=record.backend,
        backend_dialect=draft.upstream[0].dialect if draft.upstream else "",
        sent_model=redaction.text(record.sent_model, secret),
        stream=record.is_stream,
        status=draft.client.status or record.status or None,
        outcome=record.outcome if is_over else "open",
        error=record.error,
        message=redaction.text(draft.message, secret),
        verbatim=record.is_verbatim,
        translated=record.translated,
        route=redaction.text(record.route, secret),
        repairs=record.tally.repaired + record.history.total(),
        losses=len(record.losses),
        corrections=record.tally.corrections,
        calls=[_call(call, redaction) for call in record.tally.calls],
        usage=_usage(record.usage),
        cost=None,
        timings=_timings(draft, is_over=is_over),
        conversation=conversation_of(draft.request),
        previous=None,
        key="",
        preview=redaction.text(_preview(draft.request), secret),
        request_id=record.request_id,
        how=redaction.text(record.how, secret),
        took_over=record.took_over,
    )


def reports_of(draft: FlowDraft, redaction: WireRedaction) -> list[FlowReport]:
    """In the order of the request: history, losses, calls, the error."""
    record, secret = draft.record, draft.secret
    found = [*_history_reports(record), *_call_reports(record)]
    found += [
        FlowReport(kind="loss", code=loss.feature, where=loss.where, text=redaction.text(loss.why, secret))
        for loss in record.losses
    ]
    if record.tally.corrections:
        text = f"The model was asked {record.tally.corrections} time(s) to correct its calls; {record.tally.corrected} call(s) were corrected."
        found.append(FlowReport(kind="correction", code="guard_retry", where="answer", text=text))
    if record.outcome == "error":
        text = redaction.text(draft.message, secret)
        found.append(FlowReport(kind="fault", code=record.error, where=record.backend or "gateway", text=text))
    return found[:_MAX_REPORTS]


def conversation_of(request: Request | None) -> str:
    """The same for all requests that repeat one history: a hash of its first user message. "" where there is none."""
    if request is None:
        return ""
    first = next((message for message in request.messages if message.role == "user"), None)
    text = _text(first)[:_HASHED] if first is not None else ""
    if not text:
        return ""
    return blake2b(f"{request.owner}\0{text}".encode("utf-8", "replace"), digest_size=8).hexdigest()


def _preview(request: Request | None) -> str:
    """The last text of the user."""
    for message in reversed(request.messages if request is not None else ()):
        if message.role == "user" and (text := _text(message, is_last=True)):
            return " ".join(text[: 4 * _PREVIEW].split())[:_PREVIEW]
    return ""


def _text(message: Message, *, is_last: bool = False) -> str:
    texts = [part.text for part in message.parts if isinstance(part, Text)]
    return (texts[-1] if is_last else "\n".join(texts)) if texts else ""


def _call(call: CallMade, redaction: WireRedaction) -> RecordedCall:
    before, after = _VALID.get(call.outcome, (False, False))
    return RecordedCall(id=call.id, name=redaction.text(call.name), valid_before=before, valid_after=after)


def _usage(usage: Usage | None) -> RecordedUsage | None:
    if usage is None:
        return None
    return RecordedUsage(input=usage.input, cached=usage.cached, output=usage.output, reasoning=usage.reasoning)


def _timings(draft: FlowDraft, *, is_over: bool) -> FlowTimings:
    record, upstream = draft.record, draft.upstream
    first = upstream[0] if upstream else None
    return FlowTimings(
        queue=since(first.opened, record.started) if first else None,
        connect=since(first.connected, first.opened) if first else None,
        first_byte=since(upstream[-1].answered, record.started) if first else since(record.first_byte, record.started),
        first_token=since(record.first_token, record.started),
        total=since(record.ended, record.started) if is_over else None,
    )


def _history_reports(record: Record) -> list[FlowReport]:
    return [
        FlowReport(kind="repair", code=kind, where="history", text=f"{kind}: {count} time(s) in the history")
        for kind, count in record.history.items()
    ]


def _call_reports(record: Record) -> list[FlowReport]:
    return [
        FlowReport(
            kind="repair",
            code=", ".join(call.repairs),
            where=f"call {call.id}",
            tool=call.name,
            text=f"The arguments of {call.name} were repaired: {', '.join(call.repairs)}.",
        )
        for call in record.tally.repaired_calls
    ]
