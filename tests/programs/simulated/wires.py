"""Three dialects of a server with only text: parsing and rejecting requests, and writing answers.

It uses no code of toolwire, so that it checks independently what reaches a model without tools.
"""

from __future__ import annotations

import json
import random
import secrets
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

_TOOL_WORDS = ("tools", "tool_choice", "parallel_tool_calls", "functions", "function_call", "max_tool_calls")
_CALL_WORDS = ("tool_calls", "tool_call_id", "function_call")
_STATE = ("previous_response_id", "conversation", "thread", "background")
_ROLES = {"chat": ("system", "user", "assistant"), "messages": ("user", "assistant")}
_LONGEST_PIECE = 9


class PromptMessage(NamedTuple):
    """One message of the prompt."""

    role: str
    text: str


class Refused(Exception):
    """A member of the request that such a server does not support."""


class Wire(NamedTuple):
    path: str
    read: Callable[[dict[str, Any]], list[PromptMessage]]
    whole: Callable[[str], dict[str, Any]]
    stream: Callable[[str], Iterator[str]]


def no_tools(request: dict[str, Any]) -> None:
    """A null is rejected too: an old server does not know the member at all."""
    if found := [name for name in (*_TOOL_WORDS, *_STATE) if name in request]:
        raise Refused(f"unknown members: {', '.join(found)}")


def odd_pieces(text: str) -> list[str]:
    """Equal texts are split equally, and tags are nearly always split."""
    chance = random.Random(text)
    pieces = []
    while text:
        size = chance.randint(1, _LONGEST_PIECE)
        pieces.append(text[:size])
        text = text[size:]
    return pieces


def _read_chat(request: dict[str, Any]) -> list[PromptMessage]:
    said = [_message(message, "chat") for message in request["messages"]]
    if any(message.role == "system" for message in said[1:]):
        raise Refused("an instruction that is not at the start")
    return said


def _read_messages(request: dict[str, Any]) -> list[PromptMessage]:
    instruction = _text(request.get("system") or "", ("text",))
    said = [_message(message, "messages") for message in request["messages"]]
    return [PromptMessage("system", instruction), *said]


def _read_responses(request: dict[str, Any]) -> list[PromptMessage]:
    items = request["input"]
    if isinstance(items, str):
        items = [{"role": "user", "content": items}]
    said = [PromptMessage("system", request.get("instructions") or "")]
    for item in items:
        if item.get("type", "message") != "message":
            raise Refused(f"an item of type {item['type']}")
        said.append(PromptMessage(item["role"], _text(item["content"], ("input_text", "output_text"))))
    return said


def _message(message: dict[str, Any], dialect: str) -> PromptMessage:
    if message["role"] not in _ROLES[dialect]:
        raise Refused(f"the role {message['role']}")
    if found := [name for name in _CALL_WORDS if name in message]:
        raise Refused(f"unknown members of a message: {', '.join(found)}")
    return PromptMessage(message["role"], _text(message["content"], ("text",)))


def _text(content: Any, types: tuple[str, ...]) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise Refused(f"content that is no text: {str(content)[:100]}")
    for part in content:
        if part["type"] not in types:
            raise Refused(f"a part of type {part['type']}")
    return "".join(part["text"] for part in content)


def _usage(text: str, first: str, second: str) -> dict[str, int]:
    return {first: 100, second: len(text) // 4 + 1}


def _chat_usage(text: str) -> dict[str, int]:
    usage = _usage(text, "prompt_tokens", "completion_tokens")
    return {**usage, "total_tokens": sum(usage.values())}


def _whole_chat(text: str) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    frame = {"id": _id("chatcmpl-"), "object": "chat.completion", "created": 1, "model": "text-only"}
    return {**frame, "choices": [choice], "usage": _chat_usage(text)}


def _stream_chat(text: str) -> Iterator[str]:
    frame = {"id": _id("chatcmpl-"), "object": "chat.completion.chunk", "created": 1, "model": "text-only"}
    deltas: list[tuple[dict[str, Any], str | None]] = [({"role": "assistant", "content": ""}, None)]
    deltas += [({"content": piece}, None) for piece in odd_pieces(text)]
    for delta, finish in [*deltas, ({}, "stop")]:
        yield _event({**frame, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
    yield _event({**frame, "choices": [], "usage": _chat_usage(text)})
    yield "data: [DONE]\n\n"


def _whole_messages(text: str) -> dict[str, Any]:
    frame = {"id": _id("msg_"), "type": "message", "role": "assistant", "model": "text-only", "stop_sequence": None}
    usage = _usage(text, "input_tokens", "output_tokens")
    return {**frame, "content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "usage": usage}


def _stream_messages(text: str) -> Iterator[str]:
    start = {**_whole_messages(text), "content": [], "stop_reason": None}
    yield _event({"type": "message_start", "message": start})
    yield _event({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})
    for piece in odd_pieces(text):
        delta = {"type": "text_delta", "text": piece}
        yield _event({"type": "content_block_delta", "index": 0, "delta": delta})
    yield _event({"type": "content_block_stop", "index": 0})
    end = {"stop_reason": "end_turn", "stop_sequence": None}
    yield _event({"type": "message_delta", "delta": end, "usage": {"output_tokens": len(text) // 4 + 1}})
    yield _event({"type": "message_stop"})


def _whole_responses(text: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    item = {"type": "message", "id": _id("msg_"), "role": "assistant", "status": "completed", "content": [part]}
    usage = _usage(text, "input_tokens", "output_tokens")
    frame = {"id": _id("resp_"), "object": "response", "created_at": 1, "model": "text-only", "status": "completed"}
    return {**frame, "output": [item], "usage": {**usage, "total_tokens": sum(usage.values())}}


def _stream_responses(text: str) -> Iterator[str]:
    whole = _whole_responses(text)
    item = whole["output"][0]
    part = item["content"][0]
    place = {"item_id": item["id"], "output_index": 0, "content_index": 0}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**whole, "status": "in_progress", "output": [], "usage": None}},
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {**item, "status": "in_progress", "content": []},
        },
        {"type": "response.content_part.added", **place, "part": {**part, "text": ""}},
        *({"type": "response.output_text.delta", **place, "delta": piece} for piece in odd_pieces(text)),
        {"type": "response.output_text.done", **place, "text": text},
        {"type": "response.content_part.done", **place, "part": part},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": whole},
    ]
    for number, event in enumerate(events):
        yield _event({**event, "sequence_number": number})


def _id(prefix: str) -> str:
    """Some clients treat two answers with the same id as one message."""
    return prefix + secrets.token_hex(8)


def _event(value: dict[str, Any]) -> str:
    name = f"event: {value['type']}\n" if "type" in value else ""
    return f"{name}data: {json.dumps(value, ensure_ascii=False)}\n\n"


WIRES = {
    "openai-chat": Wire("/v1/chat/completions", _read_chat, _whole_chat, _stream_chat),
    "anthropic": Wire("/v1/messages", _read_messages, _whole_messages, _stream_messages),
    "openai-responses": Wire("/v1/responses", _read_responses, _whole_responses, _stream_responses),
}
