"""The record of a request as spans, by the semantic conventions of OpenTelemetry for generative AI.

The text of a conversation is in them only if the owner wants that (content_attributes).

The conventions are in development: all their names are in this module. Times are seconds of the monotonic clock, as in the record.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

from ..events import FoldedAnswer
from ..types import JsonObject, Media, Opaque, Part, Reasoning, Refusal, Request, Text, Tool, ToolCall, ToolResult
from ..wire.exact_json import encode
from .record import Record

Value: TypeAlias = str | int | float | bool

_PROVIDERS = {
    "openai-chat": "openai",
    "openai-responses": "openai",
    "anthropic": "anthropic",
    "gemini": "gcp.gemini",
}
_OPERATIONS = {"gemini": "generate_content"}
_MAX_EVENTS = 40


class SpanEvent(Struct, frozen=True):
    name: str
    time: float
    attributes: Mapping[str, Value] = {}


class SpanValue(Struct, frozen=True, kw_only=True):
    """error: its code, "" if there is none."""

    name: str
    kind: Literal["client", "internal"]
    start: float
    end: float
    attributes: Mapping[str, Value]
    events: tuple[SpanEvent, ...] = ()
    error: str = ""


def spans_of(record: Record, backend_kind: str) -> list[SpanValue]:
    """The span of the request, then one for each tool that the gateway ran itself."""
    operation = _OPERATIONS.get(record.dialect, "chat")
    model = record.sent_model or record.model
    request = SpanValue(
        name=f"{operation} {model}".strip(),
        kind="client",
        start=record.started,
        end=record.ended,
        attributes=_attributes(record, operation, model, backend_kind),
        events=tuple(_events(record)[:_MAX_EVENTS]),
        error=record.error if record.outcome == "error" else "",
    )
    return [request, *_tools(record)]


def _attributes(record: Record, operation: str, model: str, backend_kind: str) -> dict[str, Value]:
    found: dict[str, Value] = {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": _PROVIDERS.get(backend_kind, backend_kind or "unknown"),
        "toolwire.request.id": record.request_id,
        "toolwire.client.dialect": record.dialect,
        "toolwire.backend": record.backend,
        "toolwire.outcome": record.outcome,
        "toolwire.verbatim": record.is_verbatim,
    }
    if record.status:
        found["http.response.status_code"] = record.status
    if model:
        found["gen_ai.request.model"] = model
    if record.is_stream:
        found["gen_ai.request.stream"] = True
    if record.outcome == "error":
        found["error.type"] = record.error or "error"
    if first := record.first_token or record.first_byte:
        found["gen_ai.response.time_to_first_chunk"] = round(first - record.started, 6)
    if (usage := record.usage) is not None:
        found["gen_ai.usage.input_tokens"] = usage.input
        found["gen_ai.usage.output_tokens"] = usage.output
        found["gen_ai.usage.cache_read.input_tokens"] = usage.cached
        found["gen_ai.usage.cache_write.input_tokens"] = usage.cache_written
        found["gen_ai.usage.reasoning.output_tokens"] = usage.reasoning
    tally = record.tally
    counts = {"calls": tally.made, "invalid_calls": tally.invalid, "corrections": tally.corrections}
    return found | {f"toolwire.{name}": count for name, count in counts.items() if count}


def _events(record: Record) -> list[SpanEvent]:
    """The end of the request is their time: the record does not say when each happened."""
    repairs = [
        SpanEvent(
            "toolwire.repair",
            record.ended,
            {
                "gen_ai.tool.name": call.name,
                "gen_ai.tool.call.id": call.id,
                "toolwire.repairs": ", ".join(call.repairs),
            },
        )
        for call in record.tally.repaired_calls
    ]
    histories = [
        SpanEvent("toolwire.history_repair", record.ended, {"toolwire.repair": kind, "toolwire.count": count})
        for kind, count in record.history.items()
    ]
    losses = [
        SpanEvent("toolwire.loss", record.ended, {"toolwire.feature": loss.feature, "toolwire.where": loss.where})
        for loss in record.losses
    ]
    tally = record.tally
    corrections = []
    if tally.corrections:
        counts = {"toolwire.count": tally.corrections, "toolwire.corrected_calls": tally.corrected}
        corrections.append(SpanEvent("toolwire.correction", record.ended, counts))
    hops = [SpanEvent("toolwire.fallback", record.ended, {"toolwire.hop": hop}) for hop in record.hops]
    return hops + corrections + losses + repairs + histories


def _tools(record: Record) -> list[SpanValue]:
    """In their order; a tool ended when the next one began, or later."""
    spans: list[SpanValue] = []
    end = record.ended
    for call in reversed(record.local[:_MAX_EVENTS]):
        start = max(record.started, end - call.seconds)
        attributes: dict[str, Value] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.name,
            "gen_ai.tool.type": "function",
            "toolwire.outcome": call.outcome,
        }
        error = "" if call.outcome == "ok" else call.outcome
        if error:
            attributes["error.type"] = error
        spans.append(
            SpanValue(
                name=f"execute_tool {call.name}",
                kind="internal",
                start=start,
                end=end,
                attributes=attributes,
                error=error,
            )
        )
        end = start
    return spans[::-1]


def content_attributes(request: Request | None, answer: FoldedAnswer | None) -> dict[str, Value]:
    """What the client sent and received, as JSON. Media are named, not contained."""
    found: dict[str, Value] = {}
    if request is not None:
        head = [part for message in request.messages if message.is_head for part in message.parts]
        messages = [
            {"role": message.role, "parts": [_part(part) for part in message.parts]}
            for message in request.messages
            if not message.is_head
        ]
        contents = {
            "gen_ai.system_instructions": [_part(part) for part in head],
            "gen_ai.input.messages": messages,
            "gen_ai.tool.definitions": [_definition(tool) for tool in request.tools],
        }
        found |= {name: encode(content).decode() for name, content in contents.items() if content}
    if answer is not None:
        output = [
            {
                "role": "assistant",
                "parts": [_part(part) for part in answer.parts_of(choice.index)],
                "finish_reason": choice.reason,
            }
            for choice in answer.finished.choices
        ]
        found["gen_ai.output.messages"] = encode(output).decode()
    return found


def _part(part: Part) -> JsonObject:
    match part:
        case Text() | Refusal():
            return {"type": "text", "content": part.text}
        case Reasoning():
            return {"type": "reasoning", "content": part.text}
        case ToolCall():
            return {"type": "tool_call", "id": part.id, "name": part.name, "arguments": part.args or part.raw}
        case ToolResult():
            response = [_part(one) for one in part.parts]
            is_text = len(response) == 1 and response[0]["type"] == "text"
            return {
                "type": "tool_call_response",
                "id": part.call_id,
                "response": response[0]["content"] if is_text else response,
            }
        case Media():
            return {"type": "uri" if part.url else "blob", "modality": part.kind, "mime_type": part.mime or None}
        case Opaque():
            return {"type": str(part.value.get("type", "unknown"))}


def _definition(tool: Tool) -> JsonObject:
    members = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
    return {"type": "function", **{key: value for key, value in members.items() if value is not None}}
