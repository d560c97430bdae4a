"""Server-sent events as back ends send them: one builder a dialect, and one regular answer of each."""

from __future__ import annotations

import json
from typing import Any

TOP = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1700000000, "model": "m"}
DONE = b"data: [DONE]\n\n"
USAGE = {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}


def sse(value: Any, event: str = "") -> bytes:
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {json.dumps(value, ensure_ascii=False, separators=(',', ':'))}\n\n".encode("utf-8", "replace")


def chunk(delta: Any = None, finish: str | None = None, index: int = 0, **top: Any) -> bytes:
    """One chat chunk; members of top stand beside its choices."""
    choice = {"index": index, "delta": delta or {}, "logprobs": None, "finish_reason": finish}
    return sse({**TOP, "choices": [choice], **top})


def call(index: int | None = 0, call_id: str | None = None, name: str | None = None, arguments: Any = None) -> Any:
    """The delta of one tool call; what is None is left out."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    value: dict[str, Any] = {"index": index, "id": call_id, "function": function}
    if call_id is not None:
        value["type"] = "function"
    return {"tool_calls": [{key: item for key, item in value.items() if item is not None}]}


def usage_chunk(**usage: Any) -> bytes:
    return sse({**TOP, "choices": [], "usage": usage or USAGE})


def block(index: int, start: Any, *deltas: Any, is_stopped: bool = True) -> bytes:
    """One content block of the messages dialect."""
    wire = event("content_block_start", index=index, content_block=start)
    for delta in deltas:
        wire += event("content_block_delta", index=index, delta=delta)
    return wire + (event("content_block_stop", index=index) if is_stopped else b"")


def event(kind: str, **members: Any) -> bytes:
    return sse({"type": kind, **members}, kind)


def message_start(**members: Any) -> bytes:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []}
    usage = {"input_tokens": 9, "output_tokens": 1}
    rest = {"stop_reason": None, "stop_sequence": None, "usage": usage}
    return event("message_start", message={**message, **rest, **members})


def message_end(reason: str | None = "end_turn", **usage: Any) -> bytes:
    delta = {"stop_reason": reason, "stop_sequence": None}
    return event("message_delta", delta=delta, usage=usage or {"output_tokens": 5}) + event("message_stop")


def tool_use(call_id: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": {}, **more}


def text_delta(text: str) -> dict[str, str]:
    return {"type": "text_delta", "text": text}


def json_delta(text: str) -> dict[str, str]:
    return {"type": "input_json_delta", "partial_json": text}


class Numbered:
    """Events of the responses dialect with their sequence numbers."""

    def __init__(self) -> None:
        self.number = 0
        self.wire = b""
        self.done: list[Any] = []

    def add(self, kind: str, **members: Any) -> Numbered:
        if kind == "output_item.done":
            self.done.append(members["item"])
        self.wire += sse({"type": f"response.{kind}", "sequence_number": self.number, **members}, f"response.{kind}")
        self.number += 1
        return self

    def created(self, **members: Any) -> Numbered:
        return self.add("created", response=response("in_progress", [], **members))

    def message(self, index: int, *texts: str) -> Numbered:
        place = {"item_id": f"msg_{index}", "output_index": index, "content_index": 0}
        item = {"type": "message", "id": f"msg_{index}", "role": "assistant", "status": "in_progress", "content": []}
        whole = {"type": "output_text", "text": "".join(texts), "annotations": [], "logprobs": []}
        self.add("output_item.added", output_index=index, item=item)
        self.add("content_part.added", **place, part={**whole, "text": ""})
        for text in texts:
            self.add("output_text.delta", **place, delta=text, logprobs=[])
        self.add("output_text.done", **place, text="".join(texts), logprobs=[])
        self.add("content_part.done", **place, part=whole)
        done = {**item, "status": "completed", "content": [whole]}
        return self.add("output_item.done", output_index=index, item=done)

    def call(self, index: int, name: str, *texts: str) -> Numbered:
        place = {"item_id": f"fc_{index}", "output_index": index}
        self.add("output_item.added", output_index=index, item=call_item(index, name, "", "in_progress"))
        for text in texts:
            self.add("function_call_arguments.delta", **place, delta=text)
        raw = "".join(texts)
        self.add("function_call_arguments.done", **place, arguments=raw)
        return self.add("output_item.done", output_index=index, item=call_item(index, name, raw))

    def thought(self, index: int, *texts: str, encrypted: str = "") -> Numbered:
        item: dict[str, Any] = {"type": "reasoning", "id": f"rs_{index}", "summary": []}
        place = {"item_id": f"rs_{index}", "output_index": index}
        self.add("output_item.added", output_index=index, item=item)
        for number, text in enumerate(texts):
            where = {**place, "summary_index": number}
            self.add("reasoning_summary_part.added", **where, part={"type": "summary_text", "text": ""})
            self.add("reasoning_summary_text.delta", **where, delta=text)
            self.add("reasoning_summary_text.done", **where, text=text)
            self.add("reasoning_summary_part.done", **where, part={"type": "summary_text", "text": text})
        whole = {**item, "summary": [{"type": "summary_text", "text": text} for text in texts]}
        if encrypted:
            whole["encrypted_content"] = encrypted
        return self.add("output_item.done", output_index=index, item=whole)

    def ended(self) -> Numbered:
        """Completed, with the items that were done."""
        return self.completed(*self.done)

    def completed(self, *output: Any, status: str = "completed", **members: Any) -> Numbered:
        return self.add(status, response=response(status, list(output), **members))


def call_item(index: int, name: str, raw: str, status: str = "completed") -> dict[str, Any]:
    value = {"type": "function_call", "id": f"fc_{index}", "call_id": f"call_{index}", "name": name}
    return {**value, "arguments": raw, "status": status}


def response(status: str, output: list[Any], **members: Any) -> dict[str, Any]:
    usage = None if status == "in_progress" else {"input_tokens": 9, "output_tokens": 5, "total_tokens": 14}
    top = {"id": "resp_1", "object": "response", "created_at": 1700000000, "model": "m", "status": status}
    return {**top, "output": output, "usage": usage, **members}


def gemini_chunk(*parts: Any, finish: str = "", index: int = 0, **top: Any) -> bytes:
    """One chunk of a Gemini stream; members of top stand beside its candidates."""
    candidate: dict[str, Any] = {"content": {"parts": list(parts), "role": "model"}} if parts else {}
    if finish:
        candidate["finishReason"] = finish
    usage = {"promptTokenCount": 9, "candidatesTokenCount": 5, "totalTokenCount": 14}
    rest = {"usageMetadata": usage, "modelVersion": "m", "responseId": "r1"}
    return sse({"candidates": [{**candidate, "index": index}], **rest, **top})


def gemini_call(call_id: str, name: str, args: Any, **members: Any) -> dict[str, Any]:
    call = {"id": call_id, "name": name, "args": args}
    return {"functionCall": {key: value for key, value in call.items() if value != ""}, **members}


TEXT = ('Grüße, 世界 😀 "quoted"\\ ', "line\n", " end")
FIRST = ('{"city":', '"Zür', 'ich","n":12345678901234567890123}')
SECOND = ("{}",)

REGULAR: dict[str, bytes] = {
    "chat": b"".join(
        [
            chunk({"role": "assistant", "content": ""}),
            chunk({"reasoning_content": "let me "}),
            chunk({"reasoning_content": "think"}),
            *(chunk({"content": text}) for text in TEXT),
            chunk(call(0, "call_0", "weather", "")),
            *(chunk(call(0, arguments=text)) for text in FIRST),
            chunk(call(1, "call_1", "now", "")),
            *(chunk(call(1, arguments=text)) for text in SECOND),
            chunk(finish="tool_calls"),
            usage_chunk(),
            DONE,
        ]
    ),
    "messages": b"".join(
        [
            message_start(),
            event("ping"),
            block(
                0,
                {"type": "thinking", "thinking": "", "signature": ""},
                {"type": "thinking_delta", "thinking": "let me "},
                {"type": "thinking_delta", "thinking": "think"},
                {"type": "signature_delta", "signature": "c2ln"},
            ),
            block(1, {"type": "text", "text": ""}, *map(text_delta, TEXT)),
            block(2, tool_use("call_0", "weather"), json_delta(""), *map(json_delta, FIRST)),
            block(3, tool_use("call_1", "now"), *map(json_delta, SECOND)),
            message_end("tool_use"),
        ]
    ),
    "responses": Numbered()
    .created()
    .thought(0, "let me ", "think", encrypted="ZW5j")
    .message(1, *TEXT)
    .call(2, "weather", *FIRST)
    .call(3, "now", *SECOND)
    .ended()
    .wire,
    "gemini": b"".join(
        [
            gemini_chunk({"text": "let me ", "thought": True}),
            gemini_chunk({"text": "think", "thought": True}),
            *(gemini_chunk({"text": text}) for text in TEXT),
            gemini_chunk(gemini_call("call_0", "weather", json.loads("".join(FIRST)), thoughtSignature="c2ln")),
            gemini_chunk(gemini_call("call_1", "now", json.loads("".join(SECOND)))),
            gemini_chunk({"text": ""}, finish="STOP"),
        ]
    ),
}
