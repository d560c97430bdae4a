"""Which flows a list shows: filters, search and pages."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ..wire.exact_json import encode
from .record import FlowSummary
from .sealed import SealedFlow

MAX_LIMIT = 1000
_EXACT = ("model", "backend", "dialect", "outcome", "conversation")
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


def page_of(flows: Sequence[SealedFlow], query: FlowQuery) -> FlowPage:
    """flows: the newest first."""
    found = [flow for flow in flows if _matches(flow, query)]
    rest = [flow.summary for flow in found if query.before is None or flow.summary.seq < query.before]
    shown = rest[: max(1, min(query.limit, MAX_LIMIT))]
    return FlowPage(flows=shown, next=shown[-1].seq if len(rest) > len(shown) else None, total=len(found))


def _matches(flow: SealedFlow, query: FlowQuery) -> bool:
    summary = flow.summary
    for name in _EXACT:
        wanted = getattr(query, name)
        if wanted and getattr(summary, name) != wanted and not (name == "model" and summary.sent_model == wanted):
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
