"""OpenAI Responses: a whole answer in, as canonical events, and the members of a response object."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from ...errors import UpstreamError
from ...events import Event, Failed, Finished, FoldedAnswer, Noted, PartEnded, Started, unfold
from ...types import Choice, JsonObject, Loss, Opaque, Reason, Request, ToolCall
from ...wire.exact_json import encode
from ...wire.fields import is_count, text_in
from ..base import cut, excerpt, garbage
from ..shared.errors import error_details, error_from
from .compaction import is_compacted
from .shapes import NAME, PHASE, parts_in, usage_in

LOST_PHASE = Noted(note=Loss("answer.phase", "answer", "the client's dialect has no such member"))
NAMELESS = "the back end sent a tool call without a name."
_LATEST = 10**12
_CODES = {"rate_limit_exceeded": 429, "server_error": 500, "invalid_prompt": 400, "context_length_exceeded": 400}


def body_events(request: Request, value: JsonObject) -> tuple[list[Event], str]:
    """The events of a whole answer, and what is irregular in it. An error with status 200 is an error."""
    output, status = value.get("output"), value.get("status")
    if status in ("failed", "cancelled") or value.get("error"):
        return [Failed(error=failure(value.get("error"), encode(value)))], "an error"
    if not isinstance(output, list):
        if error_details(value):
            return [Failed(error=failure(error_details(value), encode(value)))], "an error"
        return [Failed(error=garbage(f"the back end's answer has no output: {excerpt(encode(value))}"))], "no output"
    if is_compacted(value):
        return _compacted(value), "" if value.get("id") and isinstance(value.get("usage"), dict) else "no id or usage"
    if status in ("queued", "in_progress"):
        return [Failed(error=cut(f"the back end's answer is not finished; its status is {status}."))], "not finished"
    items = _with_own_ids(output)
    parts = [part for item in items for part in parts_in(item)]
    if any(isinstance(part, ToolCall) and not part.name for part in parts):
        return [Failed(error=garbage(NAMELESS))], "a call without a name"
    usage = value.get("usage")
    raw, reason = reason_of(value, str(status), any(isinstance(part, ToolCall) for part in parts))
    finished = Finished(
        choices=(Choice(reason=reason, raw_reason=raw),),
        usage=usage_in(usage) if isinstance(usage, dict) else None,
        extra={NAME: members(value)},
    )
    ended = tuple(PartEnded(index=index, part=part) for index, part in enumerate(parts))
    is_regular = bool(value.get("id") and status in ("completed", "incomplete") and isinstance(usage, dict))
    is_regular = is_regular and is_counted(usage or {}) and items == output and all(map(_is_complete, items))
    answer = FoldedAnswer(started=started(value), parts=ended, finished=finished)
    events = unfold(answer)
    if request.origin != NAME and any(PHASE in item for item in items):
        events.insert(1, LOST_PHASE)
    return events, "" if is_regular else "an id, the status or the usage is missing"


def _compacted(value: JsonObject) -> list[Event]:
    """The answer of the endpoint for compaction: its items are input of the next request, and stay as they are."""
    parts = [Opaque(dialect=NAME, value=item) for item in value["output"] if isinstance(item, dict)]
    usage = value.get("usage")
    finished = Finished(choices=(Choice(reason="stop"),), usage=usage_in(usage) if isinstance(usage, dict) else None)
    ended = tuple(PartEnded(index=index, part=part) for index, part in enumerate(parts))
    return unfold(FoldedAnswer(started=started(value), parts=ended, finished=finished))


def _with_own_ids(output: list[Any]) -> list[JsonObject]:
    """Its items; an id that another has already is no id."""
    taken: set[str] = set()
    items = []
    for item in output:
        if isinstance(item, dict):
            item_id = text_in(item, "id")
            items.append(item if item_id not in taken else {**item, "id": ""})
            taken.add(item_id)
    return items


def _is_complete(item: JsonObject) -> bool:
    content = item.get("content")
    if item.get("type") == "message" and (not isinstance(content, list) or not all(map(_is_known, content))):
        return False
    is_call = item.get("type") == "function_call"
    needed = ("id", "call_id", "name", "arguments") if is_call else ("id",)
    return all(text_in(item, key).strip() for key in needed)


def _is_known(piece: Any) -> bool:
    return isinstance(piece, dict) and piece.get("type") != "text"


def is_counted(usage: JsonObject) -> bool:
    return all(map(is_count, (usage.get("input_tokens"), usage.get("output_tokens"), usage.get("total_tokens", 0))))


def started(response: JsonObject) -> Started:
    return Started(
        id=str(response.get("id") or ""),
        model=str(response.get("model") or ""),
        created=_seconds(response.get("created_at")),
        extra={NAME: members(response)},
    )


def _seconds(value: Any) -> int | None:
    """Whole seconds; some servers send fractions, and anything can come."""
    if isinstance(value, Decimal) and 0 <= value < _LATEST:
        value = int(value)
    return value if isinstance(value, int) and 0 <= value < _LATEST else None


def members(response: JsonObject) -> JsonObject:
    """The response object without the members that events contain."""
    decoded = ("id", "object", "model", "output", "status", "usage", "created_at", "error", "incomplete_details")
    return {key: value for key, value in response.items() if key not in decoded}


def reason_of(response: JsonObject, status: str, has_calls: bool) -> tuple[str, Reason]:
    if status == "incomplete":
        details = response.get("incomplete_details")
        raw = str(details.get("reason") or "") if isinstance(details, dict) else ""
        return raw, "refused" if raw == "content_filter" else "length"
    return status, "tool_calls" if has_calls else "stop"


def failure(value: Any, body: bytes) -> UpstreamError:
    details = value if isinstance(value, dict) else {"message": value} if isinstance(value, str) else {}
    status = _CODES.get(str(details.get("code")), 502)
    return error_from(status, {"error": details}, body, {})
