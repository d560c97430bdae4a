"""What clients ask and back ends answer in the three dialects, as bytes."""

from __future__ import annotations

import json
from typing import Any

from tests.server.harness import CLOSE, LAST_CHUNK, Step, chunk, reply, stream_head

DIALECTS = ("chat", "responses", "messages")
KINDS = {"chat": "openai-chat", "responses": "openai-responses", "messages": "anthropic"}
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
TOOL = {"type": "object", "properties": {"city": {"type": "string"}}}
ARGUMENTS = '{"city": "Zürich", "days": [1, 2, 3]}'


def question(dialect: str, model: str, *, stream: bool = False, **more: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": "What is the weather?"}]
    base: dict[str, Any] = {"model": model, "stream": stream}
    if dialect == "chat":
        function = {"name": "weather", "parameters": TOOL}
        base |= {"messages": messages, "tools": [{"type": "function", "function": function}]}
    elif dialect == "responses":
        base |= {"input": messages, "tools": [{"type": "function", "name": "weather", "parameters": TOOL}]}
    else:
        base |= {"messages": messages, "max_tokens": 99, "tools": [{"name": "weather", "input_schema": TOOL}]}
    return base | more


def frames(dialect: str, text: str = "Hello there", call: str | None = None) -> list[bytes]:
    """A regular stream: text in two pieces, then a call, if any, with its arguments in three."""
    return [frame(dialect, value) for value in _stream(dialect, text, call)]


def frame(dialect: str, value: Any) -> bytes:
    if isinstance(value, str):
        return f"data: {value}\n\n".encode()
    data = json.dumps(value).encode()
    return (
        b"data: " + data + b"\n\n"
        if dialect == "chat"
        else f"event: {value['type']}\n".encode() + b"data: " + data + b"\n\n"
    )


def streamed(dialect: str, text: str = "Hello there", call: str | None = None, pause: float = 0.0) -> list[Step]:
    steps: list[Step] = [stream_head()]
    for one in frames(dialect, text, call):
        steps += [chunk(one), pause] if pause else [chunk(one)]
    return [*steps, LAST_CHUNK]


def cut_stream(dialect: str, text: str = "Hello there", call: str | None = ARGUMENTS) -> list[Step]:
    """It ends in the middle of a call's arguments."""
    kept = frames(dialect, text, call)
    last = next(place for place, one in enumerate(kept) if b"days" in one)
    return [stream_head(), *(chunk(one) for one in kept[:last]), 0.01, CLOSE]


def whole(dialect: str, text: str = "Hello there", call: str | None = None) -> list[Step]:
    return [reply(200, json.dumps(body(dialect, text, call)).encode())]


def body(dialect: str, text: str = "Hello there", call: str | None = None) -> dict[str, Any]:
    if dialect == "chat":
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if call is not None:
            message["tool_calls"] = [
                {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": call}}
            ]
        finish = "stop" if call is None else "tool_calls"
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12},
        }
    if dialect == "responses":
        return _resource("completed", _output(text, call))
    content: list[dict[str, Any]] = [{"type": "text", "text": text}]
    if call is not None:
        content.append({"type": "tool_use", "id": "call_1", "name": "weather", "input": json.loads(call)})
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": content,
        "stop_reason": "end_turn" if call is None else "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 7, "output_tokens": 5},
    }


def text_of(dialect: str, events: list[tuple[str, Any]]) -> str:
    """The text a client of this dialect puts together from a stream."""
    pieces = []
    for _, data in events:
        if not isinstance(data, dict):
            continue
        if dialect == "chat":
            pieces += [choice["delta"].get("content") or "" for choice in data.get("choices", [])]
        elif dialect == "responses" and data["type"] == "response.output_text.delta":
            pieces.append(data["delta"])
        elif dialect == "messages" and data.get("delta", {}).get("type") == "text_delta":
            pieces.append(data["delta"]["text"])
    return "".join(pieces)


def arguments_of(dialect: str, events: list[tuple[str, Any]]) -> str:
    """The arguments of the calls in a stream, one after the other."""
    pieces = []
    for _, data in events:
        if not isinstance(data, dict):
            continue
        if dialect == "chat":
            for choice in data.get("choices", []):
                pieces += [call["function"].get("arguments") or "" for call in choice["delta"].get("tool_calls") or []]
        elif dialect == "responses" and data["type"] == "response.function_call_arguments.delta":
            pieces.append(data["delta"])
        elif dialect == "messages" and data.get("delta", {}).get("type") == "input_json_delta":
            pieces.append(data["delta"]["partial_json"])
    return "".join(pieces)


def body_text(dialect: str, value: dict[str, Any]) -> str:
    if dialect == "chat":
        return str(value["choices"][0]["message"]["content"])
    if dialect == "responses":
        return str(value["output"][0]["content"][0]["text"])
    return str(value["content"][0]["text"])


def error_in(dialect: str, value: Any) -> dict[str, Any]:
    """The error object, after a look at the shape around it."""
    error = value["error"]
    assert isinstance(error["message"], str)
    assert error["message"]
    assert isinstance(error["type"], str)
    if dialect == "messages":
        assert value["type"] == "error"
        assert value["request_id"]
    else:
        assert set(value) == {"error"}
        assert {"message", "type", "param", "code"} <= set(error)
    return dict(error)


def failure_in(dialect: str, events: list[tuple[str, Any]]) -> str:
    """The words of the error a stream ended in; it must be the last event, in the dialect's own form."""
    event, data = events[-1]
    assert "[DONE]" not in [data for _, data in events]
    if dialect == "chat":
        return str(data["error"]["message"])
    if dialect == "responses":
        assert event == data["type"] == "response.failed"
        assert data["response"]["status"] == "failed"
        return str(data["response"]["error"]["message"])
    assert event == data["type"] == "error"
    return str(data["error"]["message"])


def is_ended(dialect: str, events: list[tuple[str, Any]]) -> bool:
    event, data = events[-1]
    if dialect == "chat":
        return bool(data == "[DONE]")
    return event == {"responses": "response.completed", "messages": "message_stop"}[dialect]


def _stream(dialect: str, text: str, call: str | None) -> list[Any]:
    middle = len(text) // 2
    texts = [text[:middle], text[middle:]]
    third = len(call or "") // 3 or 1
    calls = [call[:third], call[third : 2 * third], call[2 * third :]] if call is not None else []
    return {"chat": _chat_stream, "responses": _responses_stream, "messages": _messages_stream}[dialect](texts, calls)


def _chat_stream(texts: list[str], calls: list[str]) -> list[Any]:
    def piece(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}

    found: list[Any] = [piece({"role": "assistant", "content": ""}), *(piece({"content": text}) for text in texts)]
    if calls:
        opening = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "weather", "arguments": ""}}
        found.append(piece({"tool_calls": [opening]}))
        found += [piece({"tool_calls": [{"index": 0, "function": {"arguments": one}}]}) for one in calls]
    usage = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
    last = piece({}) | {"choices": [], "usage": usage}
    return [*found, piece({}, "tool_calls" if calls else "stop"), last, "[DONE]"]


def _output(text: str, call: str | None) -> list[dict[str, Any]]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    output: list[dict[str, Any]] = [
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}
    ]
    if call is not None:
        output.append(
            {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "weather", "arguments": call}
            | {"status": "completed"}
        )
    return output


def _resource(status: str, output: list[dict[str, Any]]) -> dict[str, Any]:
    usage = {
        "input_tokens": 7,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 12,
    }
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": status,
        "model": "m",
        "output": output,
        "error": None,
        "incomplete_details": None,
        "usage": usage if status == "completed" else None,
    }


def _responses_stream(texts: list[str], calls: list[str]) -> list[Any]:
    text, call = "".join(texts), "".join(calls)
    items = _output(text, call if calls else None)
    open_item = items[0] | {"status": "in_progress", "content": []}
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    found: list[dict[str, Any]] = [
        {"type": "response.created", "response": _resource("in_progress", [])},
        {"type": "response.in_progress", "response": _resource("in_progress", [])},
        {"type": "response.output_item.added", "output_index": 0, "item": open_item},
        {"type": "response.content_part.added", **place, "part": items[0]["content"][0] | {"text": ""}},
        *({"type": "response.output_text.delta", **place, "delta": one} for one in texts),
        {"type": "response.output_text.done", **place, "text": text},
        {"type": "response.content_part.done", **place, "part": items[0]["content"][0]},
        {"type": "response.output_item.done", "output_index": 0, "item": items[0]},
    ]
    if calls:
        open_call = items[1] | {"status": "in_progress", "arguments": ""}
        spot = {"item_id": "fc_1", "output_index": 1}
        found += [
            {"type": "response.output_item.added", "output_index": 1, "item": open_call},
            *({"type": "response.function_call_arguments.delta", **spot, "delta": one} for one in calls),
            {"type": "response.function_call_arguments.done", **spot, "arguments": call},
            {"type": "response.output_item.done", "output_index": 1, "item": items[1]},
        ]
    found.append({"type": "response.completed", "response": _resource("completed", items)})
    return [value | {"sequence_number": number} for number, value in enumerate(found)]


def _messages_stream(texts: list[str], calls: list[str]) -> list[Any]:
    start = body("messages") | {"content": [], "stop_reason": None, "usage": {"input_tokens": 7, "output_tokens": 1}}
    found: list[Any] = [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}} for text in texts),
        {"type": "content_block_stop", "index": 0},
    ]
    if calls:
        block = {"type": "tool_use", "id": "call_1", "name": "weather", "input": {}}
        found += [
            {"type": "content_block_start", "index": 1, "content_block": block},
            *(
                {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": one}}
                for one in calls
            ),
            {"type": "content_block_stop", "index": 1},
        ]
    reason = "tool_use" if calls else "end_turn"
    found.append(
        {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": None},
            "usage": {"output_tokens": 5},
        }
    )
    return [*found, {"type": "message_stop"}]
