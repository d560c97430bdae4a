"""Which flows a list shows: filters, search and pages."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from ..telemetry import Record
from ..telemetry.flow_draft import FlowDraft
from ..wire.exact_json import encode
from .packed import PackedFlow
from .record import FlowSummary
from .sealed import SealedFlow

MAX_LIMIT = 1000
_SEARCHED = ("id", "request_id", "path", "model", "sent_model", "backend", "error", "message", "preview", "route")


class FlowQuery(Struct, frozen=True, kw_only=True):
    """before: only flows with a lower number. q: text to look for in the summary and in the bodies."""

    limit: int = 100
    before: int | None = None
    q: str = ""
    model: str = ""
    backend: str = ""
    dialect: str = ""
    outcome: str = ""
    conversation: str = ""


class FlowPage(Struct, frozen=True, kw_only=True):
    """total: flows that match, on all pages. next: the value of before for the next page."""

    flows: list[FlowSummary]
    next: int | None
    total: int


def matches_record(entry: FlowDraft | PackedFlow, query: FlowQuery) -> bool:
    """By what the record of a request has, whether it is sealed or not."""
    found: Record | PackedFlow = entry.record if isinstance(entry, FlowDraft) else entry
    outcome = "open" if isinstance(entry, FlowDraft) else entry.outcome
    return (
        query.backend in ("", found.backend)
        and query.dialect in ("", found.dialect)
        and query.outcome in ("", outcome)
        and query.model in ("", found.model, found.sent_model)
    )


def matches_text(flow: SealedFlow, query: FlowQuery) -> bool:
    summary = flow.summary
    if query.conversation not in ("", summary.conversation):
        return False
    if not query.q:
        return True
    words = query.q.lower()
    if any(words in getattr(summary, name).lower() for name in _SEARCHED):
        return True
    if any(words in call.name.lower() for call in summary.calls):
        return True
    # In a body the text is a JSON string.
    return flow.contains(words.encode("utf-8", "replace")) or flow.contains(encode(words)[1:-1])


def page_of(flows: Iterable[FlowSummary], query: FlowQuery, total: int | None = None) -> FlowPage:
    """flows: those that match, the newest first. total: how many match, if these are not all."""
    found = list(flows)
    rest = [flow for flow in found if query.before is None or flow.seq < query.before]
    shown = rest[: query.limit]
    last = shown[-1].seq if len(rest) > len(shown) else None
    return FlowPage(flows=shown, next=last, total=len(found) if total is None else total)
