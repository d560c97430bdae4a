"""Answers in every dialect: any split gives the same answer, the own dialect loses nothing, calls survive in every other."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dialects.answers import FAMILIES, JSON, WORDS, essence
from tests.dialects.codec_harness import (
    ALL,
    answer_in,
    body_in,
    check,
    events_in,
    make_request,
    numbered_ids,
    out,
    pieces,
    run,
)
from tests.dialects.upstream_events import REGULAR
from tests.thorough import examples, is_thorough
from toolwire.calls.turn import Turn
from toolwire.dialects import DIALECTS
from toolwire.events import Event, Failed, Finished, FoldedAnswer, PartEnded, Started, fold, unfold
from toolwire.types import Choice, Request, ToolCall, Usage
from toolwire.wire.exact_json import object_of

PAIRS = [(left, right) for left in ALL for right in ALL]
each_dialect = pytest.mark.parametrize("dialect", ALL)
each_pair = pytest.mark.parametrize(("left", "right"), PAIRS)
quick = examples(40)

STEP = 1 if is_thorough() else 3  # of places to cut at

ARGUMENTS = {
    "unicode": '{"stadt":"Zürich 世界 😀 \u2028"}',
    "escapes": r'{"a":"\"\\\/\b\f\n\r\t\u0000\u00e9\ud83d\ude00"}',
    "25 digits": '{"id":1234567890123456789012345,"n":-9999999999999999999999999}',
    "1e400": '{"x":1e400,"y":-1E-400,"z":1.10}',
    "minus zero": '{"x":-0.0,"y":-0}',
    "200 deep": '{"a":' * 200 + "1" + "}" * 200,
    "1 MB": json.dumps({"text": "0123456789abcdé\n" * 60_000}),
    "duplicate keys": '{"a":1,"a":2}',
    "lone surrogate": r'{"a":"\ud800x","b":"\udfff"}',
    "bare surrogate": '{"a":"\ud800x"}',
    "empty": "{}",
    "spaced": '{ "a" : [ 1 ,  2 ] }\n',
}


def request_for(dialect: str, answer: FoldedAnswer, *, is_stream: bool) -> Request:
    count = len(answer.finished.choices)
    members: dict[str, Any] = {"n": count} if dialect == "chat" else {}
    if dialect == "gemini":
        members = {"generationConfig": {"candidateCount": count}}
    return make_request(dialect, is_stream=is_stream, **members)


def over(dialect: str, events: list[Event], *, is_stream: bool, request: Request | None = None) -> list[Event]:
    """Out and in again."""
    request = request or make_request(dialect, is_stream=is_stream)
    wire = out(dialect, Turn(request, numbered_ids()).send(events), request)
    return events_in(dialect, wire, request=request) if is_stream else body_in(dialect, wire, request)


@pytest.mark.slow
@each_dialect
def test_H150_a_cut_at_any_byte_changes_nothing(dialect: str) -> None:
    wire = REGULAR[dialect]
    whole = events_in(dialect, wire)
    assert isinstance(whole[-1], Finished)
    for place in range(0, len(wire), STEP):
        request = make_request(dialect)
        assert run(DIALECTS[dialect].stream_decoder(request), [wire[:place], wire[place:]]) == whole, place
    assert events_in(dialect, *(wire[place : place + 1] for place in range(len(wire)))) == whole


@each_dialect
@given(data=st.data())
@quick
def test_random_cuts_change_nothing(dialect: str, data: st.DataObject) -> None:
    answer = data.draw(FAMILIES[dialect])
    request = request_for(dialect, answer, is_stream=True)
    wire = out(dialect, unfold(answer), request)
    cuts = data.draw(st.lists(st.integers(0, len(wire)), max_size=8))
    for form in (wire, wire.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + wire):
        cut = pieces(form, [min(cut, len(form)) for cut in cuts])
        assert events_in(dialect, *cut, request=request) == events_in(dialect, wire, request=request)


@pytest.mark.slow
@each_dialect
@pytest.mark.parametrize("is_stream", [True, False], ids=["stream", "body"])
@given(data=st.data())
@quick
def test_an_answer_survives_its_own_wire(dialect: str, is_stream: bool, data: st.DataObject) -> None:
    answer = data.draw(FAMILIES[dialect])
    assert fold(unfold(answer)) == answer
    request = request_for(dialect, answer, is_stream=is_stream)
    again = fold(over(dialect, unfold(answer), is_stream=is_stream, request=request))
    left, right = essence(again), essence(answer)
    if (not is_stream and dialect == "messages") or dialect == "gemini":
        left, right = without_raw(left), without_raw(right)
    assert left == right
    assert [calls_of(again)] == [calls_of(answer)] or not is_stream


def without_raw(whole: Any) -> Any:
    """Where a body carries objects, arguments are the same as values, not as text."""
    head, parts, *rest = whole
    kept = [(choice, (*part[:3], *part[4:]) if part[0] == "call" else part) for choice, part in parts]
    return head, kept, *rest


def calls_of(answer: FoldedAnswer) -> list[Any]:
    calls = [ended.part for ended in answer.parts if isinstance(ended.part, ToolCall)]
    return [(call.name, object_of(call.raw)) for call in calls if call.kind == "function"]


@each_pair
@pytest.mark.parametrize("is_stream", [True, False], ids=["stream", "body"])
@pytest.mark.parametrize("case", ARGUMENTS)
def test_H018_H072_arguments_survive_two_dialects(left: str, right: str, is_stream: bool, case: str) -> None:
    raw = ARGUMENTS[case]
    args = object_of(raw)
    assert args is not None
    calls = [ToolCall(id=f"call_{number}", name=f"tool_{number}", raw=raw, args=args) for number in range(2)]
    parts = tuple(PartEnded(index=index, part=call) for index, call in enumerate(calls))
    finished = Finished(choices=(Choice(reason="tool_calls"),), usage=Usage(input=1, output=1))
    answer = FoldedAnswer(started=Started(id="a", model="m"), parts=parts, finished=finished)
    events = over(left, unfold(answer), is_stream=is_stream)
    again = fold(over(right, events, is_stream=is_stream))
    found = [ended.part for ended in again.parts if isinstance(ended.part, ToolCall)]
    assert len(found) == len(again.parts)
    assert [(call.id, call.name, call.args) for call in found] == [(call.id, call.name, args) for call in calls]
    if "gemini" not in (left, right) and (is_stream or "messages" not in (left, right)):
        assert [call.raw for call in found] == [raw, raw]
    assert again.finished.choices[0].reason == "tool_calls"


@pytest.mark.slow
@each_pair
@given(data=st.data())
@examples(15)
def test_calls_survive_between_dialects(left: str, right: str, data: st.DataObject) -> None:
    answer = data.draw(FAMILIES[left].filter(lambda answer: len(answer.finished.choices) == 1))
    before = [ended.part for ended in answer.parts if isinstance(ended.part, ToolCall)]
    for is_stream in (True, False):
        events = over(left, unfold(answer), is_stream=is_stream)
        again = fold(over(right, events, is_stream=is_stream))
        after = [ended.part for ended in again.parts if isinstance(ended.part, ToolCall)]
        assert [(call.id, call.name) for call in after] == [(call.id, call.name) for call in before]
        assert [worth(call) for call in after] == [worth(call) for call in before]
        texts = "".join(getattr(ended.part, "text", "") for ended in again.parts)
        for ended in answer.parts:
            if type(ended.part).__name__ in ("Text", "Refusal"):
                assert getattr(ended.part, "text", "") in texts


def worth(call: ToolCall) -> Any:
    """A freeform call is told as a function call with one member where a dialect has no such thing."""
    args = object_of(call.raw)
    return args if call.kind == "function" and args != {"input": ""} and set(args or ()) != {"input"} else _input(call)


def _input(call: ToolCall) -> Any:
    args = object_of(call.raw)
    return args["input"] if call.kind == "function" and args is not None else call.raw


EVENTS: dict[str, list[Any]] = {
    "chat": ["chat.completion.chunk"],
    "gemini": ["chunk"],
    "messages": [
        "message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta",
        "message_stop", "ping", "error",
    ],
    "responses": [
        "response.created", "response.output_item.added", "response.output_item.done", "response.content_part.added",
        "response.content_part.done", "response.output_text.delta", "response.output_text.done", "response.refusal.delta",
        "response.output_text.annotation.added", "response.function_call_arguments.delta", "response.completed",
        "response.function_call_arguments.done", "response.custom_tool_call_input.delta", "response.incomplete",
        "response.reasoning_summary_part.added", "response.reasoning_summary_text.delta", "response.failed",
        "response.reasoning_text.delta", "response.reasoning_summary_part.done", "response.web_search_call.searching",
    ],
}  # fmt: skip
VALUES = st.one_of(
    st.sampled_from([0, 0, 1, 2, "", "text", "thinking", "tool_use", "function_call", "message", "reasoning", "stop"]),
    st.sampled_from(["a", "b", None, True, [], {}, "error", "end_turn", "completed", "refusal", "output_text", "{}"]),
    JSON,
)
KEYS = st.sampled_from(
    ["type", "id", "index", "delta", "choices", "message", "content_block", "item", "part", "text", "thinking", "input",
     "name", "call_id", "arguments", "signature", "partial_json", "usage", "stop_reason", "finish_reason", "error",
     "output_index", "content_index", "summary_index", "sequence_number", "item_id", "response", "output", "summary",
     "content", "annotations", "annotation", "citation", "logprobs", "tool_calls", "function", "created", "created_at",
     "role", "refusal", "reasoning_content", "encrypted_content", "status", "incomplete_details", "function_call", "data",
     "candidates", "parts", "functionCall", "args", "thought", "thoughtSignature", "finishReason", "usageMetadata",
     "promptFeedback", "blockReason", "groundingMetadata", "groundingSupports", "groundingChunks", "segment"]
)  # fmt: skip
WILD = st.recursive(
    VALUES, lambda inner: st.dictionaries(KEYS, inner, max_size=5) | st.lists(inner, max_size=2), max_leaves=12
)
OBJECTS = st.dictionaries(KEYS, WILD, max_size=7)


@pytest.mark.slow
@each_dialect
@given(data=st.data())
@examples(30)
def test_any_events_end_in_one_terminal_event(dialect: str, data: st.DataObject) -> None:
    wire = b""
    for _ in range(data.draw(st.integers(1, 8))):
        kind = data.draw(st.sampled_from(EVENTS[dialect]))
        value = {**data.draw(OBJECTS), "type": kind, "object": kind}
        wire += b"event: " + kind.encode() + b"\ndata: " + json.dumps(value).encode() + b"\n\n"
    wire += data.draw(st.sampled_from([b"", b"data: [DONE]\n\n", b"data: {", b"data: 1\n\n", b"<html>"]))
    events = run(DIALECTS[dialect].stream_decoder(make_request(dialect)), [wire])
    check(events)
    for client in ALL:
        request = make_request(client)
        out(client, Turn(request, numbered_ids()).send(list(events)), request)


@each_dialect
@given(data=st.data())
@examples(60)
def test_a_regular_stream_with_one_wild_frame_keeps_the_contract(dialect: str, data: st.DataObject) -> None:
    whole = REGULAR[dialect].split(b"\n\n")
    place = data.draw(st.integers(0, len(whole) - 2))
    head, _, body = whole[place].rpartition(b"data: ")
    if body == b"[DONE]":
        return
    value = mutated(data, json.loads(body))
    frames = [*whole[:place], head + b"data: " + json.dumps(value).encode(), *whole[place + 1 :]]
    events = run(DIALECTS[dialect].stream_decoder(make_request(dialect)), [b"\n\n".join(frames)])
    check(events)
    for client in ALL:
        request = make_request(client)
        wire = out(client, Turn(request, numbered_ids()).send(list(events)), request)
        if isinstance(events[-1], Finished):
            assert isinstance(run(DIALECTS[client].stream_decoder(request), [wire])[-1], Finished)


def mutated(data: st.DataObject, value: Any) -> Any:
    """The same value with one member somewhere inside replaced, removed or added."""
    if isinstance(value, dict) and value and data.draw(st.integers(0, 3)):
        key = data.draw(st.sampled_from(sorted(value)))
        if data.draw(st.integers(0, 5)) == 0:
            return {**value, data.draw(KEYS): data.draw(WILD)}
        if data.draw(st.integers(0, 5)) == 0:
            return {name: item for name, item in value.items() if name != key}
        return {**value, key: mutated(data, value[key])}
    if isinstance(value, list) and value and data.draw(st.integers(0, 3)):
        place = data.draw(st.integers(0, len(value) - 1))
        return [*value[:place], mutated(data, value[place]), *value[place + 1 :]]
    return data.draw(WILD)


@each_dialect
@given(
    wire=st.binary(max_size=200)
    | st.lists(st.binary(max_size=30), max_size=5).map(lambda x: b"data: " + b"\n\ndata: ".join(x))
)
@examples(100)
def test_any_bytes_end_in_one_terminal_event(dialect: str, wire: bytes) -> None:
    for events in (
        run(DIALECTS[dialect].stream_decoder(make_request(dialect)), [wire]),
        run(DIALECTS[dialect].body_decoder(make_request(dialect, is_stream=False)), [wire]),
    ):
        check(events)
        assert isinstance(events[-1], Failed)


@each_dialect
@given(data=st.data())
@examples(80)
def test_any_body_ends_in_one_terminal_event(dialect: str, data: st.DataObject) -> None:
    request = make_request(dialect, is_stream=False)
    regular = json.loads(out(dialect, events_in(dialect, REGULAR[dialect]), request))
    value = data.draw(OBJECTS) if data.draw(st.integers(0, 4)) == 0 else mutated(data, regular)
    body_in(dialect, json.dumps(value).encode(), request)


@each_dialect
@given(data=st.data())
@examples(60)
def test_any_error_body_is_decoded(dialect: str, data: st.DataObject) -> None:
    body = data.draw(
        st.binary(max_size=50)
        | OBJECTS.map(lambda value: json.dumps(value).encode())
        | WORDS.map(lambda text: json.dumps({"error": {"message": text}}).encode())
    )
    status = data.draw(st.sampled_from([400, 401, 404, 429, 500, 503]))
    error = DIALECTS[dialect].decode_error(status, body, {})
    assert error.status == status
    assert error.message
    for client in ALL:
        assert json.loads(DIALECTS[client].encode_error(error, "req_1"))
    assert DIALECTS[dialect].decode_models(body) is not None


@each_dialect
def test_a_decoder_returns_no_events_after_its_end(dialect: str) -> None:
    decoder = DIALECTS[dialect].stream_decoder(make_request(dialect))
    assert decoder.feed(REGULAR[dialect])
    if dialect == "gemini":  # only the end of the bytes tells that it is over
        assert isinstance(decoder.close()[-1], Finished)
    assert decoder.feed(REGULAR[dialect]) == []
    assert decoder.close() == []


@pytest.mark.slow
@each_dialect
def test_H154_a_stream_cut_anywhere_is_never_a_whole_answer(dialect: str) -> None:
    """Only the very end may be missing: the mark that says nothing but that it is over."""
    wire = REGULAR[dialect]
    last = {
        "chat": b'"finish_reason":"tool_calls"',
        "messages": b'"stop_reason":"tool_use"',
        "responses": b"output_tokens",
        "gemini": b'"responseId":"r1"}',
    }
    told = wire.rindex(last[dialect]) + len(last[dialect])
    for place in range(0, len(wire), STEP):
        events = run(DIALECTS[dialect].stream_decoder(make_request(dialect)), [wire[:place]])
        check(events)
        if place < told:
            assert isinstance(events[-1], Failed), place
            assert events[-1].error.code == "upstream_cut", place


@each_dialect
def test_the_regular_answer_is_regular(dialect: str) -> None:
    decoder = DIALECTS[dialect].stream_decoder(make_request(dialect))
    answer = fold(run(decoder, [REGULAR[dialect]]))
    assert decoder.irregular == ""
    calls = [ended.part for ended in answer.parts if isinstance(ended.part, ToolCall)]
    assert [call.name for call in calls] == ["weather", "now"]
    assert calls[0].args == {"city": "Zürich", "n": 12345678901234567890123}
    assert answer.finished.choices[0].reason == "tool_calls"
    assert answer_in(dialect, REGULAR[dialect]) == answer
