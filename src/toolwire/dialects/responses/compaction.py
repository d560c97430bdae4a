"""OpenAI Responses: compaction. The trigger among the items, the threshold, the endpoint, and the item with the summary."""

from __future__ import annotations

from ...errors import BadRequest
from ...events import FoldedAnswer
from ...types import Compaction, Json, JsonObject, Opaque, Usage
from ...wire.fields import count_or_none, list_or_none, need_object, need_text
from ..base import AnswerContext
from .resource import usage_out

OBJECT = "response.compaction"
_MARK = b"compaction"
_KINDS = ("compaction", "compaction_summary")
_DEFAULT_THRESHOLD = 200_000


def compaction_in(top: JsonObject, body: bytes) -> Compaction | None:
    """Nearly all requests are about no compaction, which their bytes show."""
    if _MARK not in body and "context_management" not in top:
        return None
    threshold, others = _threshold(top)
    items = top.get("input")
    kinds = [item.get("type") for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    has_trigger = "compaction_trigger" in kinds
    if has_trigger and (kinds.index("compaction_trigger") != len(kinds) - 1):
        raise BadRequest(
            "found an item after it; expected it to be the last one.",
            where=f"input[{kinds.index('compaction_trigger')}]",
        )
    has_items = has_summaries(items)
    if not (has_items or has_trigger or threshold or others):
        return None
    threshold = None if has_trigger else threshold
    return Compaction(has_items=has_items, is_now=has_trigger, threshold=threshold, edits=tuple(others))


def has_summaries(items: Json) -> bool:
    return isinstance(items, list) and any(isinstance(item, dict) and item.get("type") in _KINDS for item in items)


def _threshold(top: JsonObject) -> tuple[int | None, list[JsonObject]]:
    """The threshold, and entries that only a newer provider knows."""
    threshold: int | None = None
    others: list[JsonObject] = []
    for index, entry in enumerate(list_or_none(top, "context_management") or []):
        where = f"context_management[{index}]"
        if need_text(need_object(entry, where), "type", where) == "compaction":
            threshold = count_or_none(entry, "compact_threshold", where, least=1) or _DEFAULT_THRESHOLD
        else:
            others.append(entry)
    return threshold, others


def compacted_body(answer: FoldedAnswer, context: AnswerContext) -> JsonObject:
    """The object of the endpoint: user messages, and the item with the summary."""
    return {
        "id": answer.started.id or context.mint("resp_"),
        "object": OBJECT,
        "created_at": answer.started.created or context.now,
        "output": [part.value for part in answer.parts_of(0) if isinstance(part, Opaque)],
        "usage": usage_out(answer.finished.usage or Usage()),
    }


def is_compacted(value: JsonObject) -> bool:
    """Whether a body is that of the endpoint."""
    return value.get("object") == OBJECT and isinstance(value.get("output"), list)
