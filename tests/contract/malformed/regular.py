"""The output of a correct server: the events of a stream and the non-streaming body, as values that tests can damage."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

Value = dict[str, Any]
_LONE = re.compile("[\ud800-\udfff]")
DONE: Value = {"[DONE]": True}  # placeholder for the end marker, so that a stream is a list of values

FINISH: dict[str, dict[str, str]] = {
    "chat": {"stop": "stop", "length": "length", "tool_calls": "tool_calls", "refused": "content_filter"},
    "messages": {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "refused": "refusal"},
    "responses": {"length": "max_output_tokens", "refused": "content_filter"},
    "gemini": {"stop": "STOP", "length": "MAX_TOKENS", "tool_calls": "STOP", "refused": "SAFETY"},
}


class Call(NamedTuple):
    """pieces are the streamed fragments of its arguments."""

    name: str
    pieces: tuple[str, ...]
    id: str = "call_1"

    @property
    def raw(self) -> str:
        return "".join(self.pieces)


class ReplyContent(NamedTuple):
    """The content of the answer."""

    text: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()
    reasoning: tuple[str, ...] = ()
    finish: str = ""
    after: tuple[str, ...] = ()  # text after the calls

    @property
    def reason(self) -> str:
        return self.finish or ("tool_calls" if self.calls else "stop")


PARIS = Call("get_weather", ('{"location": "Pa', 'ris"}'))
OSLO = Call("get_weather", ('{"location":', '"Oslo","days":2}'), "call_2")
CLOCK = Call("get_time", ("{}",), "call_3")
WORDS = ("Let me", " look.")
HELLO = ReplyContent(WORDS)
ASKING = ReplyContent(WORDS, (PARIS,))
PARALLEL = ReplyContent(WORDS, (PARIS, OSLO, CLOCK))


def stream(dialect: str, expected_of: ReplyContent) -> list[Value]:
    writers = {"chat": chat_stream, "responses": responses_stream, "messages": messages_stream, "gemini": gemini_stream}
    return writers[dialect](expected_of)


def body(dialect: str, expected_of: ReplyContent) -> Value:
    writers = {"chat": chat_body, "responses": responses_body, "messages": messages_body, "gemini": gemini_body}
    return writers[dialect](expected_of)


def sse(values: list[Value]) -> bytes:
    return b"".join(frame(value) for value in values)


def frame(value: Any) -> bytes:
    """One event; if it has a type, that is also the event name, as in two of the dialects."""
    if value == DONE:
        return b"data: [DONE]\n\n"
    data = dumped(value)
    kind = value.get("type") if isinstance(value, dict) else None
    return (f"event: {kind}\n".encode("utf-8", "replace") if kind else b"") + b"data: " + data + b"\n\n"


def dumped(value: Any) -> bytes:
    """Compact JSON; lone surrogates, which UTF-8 cannot encode, are escaped."""
    return _json(value, separators=(",", ":"))


TOP: Value = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1700000000, "model": "m"}
CHAT_USAGE = {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}


def chunk(delta: Any = None, finish: str | None = None, index: Any = 0, **top: Any) -> Value:
    choice = {"index": index, "delta": {} if delta is None else delta, "logprobs": None, "finish_reason": finish}
    return {**TOP, "choices": [choice], **top}


ROLE = chunk({"role": "assistant", "content": ""})
USAGE_CHUNK: Value = {**TOP, "choices": [], "usage": CHAT_USAGE}


def fragment(arguments: Any = None, index: Any = 0, call_id: Any = None, name: Any = None) -> Value:
    """One entry of tool_calls; None values are omitted."""
    value: Value = {} if index is None else {"index": index}
    if call_id is not None:
        value |= {"id": call_id, "type": "function"}
    inner = {key: item for key, item in (("name", name), ("arguments", arguments)) if item is not None}
    return value | {"function": inner}


def calls(*fragments: Value) -> Value:
    return chunk({"tool_calls": list(fragments)})


def chat_end(finish: str | None = "tool_calls") -> list[Value]:
    return [chunk(finish=finish), USAGE_CHUNK, DONE]


def chat_stream(expected_of: ReplyContent) -> list[Value]:
    found = [ROLE, *(chunk({"reasoning_content": one}) for one in expected_of.reasoning)]
    found += [chunk({"content": one}) for one in expected_of.text]
    for index, call in enumerate(expected_of.calls):
        found.append(calls(fragment("", index, call.id, call.name)))
        found += [calls(fragment(one, index)) for one in call.pieces]
    found += [chunk({"content": one}) for one in expected_of.after]
    return [*found, *chat_end(FINISH["chat"][expected_of.reason])]


def chat_body(expected_of: ReplyContent) -> Value:
    text = "".join(expected_of.text + expected_of.after)
    message: Value = {"role": "assistant", "content": text or None, "refusal": None}
    if expected_of.reasoning:
        message["reasoning_content"] = "".join(expected_of.reasoning)
    if expected_of.calls:
        message["tool_calls"] = [
            {"id": one.id, "type": "function", "function": {"name": one.name, "arguments": one.raw}}
            for one in expected_of.calls
        ]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": FINISH["chat"][expected_of.reason]}
    return {**TOP, "object": "chat.completion", "choices": [choice], "usage": CHAT_USAGE}


RESPONSES_USAGE = {
    "input_tokens": 9,
    "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 14,
}


def resource(status: str, output: list[Value], reason: str = "") -> Value:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1700000000,
        "status": status,
        "model": "m",
        "output": output,
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "temperature": 1,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1,
        "usage": None if status == "in_progress" else RESPONSES_USAGE,
    }


def message_item(text: str, number: int, status: str = "completed") -> Value:
    content = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]
    return {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": status, "content": content}


def call_item(call: Call, number: int, status: str = "completed") -> Value:
    place = {"type": "function_call", "id": f"fc_{number}", "call_id": call.id, "name": call.name}
    return {**place, "arguments": call.raw, "status": status}


def thought_item(texts: tuple[str, ...], number: int) -> Value:
    return {
        "type": "reasoning",
        "id": f"rs_{number}",
        "summary": [{"type": "summary_text", "text": one} for one in texts],
    }


def responses_items(expected_of: ReplyContent) -> list[Value]:
    found: list[Value] = []
    if expected_of.reasoning:
        found.append(thought_item(expected_of.reasoning, len(found)))
    if expected_of.text:
        found.append(message_item("".join(expected_of.text), len(found)))
    for call in expected_of.calls:
        is_last = call is expected_of.calls[-1]
        is_cut = is_last and expected_of.finish in ("length", "refused")
        found.append(call_item(call, len(found), "incomplete" if is_cut else "completed"))
    if expected_of.after:
        found.append(message_item("".join(expected_of.after), len(found)))
    return found


def numbered(values: list[Value]) -> list[Value]:
    return [
        {"type": value["type"], "sequence_number": number} | value if "type" in value else value
        for number, value in enumerate(values)
    ]


def message_events(number: int, texts: tuple[str, ...]) -> list[Value]:
    place = {"item_id": f"msg_{number}", "output_index": number, "content_index": 0}
    whole = message_item("".join(texts), number)
    part = whole["content"][0]
    return [
        {
            "type": "response.output_item.added",
            "output_index": number,
            "item": {**whole, "status": "in_progress", "content": []},
        },
        {"type": "response.content_part.added", **place, "part": {**part, "text": ""}},
        *({"type": "response.output_text.delta", **place, "delta": one, "logprobs": []} for one in texts),
        {"type": "response.output_text.done", **place, "text": "".join(texts), "logprobs": []},
        {"type": "response.content_part.done", **place, "part": part},
        {"type": "response.output_item.done", "output_index": number, "item": whole},
    ]


def call_events(number: int, call: Call, status: str = "completed") -> list[Value]:
    place = {"item_id": f"fc_{number}", "output_index": number}
    opened = {**call_item(call, number), "arguments": "", "status": "in_progress"}
    return [
        {"type": "response.output_item.added", "output_index": number, "item": opened},
        *({"type": "response.function_call_arguments.delta", **place, "delta": one} for one in call.pieces),
        {"type": "response.function_call_arguments.done", **place, "name": call.name, "arguments": call.raw},
        {"type": "response.output_item.done", "output_index": number, "item": call_item(call, number, status)},
    ]


def thought_events(number: int, texts: tuple[str, ...]) -> list[Value]:
    opened = {"type": "reasoning", "id": f"rs_{number}", "summary": []}
    found: list[Value] = [{"type": "response.output_item.added", "output_index": number, "item": opened}]
    for index, text in enumerate(texts):
        place = {"item_id": f"rs_{number}", "output_index": number, "summary_index": index}
        part = {"type": "summary_text", "text": text}
        found += [
            {"type": "response.reasoning_summary_part.added", **place, "part": {**part, "text": ""}},
            {"type": "response.reasoning_summary_text.delta", **place, "delta": text},
            {"type": "response.reasoning_summary_text.done", **place, "text": text},
            {"type": "response.reasoning_summary_part.done", **place, "part": part},
        ]
    done = {"type": "response.output_item.done", "output_index": number, "item": thought_item(texts, number)}
    return [*found, done]


def responses_begin() -> list[Value]:
    opened = resource("in_progress", [])
    return [{"type": "response.created", "response": opened}, {"type": "response.in_progress", "response": opened}]


def responses_end(output: list[Value], finish: str = "stop") -> list[Value]:
    if finish in ("length", "refused"):
        reason = FINISH["responses"][finish]
        return [{"type": "response.incomplete", "response": resource("incomplete", output, reason)}]
    return [{"type": "response.completed", "response": resource("completed", output)}]


def responses_stream(expected_of: ReplyContent) -> list[Value]:
    items = responses_items(expected_of)
    found = responses_begin()
    number = 0
    if expected_of.reasoning:
        found += thought_events(number, expected_of.reasoning)
        number += 1
    if expected_of.text:
        found += message_events(number, expected_of.text)
        number += 1
    for call in expected_of.calls:
        found += call_events(number, call, items[number]["status"])
        number += 1
    if expected_of.after:
        found += message_events(number, expected_of.after)
    return numbered([*found, *responses_end(items, expected_of.reason)])


def responses_body(expected_of: ReplyContent) -> Value:
    if expected_of.finish in ("length", "refused"):
        return resource("incomplete", responses_items(expected_of), FINISH["responses"][expected_of.finish])
    return resource("completed", responses_items(expected_of))


MESSAGES_TOP: Value = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m"}


def message_start(**members: Any) -> Value:
    usage = {"input_tokens": 9, "output_tokens": 1}
    rest = {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    return {"type": "message_start", "message": {**MESSAGES_TOP, **rest, **members}}


def message_end(stop: str | None = "end_turn", **members: Any) -> list[Value]:
    delta = {"stop_reason": stop, "stop_sequence": None}
    ending = {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 5}}
    return [{**ending, **members}, {"type": "message_stop"}]


def opened(index: Any, block: Value) -> Value:
    return {"type": "content_block_start", "index": index, "content_block": block}


def grown(index: Any, kind: str, text: Any) -> Value:
    member = {"text_delta": "text", "input_json_delta": "partial_json", "thinking_delta": "thinking"}.get(kind, kind)
    if kind == "signature_delta":
        member = "signature"
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, member: text}}


def stopped(index: Any) -> Value:
    return {"type": "content_block_stop", "index": index}


def text_block(index: int, texts: tuple[str, ...]) -> list[Value]:
    begin = opened(index, {"type": "text", "text": ""})
    return [begin, *(grown(index, "text_delta", one) for one in texts), stopped(index)]


def use(call: Call, **members: Any) -> Value:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": {}, **members}


def use_block(index: int, call: Call) -> list[Value]:
    return [
        opened(index, use(call)),
        *(grown(index, "input_json_delta", one) for one in call.pieces),
        stopped(index),
    ]


def thought_block(index: int, texts: tuple[str, ...]) -> list[Value]:
    begin = opened(index, {"type": "thinking", "thinking": "", "signature": ""})
    signed = grown(index, "signature_delta", "c2ln")
    return [begin, *(grown(index, "thinking_delta", one) for one in texts), signed, stopped(index)]


def messages_stream(expected_of: ReplyContent) -> list[Value]:
    found = [message_start()]
    blocks: list[list[Value]] = []
    if expected_of.reasoning:
        blocks.append(thought_block(0, expected_of.reasoning))
    if expected_of.text:
        blocks.append(text_block(len(blocks), expected_of.text))
    for call in expected_of.calls:
        blocks.append(use_block(len(blocks), call))
    if expected_of.after:
        blocks.append(text_block(len(blocks), expected_of.after))
    for block in blocks:
        found += block
    return [*found, *message_end(FINISH["messages"][expected_of.reason])]


def messages_body(expected_of: ReplyContent) -> Value:
    content: list[Value] = []
    if expected_of.reasoning:
        content.append({"type": "thinking", "thinking": "".join(expected_of.reasoning), "signature": "c2ln"})
    if expected_of.text:
        content.append({"type": "text", "text": "".join(expected_of.text)})
    content += [use(one, input=Exact(one.raw)) for one in expected_of.calls]
    if expected_of.after:
        content.append({"type": "text", "text": "".join(expected_of.after)})
    end = {"stop_reason": FINISH["messages"][expected_of.reason], "stop_sequence": None}
    return {**MESSAGES_TOP, "content": content, **end, "usage": {"input_tokens": 9, "output_tokens": 5}}


GEMINI_TOP: Value = {"modelVersion": "m", "responseId": "resp-1"}
GEMINI_USAGE: Value = {"promptTokenCount": 9, "candidatesTokenCount": 5, "totalTokenCount": 14}


def candidates(*parts: Value, **members: Any) -> Value:
    content = {"parts": list(parts), "role": "model"}
    return {"candidates": [{"content": content, "index": 0, **members}], **GEMINI_TOP}


def function_call(call: Call) -> Value:
    """Arguments are an object; a model's text that is none comes as a string."""
    args = Exact(call.raw.replace("\n", " ")) if isinstance(_object_in(call.raw), dict) else call.raw
    return {"functionCall": {"id": call.id, "name": call.name, "args": args}}


def _object_in(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def gemini_parts(expected_of: ReplyContent) -> list[Value]:
    found: list[Value] = [{"text": one, "thought": True} for one in expected_of.reasoning]
    found += [{"text": one} for one in expected_of.text]
    found += [function_call(call) for call in expected_of.calls]
    return [*found, *({"text": one} for one in expected_of.after)]


def gemini_end(finish: str = "STOP", **members: Any) -> Value:
    return {**candidates({"text": ""}, finishReason=finish), "usageMetadata": GEMINI_USAGE, **members}


def gemini_stream(expected_of: ReplyContent) -> list[Value]:
    """A call is never in pieces."""
    found = [candidates(part) for part in gemini_parts(expected_of)]
    return [*found, gemini_end(FINISH["gemini"][expected_of.reason])]


def gemini_body(expected_of: ReplyContent) -> Value:
    texts = {"text": expected_of.text, "after": expected_of.after, "reasoning": expected_of.reasoning}
    joined = expected_of._replace(**{name: ("".join(one),) if one else () for name, one in texts.items()})
    value = candidates(*gemini_parts(joined), finishReason=FINISH["gemini"][expected_of.reason])
    return {**value, "usageMetadata": GEMINI_USAGE}


class Exact(str):
    """JSON text that is inserted into a body unchanged."""


def body_bytes(value: Value) -> bytes:
    return _json(value)


def _json(value: Any, **options: Any) -> bytes:
    marks: list[str] = []
    text = json.dumps(_marked(value, marks), ensure_ascii=False, **options)
    for number, raw in enumerate(marks):
        text = text.replace(f'"\\u0001{number}\\u0001"', raw)
    return _LONE.sub(lambda match: f"\\u{ord(match.group()):04x}", text).encode()


def _marked(value: Any, marks: list[str]) -> Any:
    if isinstance(value, Exact):
        marks.append(value)
        return f"\x01{len(marks) - 1}\x01"
    if isinstance(value, dict):
        return {key: _marked(item, marks) for key, item in value.items()}
    return [_marked(item, marks) for item in value] if isinstance(value, list) else value
