"""Gemini Interactions: what is stored of an interaction, and how a request is completed from it. Without I/O.

Only the steps are inherited: instructions, tools and the configuration belong to one interaction.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from ...errors import BadRequest, GatewayError, quote
from ...types import Json, JsonObject, Message, Request, State
from ...wire.exact_json import encode
from ..base import AnswerContext
from ..shared.memory import Ending, PastTurns, StoredAnswer
from .answer_out import DONE, head_of
from .shapes import NAME, PREFIX, REQUIRES_ACTION, error_object
from .steps_in import history_reader, messages_in, steps_of

prefix = PREFIX
output_member = "steps"
event_number = rb'"event_id":"(\d+)"'
_MEMORY = frozenset({"previous_interaction_id", "background", "store"})
_ENDINGS: dict[str, Ending] = {
    "completed": "completed",
    REQUIRES_ACTION: "completed",
    "incomplete": "incomplete",
    "failed": "failed",
}


def own_items(source: JsonObject, found: Mapping[str, Json]) -> list[Json]:
    return steps_of(source.get("input"))


def messages_of(items: list[Json]) -> tuple[Message, ...]:
    return messages_in(items, history_reader())


def complete(request: Request, own: list[Json], past: PastTurns, *, looks_up: bool) -> Request:
    top = {key: value for key, value in request.source.items() if key not in _MEMORY}
    top["input"] = [*past.items, *own]
    heads = tuple([one for one in request.messages if one.is_head])
    mine = tuple([one for one in request.messages if not one.is_head])
    members = {key: value for key, value in request.extra.get(NAME, {}).items() if key not in _MEMORY}
    return replace(
        request,
        messages=(*heads, *past.messages, *mine),
        extra={NAME: members} if members else {},
        state=None,
        source=top,
        wire=b"",
    )


def remembered(request: Request, answer: JsonObject) -> StoredAnswer | None:
    answer_id, status = answer.get("id"), _ENDINGS.get(str(answer.get("status")))
    if not isinstance(answer_id, str) or not answer_id or status is None:
        return None
    steps = answer.get("steps")
    output = [(f"{answer_id}_{index}", step) for index, step in enumerate(steps if isinstance(steps, list) else ())]
    body = {key: value for key, value in answer.items() if key != "steps"}
    return StoredAnswer(id=answer_id, status=status, output=output, body=body)


def not_found(state: State, missing: str) -> BadRequest:
    return BadRequest(
        f"there is no stored interaction {quote(missing)}; expected the id of one that was stored for this key.",
        status=404,
        where="previous_interaction_id",
        code="not_found",
    )


def queued_body(context: AnswerContext) -> JsonObject:
    """An interaction in the background that has not begun, without its steps."""
    return {**head_of(context, context.answer_id), "status": "queued", "background": True}


def body_with_status(body: JsonObject, status: str, error: GatewayError | None) -> JsonObject:
    body = body | {"status": status}
    return body | {"errors": [error_object(error)]} if error is not None and status == "failed" else body


def replay(value: JsonObject, after: int) -> bytes:
    """The events of a whole interaction; for a client that has some of them only the last one, because numbers are not stored."""
    whole = _event(max(after + 1, 1), "interaction.completed", interaction={**value, "object": "interaction"})
    if after >= 0:
        return whole + DONE
    begun = {key: item for key, item in value.items() if key not in ("steps", "usage")}
    events = [_event(1, "interaction.created", interaction={**begun, "status": "in_progress", "object": "interaction"})]
    for index, step in enumerate(value.get("steps") or ()):
        for kind, members in _parts_of(step):
            events.append(_event(len(events) + 1, kind, index=index, **members))
    events.append(_event(len(events) + 1, "interaction.completed", interaction={**value, "object": "interaction"}))
    return b"".join(events) + DONE


def _parts_of(step: JsonObject) -> list[tuple[str, JsonObject]]:
    deltas: list[JsonObject] = []
    begun = dict(step)
    match step.get("type"):
        case "model_output":
            begun["content"] = []
            for content in step.get("content") or ():
                deltas.append({"type": "text", "text": content.get("text", "")})
                if noted := content.get("annotations"):
                    deltas.append({"type": "text_annotation_delta", "annotations": noted})
        case "thought":
            begun = {"type": "thought"}
            deltas += [{"type": "thought_summary", "content": content} for content in step.get("summary") or ()]
            if signature := step.get("signature"):
                deltas.append({"type": "thought_signature", "signature": signature})
        case "function_call":
            begun["arguments"] = {}
            deltas.append({"type": "arguments_delta", "arguments": encode(step.get("arguments")).decode("utf-8")})
        case _:
            pass
    return [("step.start", {"step": begun}), *(("step.delta", {"delta": delta}) for delta in deltas), ("step.stop", {})]


def _event(number: int, kind: str, **members: object) -> bytes:
    value = {"event_type": kind, "event_id": str(number), **members}
    return b"event: " + kind.encode() + b"\ndata: " + encode(value) + b"\n\n"
