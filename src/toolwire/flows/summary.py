"""What a list of flows shows of each one, and the reports of what the gateway did, both from the record of the request."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from ..calls.validation import CallMade
from ..telemetry import Record
from ..telemetry.flow_draft import FlowDraft, Gist
from ..telemetry.prices import dollars
from ..types import Usage
from .events import first_content
from .gist import gist_of
from .record import FlowReport, FlowSummary, FlowTimings, RecordedCall, RecordedUsage
from .redact import FlowRedaction, WireRedaction
from .sealed import SealedFlow, seal_wires, since, texts_of

_MAX_REPORTS = 200
_MAX_TEXT = 2000
_MAX_OPENING = 50  # pieces in which the first token is looked for
_VALID = {"right": (True, True), "repaired": (False, True), "unchecked": (None, None)}


def seal(draft: FlowDraft, flow_id: str, redaction: WireRedaction) -> SealedFlow:
    """The flow without secrets, as it is now."""
    gist = gist_of(draft)
    cleaner = FlowRedaction(redaction, draft.secret, (*texts_of(draft), *_summary_texts(draft, gist)))
    client, upstream = seal_wires(draft, cleaner)
    return SealedFlow(
        summary=_summary(draft, flow_id, gist, cleaner),
        client=client,
        upstream=upstream,
        reports=reports_of(draft, cleaner),
    )


def summarize(draft: FlowDraft, flow_id: str, redaction: WireRedaction) -> FlowSummary:
    """Of a request that is open or has ended."""
    gist = gist_of(draft)
    cleaner = FlowRedaction(redaction, draft.secret, _summary_texts(draft, gist))
    return _summary(draft, flow_id, gist, cleaner)


def _summary_texts(draft: FlowDraft, gist: Gist) -> Iterator[bytes]:
    record = draft.record
    texts = [draft.client.url, draft.message, record.model, record.sent_model, record.route, record.how]
    texts += record.hops
    texts += [gist.preview, *(call.name for call in record.tally.calls), *(loss.why for loss in record.losses)]
    texts += [text for one in record.tally.texts or () for text in (one.name, one.before, one.after)]
    texts += [text for repair in draft.repairs for text in (repair.where, repair.why, repair.raw)]
    return (text.encode("utf-8", "replace") for text in texts if text)


def _summary(draft: FlowDraft, flow_id: str, gist: Gist, redaction: FlowRedaction) -> FlowSummary:
    record, is_over = draft.record, draft.is_over
    ended = draft.started + record.ended - record.started if is_over else None
    return FlowSummary(
        id=flow_id,
        seq=draft.seq,
        started=round(draft.started, 6),
        ended=None if ended is None else round(ended, 6),
        dialect=record.dialect,
        path=redaction.text(draft.client.url.partition("?")[0]),
        model=redaction.text(record.model),
        backend=record.backend,
        backend_dialect=draft.upstream[0].dialect if draft.upstream else "",
        sent_model=redaction.text(record.sent_model),
        stream=record.is_stream,
        status=draft.client.status or record.status or None,
        outcome=record.outcome if is_over else "open",
        error=record.error,
        message=redaction.text(draft.message),
        verbatim=record.is_verbatim,
        translated=record.translated,
        route=redaction.text(record.route),
        repairs=record.tally.repaired + record.history.total(),
        losses=len(record.losses),
        corrections=record.tally.corrections,
        calls=[_call(call, redaction) for call in record.tally.calls],
        usage=_usage(record.usage),
        cost=None if record.cost is None else dollars(record.cost),
        timings=_timings(draft, is_over=is_over),
        conversation=gist.conversation,
        previous=None,
        key=record.key,
        preview=redaction.text(gist.preview),
        request_id=record.request_id,
        how=redaction.text(record.how),
        took_over=record.took_over,
    )


def reports_of(draft: FlowDraft, redaction: FlowRedaction) -> list[FlowReport]:
    """In the order of the request: models that failed, history, calls, losses, corrections, the error."""
    record = draft.record
    found = [*_fallback_reports(record, redaction), *_history_reports(draft, redaction)]
    found += _call_reports(record, redaction)
    found += [
        FlowReport(kind="loss", code=loss.feature, where=loss.where, text=redaction.text(loss.why))
        for loss in record.losses
    ]
    if record.tally.corrections:
        text = f"The model was asked {record.tally.corrections} time(s) to correct its calls; {record.tally.corrected} call(s) were corrected."
        found.append(FlowReport(kind="correction", code="guard_retry", where="answer", text=text))
    if record.outcome == "error":
        text = redaction.text(draft.message)
        found.append(FlowReport(kind="fault", code=record.error, where=record.backend or "gateway", text=text))
    return found[:_MAX_REPORTS]


def _fallback_reports(record: Record, redaction: FlowRedaction) -> Iterator[FlowReport]:
    for hop in record.hops:
        model, _, reason = hop.rpartition(":")
        text = f"{model} failed before its answer began ({reason}), so the next model of the group got the request."
        yield FlowReport(kind="fallback", code=reason, where=redaction.text(model), text=redaction.text(text))


def _call(call: CallMade, redaction: FlowRedaction) -> RecordedCall:
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
        first_token=_first_token(draft) if record.is_stream else None,
        total=since(record.ended, record.started) if is_over else None,
    )


def _first_token(draft: FlowDraft) -> float | None:
    """When the first part of the answer began, by the first wire that has one."""
    for wire in (*draft.upstream, draft.client):
        if wire.status is not None and wire.status < 300:
            chunks = zip(list(wire.times), list(wire.pieces), strict=False)
            moment = first_content(wire.dialect, draft.record, islice(chunks, _MAX_OPENING))
            if moment is not None:
                return since(moment, draft.record.started)
    return None


def _history_reports(draft: FlowDraft, redaction: FlowRedaction) -> list[FlowReport]:
    """Each repair with its place, and those that other stages only count."""
    found = [
        FlowReport(
            kind="repair",
            code=repair.kind,
            where=redaction.text(repair.where),
            text=redaction.text(repair.why),
            before=redaction.text(repair.raw[:_MAX_TEXT]),
        )
        for repair in draft.repairs[:_MAX_REPORTS]
    ]
    listed = {repair.kind for repair in draft.repairs}
    found += [
        FlowReport(kind="repair", code=kind, where="history", text=f"{count} repair(s) of this kind in the history")
        for kind, count in draft.record.history.items()
        if kind not in listed
    ]
    return found


def _call_reports(record: Record, redaction: FlowRedaction) -> list[FlowReport]:
    return [
        FlowReport(
            kind="repair",
            code=", ".join(text.repairs),
            where=f"call {text.id}",
            tool=redaction.text(text.name),
            text=redaction.text(f"The arguments of {text.name} were repaired: {', '.join(text.repairs)}."),
            before=redaction.text(text.before),
            after=redaction.text(text.after),
        )
        for text in record.tally.texts or ()
    ]
