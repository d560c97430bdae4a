"""OpenAI Responses: what both directions share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from ...types import Citation, Extra, JsonObject, Opaque, Part, Reasoning, Refusal, Text, ToolCall, Usage
from ...wire.exact_json import encode, object_of, typed_decoder
from ...wire.fields import count_of, text_in

NAME = "responses"
PHASE = "phase"
_CALL = frozenset({"type", "id", "call_id", "name", "arguments", "input", "status", "namespace"})


class DeltaEvent(Struct, forbid_unknown_fields=True):
    """The hot events: a piece of text or of a call's arguments."""

    type: str
    sequence_number: int
    item_id: str
    output_index: int
    delta: str
    content_index: int = -1  # only texts have one
    logprobs: list[Any] | None = None
    obfuscation: str | None = None


read_delta = typed_decoder(DeltaEvent).decode


def parts_in(item: JsonObject) -> list[Part]:
    """The parts of one whole output item, in order."""
    item_id = text_in(item, "id")
    match item.get("type"):
        case "message":
            extra = phase_in(item)
            if isinstance(words := item.get("content"), str):
                return [Text(text=words, item_id=item_id, extra=extra)]
            return [_content_in(piece, item_id, extra) for piece in _objects(item, "content")]
        case "function_call" | "custom_tool_call":
            return [call_in(item)]
        case "reasoning":
            return reasoning_in(item)
        case _:
            return [Opaque(dialect=NAME, value=item)]


def phase_in(item: JsonObject) -> Extra:
    """Whether a message is a comment on the way or the final answer, as a member of its texts."""
    phase = item.get(PHASE)
    return {NAME: {PHASE: phase}} if isinstance(phase, str) else {}


def phase_of(parts: Iterable[Part]) -> JsonObject:
    """The member of a message that has these parts."""
    for part in parts:
        if part.extra and isinstance(part, Text) and PHASE in (own := part.extra.get(NAME, {})):
            return {PHASE: own[PHASE]}
    return {}


def call_in(item: JsonObject) -> ToolCall:
    """A call item; call_id is what results answer, id is the item's own."""
    is_custom = item.get("type") == "custom_tool_call"
    given = item.get("input" if is_custom else "arguments")
    raw = given if isinstance(given, str) else "" if given is None else encode(given).decode()
    if not is_custom and not raw.strip() and item.get("status") != "incomplete":
        raw = "{}"
    members = {key: value for key, value in item.items() if key not in _CALL}
    extra: Extra = {NAME: members} if members else {}
    return ToolCall(
        id=text_in(item, "call_id") or text_in(item, "id"),
        name=text_in(item, "name"),
        raw=raw,
        args=None if is_custom else object_of(raw),
        item_id=text_in(item, "id"),
        kind="custom" if is_custom else "function",
        namespace=text_in(item, "namespace"),
        extra=extra,
    )


def thoughts_in(item: JsonObject) -> list[str]:
    """The texts of a reasoning item, in order."""
    return [text_in(piece, "text") for key in ("summary", "content") for piece in _objects(item, key)]


def reasoning_in(item: JsonObject) -> list[Part]:
    """One part per summary or text; the last one has the encrypted content."""
    item_id = text_in(item, "id")
    parts: list[Reasoning] = []
    for key, is_summary in (("summary", True), ("content", False)):
        for piece in _objects(item, key):
            text = text_in(piece, "text")
            parts.append(Reasoning(text=text, item_id=item_id, is_summary=is_summary, extra={NAME: {}}))
    encrypted = item.get("encrypted_content")
    encrypted = encrypted if isinstance(encrypted, str) else None
    last = parts.pop() if parts else Reasoning(text="", item_id=item_id, is_summary=True, extra={NAME: {}})
    final = Reasoning(
        text=last.text, encrypted=encrypted, item_id=item_id, is_summary=last.is_summary, extra=last.extra
    )
    return [*parts, final]


def citation_in(value: Any) -> Citation | None:
    if not isinstance(value, dict):
        return None
    start, end = value.get("start_index"), value.get("end_index")
    return Citation(
        url=text_in(value, "url"),
        title=text_in(value, "title") or text_in(value, "filename"),
        start=start if isinstance(start, int) else None,
        end=end if isinstance(end, int) else None,
        extra={NAME: value},
    )


def usage_in(value: JsonObject) -> Usage:
    details, produced = value.get("input_tokens_details"), value.get("output_tokens_details")
    details = details if isinstance(details, dict) else {}
    produced = produced if isinstance(produced, dict) else {}
    return Usage(
        input=count_of(value.get("input_tokens")),
        output=count_of(value.get("output_tokens")),
        cached=count_of(details.get("cached_tokens")),
        cache_written=count_of(details.get("cache_write_tokens")),
        reasoning=count_of(produced.get("reasoning_tokens")),
        extra={NAME: value},
    )


def _content_in(piece: JsonObject, item_id: str, extra: Extra) -> Part:
    match piece:
        case {"type": "output_text" | "text", "text": str(text)}:
            found = [citation_in(annotation) for annotation in _objects(piece, "annotations")]
            logprobs = piece.get("logprobs")
            return Text(
                text=text,
                citations=tuple(filter(None, found)),
                logprobs=tuple(logprobs) if isinstance(logprobs, list) and logprobs else None,
                item_id=item_id,
                extra=extra,
            )
        case {"type": "refusal", "refusal": str(text)}:
            return Refusal(text=text, item_id=item_id)
        case _:
            return Opaque(dialect=NAME, value=piece)


def _objects(owner: JsonObject, key: str) -> list[JsonObject]:
    given = owner.get(key)
    return [item for item in given if isinstance(item, dict)] if isinstance(given, list) else []
