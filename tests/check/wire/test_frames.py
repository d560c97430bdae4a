from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from toolwire.check.deviations import DeviationLog
from toolwire.check.wire import READERS
from toolwire.check.wire.frames import events, json_object, usage_of


def read(raw: bytes) -> tuple[list[object], set[str]]:
    log = DeviationLog()
    return [event.value for event in events(raw, log)], set(log.found)


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_every_line_end_of_the_standard_is_accepted(line_end: str) -> None:
    text = ': hello\n\nevent: a\ndata: {"x": 1}\n\ndata:{"x": 2}\n\n'
    assert read(text.replace("\n", line_end).encode()) == ([{"x": 1}, {"x": 2}], set())


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b'data: {"x": 1}\ndata: {"x": 2}\n\n', "stream.framing"),
        (b'data: {"x": 1}\n', "stream.framing"),
        (b'{"x": 1}', "stream.not_streamed"),
        (b"", "stream.framing"),
        (b'garbage\n\ndata: {"x": 1}\n\n', "stream.framing"),
        (b"data: [1]\n\n", "stream.bad_json"),
        (b'data: {"x": "\xff"}\n\n', "body.encoding"),
        ('data: {"x": "\ufffd"}\n\n'.encode(), "body.encoding"),
    ],
)
def test_irregular_framing_has_its_code(raw: bytes, code: str) -> None:
    assert code in read(raw)[1]


@pytest.mark.parametrize(
    ("raw", "code"), [(b"[]", "body.not_json"), (b"{", "body.not_json"), (b"data: {}\n\n", "body.is_stream")]
)
def test_a_body_must_be_a_json_object(raw: bytes, code: str) -> None:
    log = DeviationLog()
    assert json_object(raw, log) is None
    assert code in log.found


@pytest.mark.parametrize(
    "usage", [{"in": 1}, {"in": -1, "out": 2}, {"in": True, "out": 1}, {"in": 2, "out": 3, "sum": 4}]
)
def test_usage_must_be_counts_that_add_up(usage: object) -> None:
    log = DeviationLog()
    usage_of(usage, log, ("in", "out"), "sum")
    assert set(log.found) == {"usage.wrong"}


@pytest.mark.parametrize("usage", ["many", {"in": "1", "out": 2}, {"in": 1, "out": [2]}])
def test_counts_of_another_type_have_a_code_of_their_own(usage: object) -> None:
    log = DeviationLog()
    usage_of(usage, log, ("in", "out"))
    assert set(log.found) == {"usage.type"}


CHUNK: dict[str, Any] = {
    "id": "c",
    "object": "chat.completion.chunk",
    "choices": [
        {
            "index": 0,
            "delta": {
                "content": "a",
                "tool_calls": [
                    {"index": 0, "id": "x", "type": "function", "function": {"name": "f", "arguments": "{}"}}
                ],
            },
            "finish_reason": "tool_calls",
        }
    ],
    "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
}
MESSAGE: dict[str, Any] = {
    "id": "m",
    "type": "message",
    "role": "assistant",
    "content": [{"type": "text", "text": "a"}, {"type": "tool_use", "id": "x", "name": "f", "input": {}}],
    "stop_reason": "tool_use",
    "usage": {"input_tokens": 1, "output_tokens": 2},
}
RESPONSE: dict[str, Any] = {
    "id": "r",
    "object": "response",
    "status": "completed",
    "output": [{"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": "{}"}],
    "usage": {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
}
CONTENT: dict[str, Any] = {
    "candidates": [
        {"content": {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]}, "finishReason": "STOP"}
    ],
    "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2},
}
BODIES: dict[str, dict[str, Any]] = {
    "chat": {**CHUNK, "choices": [{**CHUNK["choices"][0], "message": CHUNK["choices"][0]["delta"]}]},
    "messages": MESSAGE,
    "responses": RESPONSE,
    "gemini": CONTENT,
}
STREAMS: dict[str, list[dict[str, Any]]] = {
    "chat": [CHUNK, CHUNK],
    "messages": [
        {"type": "message_start", "message": MESSAGE},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "tool_use", "id": "x", "name": "f", "input": {}},
        },
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    ],
    "responses": [
        {"type": "response.created", "response": RESPONSE, "sequence_number": 0},
        {"type": "response.output_item.added", "output_index": 0, "item": RESPONSE["output"][0], "sequence_number": 1},
        {
            "type": "response.function_call_arguments.delta",
            "output_index": 0,
            "item_id": "fc",
            "delta": "{}",
            "sequence_number": 2,
        },
        {"type": "response.output_item.done", "output_index": 0, "item": RESPONSE["output"][0], "sequence_number": 3},
        {"type": "response.completed", "response": RESPONSE, "sequence_number": 4},
    ],
    "gemini": [CONTENT, CONTENT],
}
OTHER_VALUES: list[Any] = [None, True, -1, 1.5, 10**30, "", "x", [], [None], [[]], {}, {"type": []}]


def altered(value: Any) -> Iterator[Any]:
    """The value with another one in each of its places."""
    yield from OTHER_VALUES
    places = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    for place, inner in places:
        for other in altered(inner):
            copy = value.copy()
            copy[place] = other
            yield copy


@pytest.mark.parametrize("dialect", READERS)
def test_no_reader_fails_on_values_of_other_types(dialect: str) -> None:
    for body in altered(BODIES[dialect]):
        READERS[dialect].read_body(json.dumps(body).encode(), DeviationLog())
    for values in altered(STREAMS[dialect]):
        if isinstance(values, list):
            raw = "".join(f"data: {json.dumps(value)}\n\n" for value in values)
            READERS[dialect].read_stream(raw.encode(), DeviationLog())
