"""An answer with one call, as back ends of each dialect send it. A dialect with objects gets what is no JSON as text."""

from __future__ import annotations

import json
from typing import Any

from tests.contract.harness import stream_steps
from tests.dialects.upstream_events import (
    DONE,
    Numbered,
    block,
    call,
    chunk,
    gemini_call,
    gemini_chunk,
    json_delta,
    message_end,
    message_start,
    tool_use,
)
from tests.server.harness import Step, Upstream, reply

from .kinds import Damaged

USAGE = {
    "input_tokens": 9,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 14,
}


def play(upstream: Upstream, dialect: str, model: str, damaged: Damaged, size: int) -> None:
    """size: characters of each fragment of the arguments; 0 for a whole answer."""
    steps = _streamed(dialect, damaged, size) if size else _whole(dialect, damaged)
    method = "streamGenerateContent?alt=sse" if size else "generateContent"
    upstream.on(f"/v1beta/models/{model}:{method}" if dialect == "gemini" else model, steps)


def _value(raw: str) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return raw


def _streamed(dialect: str, damaged: Damaged, size: int) -> list[Step]:
    pieces = [damaged.raw[start : start + size] for start in range(0, len(damaged.raw), size)]
    if dialect == "chat":
        opening = [chunk({"role": "assistant", "content": None}), chunk(call(0, "call_0", damaged.tool, ""))]
        fragments = [chunk(call(0, arguments=piece)) for piece in pieces]
        return stream_steps(*opening, *fragments, chunk(finish="tool_calls"), DONE)
    if dialect == "messages":
        made = block(0, tool_use("call_0", damaged.tool), *map(json_delta, pieces))
        return stream_steps(message_start(), made, message_end("tool_use"))
    if dialect == "gemini":
        made = gemini_chunk(gemini_call("c0", damaged.tool, _value(damaged.raw)))
        return stream_steps(made, gemini_chunk({"text": ""}, finish="STOP"))
    return stream_steps(Numbered().created().call(0, damaged.tool, *pieces).completed(usage=USAGE).wire)


def _whole(dialect: str, damaged: Damaged) -> list[Step]:
    return [reply(200, json.dumps(_body(dialect, damaged)).encode())]


def _body(dialect: str, damaged: Damaged) -> dict[str, Any]:
    if dialect == "chat":
        function = {"name": damaged.tool, "arguments": damaged.raw}
        message = {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call_0", "type": "function", "function": function}],
        }
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        named = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
        return {**named, "choices": [choice], "usage": usage}
    if dialect == "responses":
        item = {"type": "function_call", "id": "fc_0", "call_id": "call_0", "status": "completed"}
        output = [{**item, "name": damaged.tool, "arguments": damaged.raw}]
        named = {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "m"}
        return {**named, "output": output, "error": None, "incomplete_details": None, "usage": USAGE}
    if dialect == "messages":
        content = [{"type": "tool_use", "id": "call_0", "name": damaged.tool, "input": _value(damaged.raw)}]
        named = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": content}
        usage = {"input_tokens": 1, "output_tokens": 1}
        return {**named, "stop_reason": "tool_use", "stop_sequence": None, "usage": usage}
    made = {"role": "model", "parts": [{"functionCall": {"name": damaged.tool, "args": _value(damaged.raw)}}]}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 2, "totalTokenCount": 3}
    return {"candidates": [{"index": 0, "content": made, "finishReason": "STOP"}], "usageMetadata": usage}
