"""OpenAI Responses: compaction. The trigger among the items, the threshold, the endpoint, and the item with the summary."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from ...errors import BadRequest
from ...events import FoldedAnswer
from ...types import Compaction, Json, JsonObject, Media, Message, Opaque, Request, Text, Usage
from ...wire.exact_json import object_of
from ...wire.fields import count_or_none, list_or_none, need_object, need_text, wrong
from ..base import AnswerContext
from .resource import usage_out
from .shapes import NAME

members = frozenset({"context_management"})
replaces_past = False
refuses_open_calls = False
reason = ""
OBJECT = "response.compaction"
_MARK = b"compaction"
_KINDS = ("compaction", "compaction_summary")
_DEFAULT_THRESHOLD = 200_000
_MAX_RETAINED = 256_000  # characters; Codex retains 64,000 tokens of such messages itself


def compaction_in(top: JsonObject, body: bytes) -> Compaction | None:
    """Nearly all requests are about no compaction, which their bytes show."""
    if _MARK not in body:
        return None
    threshold = _threshold(top)
    items = top.get("input")
    kinds = [item.get("type") for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    has_trigger = "compaction_trigger" in kinds
    if has_trigger and (kinds.index("compaction_trigger") != len(kinds) - 1):
        raise BadRequest(
            "found an item after it; expected it to be the last one.",
            where=f"input[{kinds.index('compaction_trigger')}]",
        )
    has_items = has_summaries(items)
    if not (has_items or has_trigger or threshold):
        return None
    return Compaction(has_items=has_items, is_now=has_trigger, threshold=None if has_trigger else threshold)


def has_summaries(items: Json) -> bool:
    return isinstance(items, list) and any(isinstance(item, dict) and item.get("type") in _KINDS for item in items)


def _threshold(top: JsonObject) -> int | None:
    for index, entry in enumerate(list_or_none(top, "context_management") or []):
        where = f"context_management[{index}]"
        kind = need_text(need_object(entry, where), "type", where)
        if kind != "compaction":
            raise wrong(f"{where}.type", kind, "compaction")
        return count_or_none(entry, "compact_threshold", where, least=1) or _DEFAULT_THRESHOLD
    return None


def decode_compact(
    decode: Callable[[bytes, Mapping[str, str]], Request],
) -> Callable[[bytes, Mapping[str, str]], Request]:
    """A request of the endpoint: the same members, of which only some matter. Its model is required: no default replaces it."""

    def decode_endpoint(body: bytes, headers: Mapping[str, str]) -> Request:
        top = object_of(body.decode("utf-8", "replace"))
        if top is not None and not top.get("model"):
            raise BadRequest("it is missing; expected the name of a model.", where="model", code="missing_model")
        request = decode(body, headers)
        found = request.compaction or Compaction()
        return replace(
            request,
            compaction=replace(found, is_now=True, is_endpoint=True, threshold=None),
            state=replace(request.state, is_kept=False) if request.state is not None and request.state.field else None,
            stream=False,
        )

    return decode_endpoint


def part(summary: str, sealed: str, new_id: Callable[[str], str]) -> Opaque:
    return Opaque(dialect=NAME, value={"type": "compaction", "id": new_id("cmp_"), "encrypted_content": sealed})


def notes(part: Opaque) -> list[Opaque]:
    event = {"type": "response.compaction.compacting", "item_id": part.value["id"], "output_index": 0}
    return [Opaque(dialect=NAME, value=event)]


def retained(messages: Sequence[Message], new_id: Callable[[str], str]) -> list[Opaque]:
    """The newest ones, up to a limit, in their order."""
    found, size = list[Opaque](), 0
    for message in reversed(messages):
        if message.role != "user" or not all(isinstance(part, Text | Media) for part in message.parts):
            continue
        size += sum(len(part.text) for part in message.parts if isinstance(part, Text))
        if size > _MAX_RETAINED:
            break
        source = message.source.value if message.source is not None and message.source.dialect == NAME else None
        if not isinstance(source, dict):
            texts = [part.text for part in message.parts if isinstance(part, Text)]
            source = {"role": "user", "content": [{"type": "input_text", "text": text} for text in texts]}
        content = source["content"]
        content = [{"type": "input_text", "text": content}] if isinstance(content, str) else content
        item_id = source.get("id") or new_id("msg_")
        item = {"type": "message", "id": item_id, "role": "user", "status": "completed", "content": content}
        found.append(Opaque(dialect=NAME, value=item))
    return found[::-1]


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
