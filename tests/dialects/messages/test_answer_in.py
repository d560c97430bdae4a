"""Messages answers in: blocks that are missing their start, their stop or their order, and errors in any place."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.dialects.codec_harness import answer_in, body_in, events_in, failure, irregular_in, make_request, terminal
from tests.dialects.upstream_events import (
    DONE,
    block,
    event,
    json_delta,
    message_end,
    message_start,
    sse,
    text_delta,
    tool_use,
)
from toolwire.dialects import DIALECTS
from toolwire.events import Finished, Noted, fold
from toolwire.types import Citation, Opaque, Reasoning, Text, ToolCall

ONE = '{"a":1}'
TEXT = {"type": "text", "text": ""}
THOUGHT = {"type": "thinking", "thinking": "", "signature": ""}
CALL = ToolCall(id="x", name="first", raw=ONE, args={"a": 1})


def parts_in(*chunks: bytes, end: bytes | None = None) -> tuple[Any, ...]:
    return answer_in("messages", message_start(), *chunks, message_end() if end is None else end).parts_of(0)


def test_H009_arguments_are_the_deltas_not_the_start() -> None:
    assert parts_in(block(0, tool_use("x", "first"), json_delta('{"a"'), json_delta(":1}"))) == (CALL,)


def test_H010_input_given_in_the_start_counts_where_no_delta_comes() -> None:
    given = tool_use("x", "first", input={"a": 1})
    assert parts_in(block(0, given)) == (CALL,)
    assert parts_in(block(0, given, json_delta(ONE))) == (CALL,)
    assert irregular_in("messages", message_start() + block(0, given) + message_end("tool_use"))


def test_H012_a_call_without_arguments() -> None:
    empty = ToolCall(id="x", name="first", raw="{}", args={})
    assert parts_in(block(0, tool_use("x", "first"))) == (empty,)
    assert parts_in(block(0, tool_use("x", "first"), json_delta(""))) == (empty,)


def test_H031_a_call_cut_before_its_arguments_has_none() -> None:
    (one,) = parts_in(block(0, tool_use("a", "f")), end=message_end("max_tokens"))
    assert (one.raw, one.args) == ("", None)
    first, _ = parts_in(block(0, tool_use("a", "f")), block(1, TEXT), end=message_end("max_tokens"))
    assert (first.raw, first.args) == ("{}", {})


def test_H081_signatures_are_joined_and_thoughts_may_be_empty() -> None:
    deltas = [{"type": "signature_delta", "signature": text} for text in ("c2", "ln")]
    assert parts_in(block(0, THOUGHT, *deltas)) == (Reasoning(text="", signature="c2ln"),)
    assert parts_in(block(0, {"type": "redacted_thinking", "data": "b3A="})) == (Reasoning(text="", redacted="b3A="),)


def test_a_signature_in_the_start_counts() -> None:
    start = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    assert parts_in(block(0, start)) == (Reasoning(text="hm", signature="c2ln"),)


def test_a_signature_where_none_belongs_does_no_harm() -> None:
    assert parts_in(block(0, TEXT, text_delta("a"), {"type": "signature_delta", "signature": "s"})) == (Text(text="a"),)


def test_a_missing_stop_of_a_block_ends_with_the_next_or_with_the_message() -> None:
    wire = block(0, TEXT, text_delta("a"), is_stopped=False) + block(0, tool_use("x", "first"), json_delta(ONE))
    assert parts_in(wire) == (Text(text="a"), CALL)
    assert parts_in(block(0, tool_use("x", "first"), json_delta(ONE), is_stopped=False)) == (CALL,)


def test_blocks_that_overlap_get_their_own_deltas() -> None:
    wire = [
        block(0, TEXT, is_stopped=False),
        block(1, tool_use("x", "first"), is_stopped=False),
        event("content_block_delta", index=0, delta=text_delta("a")),
        event("content_block_delta", index=1, delta=json_delta(ONE)),
        event("content_block_stop", index=1),
        event("content_block_delta", index=0, delta=text_delta("b")),
        event("content_block_stop", index=0),
    ]
    assert parts_in(*wire) == (Text(text="ab"), CALL)
    assert "out of order" in irregular_in("messages", message_start() + b"".join(wire) + message_end())


def test_all_blocks_with_index_zero() -> None:
    assert parts_in(block(0, TEXT, text_delta("a")), block(0, tool_use("x", "first"), json_delta(ONE))) == (
        Text(text="a"),
        CALL,
    )


def test_blocks_without_an_index() -> None:
    start = sse({"type": "content_block_start", "content_block": TEXT}, "content_block_start")
    delta = sse({"type": "content_block_delta", "delta": text_delta("a")}, "content_block_delta")
    assert parts_in(start, delta) == (Text(text="a"),)


def test_no_start_of_the_message() -> None:
    answer = answer_in("messages", block(0, TEXT, text_delta("a")), message_end())
    assert answer.parts_of(0) == (Text(text="a"),)
    assert irregular_in("messages", block(0, TEXT, text_delta("a")) + message_end())


def test_no_message_stop_after_a_stop_reason_is_an_end() -> None:
    wire = message_start() + block(0, TEXT, text_delta("a")) + message_end().partition(b"event: message_stop")[0]
    assert isinstance(terminal(events_in("messages", wire)), Finished)
    assert irregular_in("messages", wire) == "no end mark"


def test_H154_a_cut_without_a_stop_reason_is_an_error() -> None:
    wire = message_start() + block(0, tool_use("x", "first"), json_delta('{"a'), is_stopped=False)
    assert failure(events_in("messages", wire)).error.code == "upstream_cut"
    assert failure(events_in("messages", b"")).error.code == "upstream_cut"


@pytest.mark.parametrize(
    ("frame", "status", "code"),
    [
        (event("error", error={"type": "overloaded_error", "message": "Overloaded"}), 529, "overloaded"),
        (event("error", error={"type": "rate_limit_error", "message": "slow"}), 429, "rate_limited"),
        (
            event("error", error={"type": "invalid_request_error", "message": "prompt is too long: 9 > 8"}),
            400,
            "context_length_exceeded",
        ),
        (sse({"error": {"message": "odd"}}), 502, "upstream_error"),
        (sse({"type": "error", "error": "words"}, "error"), 502, "upstream_error"),
        (b"data: <html>\n\n", 502, "upstream_garbage"),
        (b"event: error\ndata: []\n\n", 502, "upstream_garbage"),
    ],
)
def test_H146_H154_errors_in_mid_stream(frame: bytes, status: int, code: str) -> None:
    for before in (b"", message_start() + block(0, TEXT, text_delta("a"), is_stopped=False)):
        error = failure(events_in("messages", before, frame)).error
        assert (error.status, error.code) == (status, code)


def test_a_done_mark_of_another_dialect_does_no_harm() -> None:
    wire = message_start() + block(0, TEXT, text_delta("a")) + message_end()
    assert fold(events_in("messages", wire, DONE)) == fold(events_in("messages", wire))
    between = answer_in("messages", message_start(), DONE, block(0, TEXT, text_delta("a")), message_end())
    assert between.parts_of(0) == (Text(text="a"),)


def test_a_call_without_a_name_is_a_failure() -> None:
    wire = message_start() + block(0, {"type": "tool_use", "id": "x", "input": {}}, json_delta(ONE)) + message_end()
    assert "without a name" in failure(events_in("messages", wire)).error.message


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("pause_turn", "paused"),
        ("refusal", "refused"),
        ("new_word", "other"),
    ],
)
def test_stop_reasons(raw: str, reason: str) -> None:
    answer = answer_in("messages", message_start(), message_end(raw))
    assert (answer.finished.choices[0].reason, answer.finished.choices[0].raw_reason) == (reason, raw)


def test_H028_a_stop_reason_that_hides_a_call_is_irregular() -> None:
    wire = message_start() + block(0, tool_use("x", "first"), json_delta(ONE))
    assert "hides" in irregular_in("messages", wire + message_end("end_turn"))
    assert irregular_in("messages", wire + message_end("tool_use")) == ""


def test_H144_usage_of_the_start_and_of_the_end_are_one() -> None:
    usage = {"input_tokens": 3, "cache_read_input_tokens": 10, "cache_creation_input_tokens": 5, "output_tokens": 1}
    answer = answer_in("messages", message_start(usage=usage), message_end(output_tokens=7, input_tokens=None))
    assert answer.started.usage is not None
    assert answer.started.usage.input == 18
    found = answer.finished.usage
    assert found is not None
    assert (found.input, found.output, found.cached, found.cache_written) == (18, 7, 10, 5)


def test_citations_and_unknown_deltas_are_noted_at_their_block() -> None:
    citation = {"type": "web_search_result_location", "url": "https://a", "title": "A", "cited_text": "q"}
    wire = block(
        0, TEXT, text_delta("a"), {"type": "citations_delta", "citation": citation}, {"type": "new_delta", "x": 1}
    )
    events = events_in("messages", message_start(), wire, message_end())
    (part,) = fold(events).parts_of(0)
    assert isinstance(part, Text)
    assert [(one.url, one.title, one.quote) for one in part.citations] == [("https://a", "A", "q")]
    notes = [event for event in events if isinstance(event, Noted)]
    assert [type(note.note) for note in notes] == [Citation, Opaque]
    assert [note.index for note in notes] == [0, 0]


def test_server_tool_blocks_are_carried_whole() -> None:
    use = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    events = events_in("messages", message_start(), block(0, use, json_delta('{"q":1}')), message_end())
    assert fold(events).parts_of(0) == (Opaque(dialect="messages", value=use),)
    assert [event.note for event in events if isinstance(event, Noted)] == [
        Opaque(dialect="messages", value=json_delta('{"q":1}'))
    ]


def test_unknown_events_before_the_start_are_no_answer() -> None:
    events = events_in("messages", event("vendor_note", x=1), message_start(), message_end())
    assert not any(isinstance(event, Noted) for event in events)


@pytest.mark.parametrize(
    ("given", "raw"),
    [({"a": 1}, ONE), (ONE, ONE), (["a"], '["a"]'), (None, "{}"), ("", "{}"), (5, "5")],
)
def test_input_of_a_body_in_any_form(given: Any, raw: str) -> None:
    content = [{"type": "tool_use", "id": "x", "name": "first", "input": given}]
    body = {"id": "m", "model": "m", "content": content, "stop_reason": "tool_use", "usage": {"input_tokens": 1}}
    (part,) = fold(body_in("messages", json.dumps(body).encode())).parts_of(0)
    assert isinstance(part, ToolCall)
    assert part.raw == raw


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"<html>", "not JSON"),
        (b"{}", "no content"),
        (b'{"type":"error","error":{"type":"api_error","message":"down"}}', "down"),
        (b'{"content":5}', "no content"),
    ],
)
def test_a_body_that_is_no_answer(body: bytes, words: str) -> None:
    assert words in failure(body_in("messages", body)).error.message


def test_an_empty_delta_before_the_answer_is_dropped() -> None:
    wire = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{}}\n\n'
    events = DIALECTS["messages"].stream_decoder(make_request("messages")).feed(wire)
    assert events == []
