"""What the mock model answers, in each dialect, and what must be left of it on the client's side."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Json = dict[str, Any]

TEXT_CHUNKS = 200
FRAGMENTS = 60
PACED_CHUNKS = 250
PACE_MS = 20

_WORDS = ("the ", "gateway ", "keeps ", "every ", "call ", "paired ", "with ", "its ", "result, ", "and ")
_TEXT = [_WORDS[i % len(_WORDS)] for i in range(TEXT_CHUNKS)]
_ARGUMENTS = [
    '{"filePath":"src/a.py","content":"',
    *(f"line {i:02d}; " for i in range(1, FRAGMENTS - 1)),
    '"}',
]
# The mock writes the time of sending over the digits.
_PACED = ["@@0000000000000000 "] * PACED_CHUNKS

_WHOLE_TEXT = "".join(_TEXT)[:900]

END_MARKS = {"chat": "[DONE]", "messages": "message_stop", "responses": "response.completed"}


def write_scripts(folder: Path) -> None:
    """The files that src/mock.c reads."""
    for dialect, stream in _STREAMS.items():
        for name, pieces in {"text": _TEXT, "tools": _ARGUMENTS, "paced": _PACED}.items():
            events = "".join(stream(pieces, name == "tools"))
            (folder / f"{dialect}.{name}.sse").write_text(events)
    for dialect, whole in _WHOLES.items():
        for name in ("text", "tools"):
            (folder / f"{dialect}.{name}.json").write_text(_compact(whole(name == "tools")))


def fault_of(dialect: str, model: str, content_type: str, body: bytes) -> str:
    """What is wrong with an answer as the client got it; "" if nothing is."""
    is_stream = "event-stream" in content_type
    pieces = list(_stream_pieces(dialect, body)) if is_stream else [_whole_pieces(dialect, json.loads(body))]
    kind, expected = ("text", "".join(_TEXT) if is_stream else _WHOLE_TEXT)
    if model.endswith("-tools"):
        kind, expected = "arguments", "".join(_ARGUMENTS)
    found = "".join(arguments if kind == "arguments" else text for text, arguments in pieces)
    return "" if found == expected else f"{kind} differ: {len(found)} of {len(expected)} characters came"


def count_events(body: bytes) -> int:
    return sum(line.startswith(b"data:") for line in body.splitlines())


def _compact(value: Json) -> str:
    return json.dumps(value, separators=(",", ":"))


def _chat_stream(pieces: list[str], is_call: bool) -> Iterator[str]:
    def chunk(delta: Json, reason: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return f"data: {_compact(head | {'system_fingerprint': 'fp_mock', 'choices': [choice]})}\n\n"

    head = {"id": "chatcmpl-mock0001", "object": "chat.completion.chunk", "created": 1700000000, "model": "mock"}
    if is_call:
        function = {"name": "write", "arguments": ""}
        call = {"index": 0, "id": "call_mock0001", "type": "function", "function": function}
        yield chunk({"role": "assistant", "content": None, "tool_calls": [call]})
    else:
        yield chunk({"role": "assistant", "content": ""})
    for piece in pieces:
        yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} if is_call else {"content": piece})
    yield chunk({}, "tool_calls" if is_call else "stop")
    yield f"data: {_compact(head | {'choices': [], 'usage': _CHAT_USAGE})}\n\n"
    yield "data: [DONE]\n\n"


def _messages_stream(pieces: list[str], is_call: bool) -> Iterator[str]:
    def event(name: str, **members: Any) -> str:
        return f"event: {name}\ndata: {_compact({'type': name} | members)}\n\n"

    start = _messages_whole(is_call) | {"content": [], "stop_reason": None}
    block: Json = {"type": "text", "text": ""}
    if is_call:
        block = {"type": "tool_use", "id": "toolu_mock0001", "name": "write", "input": {}}
    kind, member = ("input_json_delta", "partial_json") if is_call else ("text_delta", "text")
    yield event("message_start", message=start | {"usage": {"input_tokens": 100, "output_tokens": 1}})
    yield event("content_block_start", index=0, content_block=block)
    for piece in pieces:
        yield event("content_block_delta", index=0, delta={"type": kind, member: piece})
    yield event("content_block_stop", index=0)
    reason = "tool_use" if is_call else "end_turn"
    yield event("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage={"output_tokens": 200})
    yield event("message_stop")


def _responses_stream(pieces: list[str], is_call: bool) -> Iterator[str]:
    sequence = iter(range(10_000))

    def event(name: str, **members: Any) -> str:
        return f"event: {name}\ndata: {_compact({'type': name, 'sequence_number': next(sequence)} | members)}\n\n"

    whole = _responses_whole(is_call)
    item = whole["output"][0]
    empty: Json = {"arguments": ""} if is_call else {"content": []}
    place: Json = {"item_id": item["id"], "output_index": 0}
    if not is_call:
        place |= {"content_index": 0}
    name = "response.function_call_arguments" if is_call else "response.output_text"
    final: Json = {"arguments": "".join(pieces)} if is_call else {"text": "".join(pieces), "logprobs": []}
    created = {key: value for key, value in whole.items() if key != "usage"}
    yield event("response.created", response=created | {"status": "in_progress", "output": []})
    yield event("response.output_item.added", output_index=0, item=item | {"status": "in_progress"} | empty)
    if not is_call:
        part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
        yield event("response.content_part.added", **place, part=part)
    for piece in pieces:
        yield event(f"{name}.delta", **place, delta=piece, **({} if is_call else {"logprobs": []}))
    yield event(f"{name}.done", **place, **final)
    yield event("response.output_item.done", output_index=0, item=item)
    yield event("response.completed", response=whole)


_CHAT_USAGE = {"prompt_tokens": 100, "completion_tokens": 200, "total_tokens": 300}


def _chat_whole(is_call: bool) -> Json:
    message: Json = {"role": "assistant", "content": _WHOLE_TEXT, "refusal": None}
    if is_call:
        function = {"name": "write", "arguments": "".join(_ARGUMENTS)}
        call = {"id": "call_mock0001", "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
    reason = "tool_calls" if is_call else "stop"
    return {
        "id": "chatcmpl-mock0001",
        "object": "chat.completion",
        "created": 1700000000,
        "model": "mock",
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": reason}],
        "usage": _CHAT_USAGE,
        "system_fingerprint": "fp_mock",
    }


def _messages_whole(is_call: bool) -> Json:
    block: Json = {"type": "text", "text": _WHOLE_TEXT}
    if is_call:
        arguments = json.loads("".join(_ARGUMENTS))
        block = {"type": "tool_use", "id": "toolu_mock0001", "name": "write", "input": arguments}
    return {
        "id": "msg_mock0001",
        "type": "message",
        "role": "assistant",
        "model": "mock",
        "content": [block],
        "stop_reason": "tool_use" if is_call else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 100, "output_tokens": 200},
    }


def _responses_whole(is_call: bool) -> Json:
    content = [{"type": "output_text", "text": _WHOLE_TEXT, "annotations": [], "logprobs": []}]
    item: Json = {"type": "message", "id": "msg_mock", "role": "assistant", "status": "completed", "content": content}
    if is_call:
        names = {"id": "fc_mock", "call_id": "call_mock0001", "name": "write"}
        item = {"type": "function_call", "arguments": "".join(_ARGUMENTS), "status": "completed"} | names
    return {
        "id": "resp_mock",
        "object": "response",
        "created_at": 1700000000,
        "status": "completed",
        "model": "mock",
        "output": [item],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 100,
            "output_tokens": 200,
            "total_tokens": 300,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }


_STREAMS = {"chat": _chat_stream, "messages": _messages_stream, "responses": _responses_stream}
_WHOLES = {"chat": _chat_whole, "messages": _messages_whole, "responses": _responses_whole}


def _stream_pieces(dialect: str, body: bytes) -> Iterator[tuple[str, str]]:
    """(text, arguments) of each event; one of them is usually empty."""
    for line in body.decode().split("\n"):
        data = line.removeprefix("data:").strip()
        if not line.startswith("data:") or data == "[DONE]":
            continue
        event = json.loads(data)
        if dialect == "chat":
            for choice in event.get("choices") or []:
                delta = choice.get("delta") or {}
                calls = delta.get("tool_calls") or []
                arguments = "".join((call.get("function") or {}).get("arguments") or "" for call in calls)
                yield delta.get("content") or "", arguments
        elif dialect == "messages":
            delta = event.get("delta") or {}
            yield delta.get("text") or "", delta.get("partial_json") or ""
        elif event.get("type") == "response.output_text.delta":
            yield event["delta"], ""
        elif event.get("type") == "response.function_call_arguments.delta":
            yield "", event["delta"]


def _whole_pieces(dialect: str, answer: Json) -> tuple[str, str]:
    if dialect == "chat":
        message = answer["choices"][0]["message"]
        calls = message.get("tool_calls") or []
        return message.get("content") or "", "".join(call["function"]["arguments"] for call in calls)
    if dialect == "messages":
        blocks = answer["content"]
        inputs = [_compact(block["input"]) for block in blocks if block["type"] == "tool_use"]
        return "".join(block.get("text", "") for block in blocks), "".join(inputs)
    items = answer["output"]
    texts = [part.get("text", "") for item in items for part in item.get("content") or []]
    return "".join(texts), "".join(item.get("arguments", "") for item in items)
