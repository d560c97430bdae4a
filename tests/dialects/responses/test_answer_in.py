"""Responses answers in: streams that leave out what others send, and say too much at the end."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.dialects.codec_harness import (
    answer_in,
    body_in,
    events_in,
    failure,
    irregular_in,
    make_request,
    run,
    terminal,
)
from tests.dialects.upstream_events import DONE, Numbered, call_item, response, sse
from toolwire.dialects import DIALECTS
from toolwire.events import Finished, Noted, fold
from toolwire.types import Opaque, Reasoning, Refusal, Text, ToolCall

ONE = '{"a":1}'
CALL = ToolCall(id="call_0", name="first", raw=ONE, args={"a": 1}, item_id="fc_0")
MESSAGE = {"type": "message", "id": "msg_0", "role": "assistant", "content": []}
PLACE = {"item_id": "msg_0", "output_index": 0, "content_index": 0}
ARGUMENTS = {"item_id": "fc_0", "output_index": 0}


def started() -> Numbered:
    return Numbered().created()


def parts_in(wire: Numbered) -> tuple[Any, ...]:
    return answer_in("responses", wire.wire).parts_of(0)


def test_a_call_with_a_copy_of_its_arguments_at_each_end() -> None:
    assert parts_in(started().call(0, "first", '{"a"', ":1}").completed(call_item(0, "first", ONE))) == (CALL,)


def test_no_content_part_added() -> None:
    wire = started().add("output_item.added", output_index=0, item=MESSAGE)
    wire.add("output_text.delta", **PLACE, delta="a").add("output_text.delta", **PLACE, delta="b")
    wire.add("output_item.done", output_index=0, item={**MESSAGE, "content": [{"type": "output_text", "text": "ab"}]})
    assert parts_in(wire.completed()) == (Text(text="ab", item_id="msg_0"),)
    assert irregular_in("responses", wire.wire)


def test_no_output_item_done() -> None:
    wire = started().add("output_item.added", output_index=0, item=call_item(0, "first", ""))
    wire.add("function_call_arguments.delta", **ARGUMENTS, delta=ONE)
    assert parts_in(wire.completed()) == (CALL,)


def test_H022_arguments_that_only_the_final_object_has_are_not_empty() -> None:
    wire = started().add("output_item.added", output_index=0, item=call_item(0, "first", ""))
    assert parts_in(wire.completed(call_item(0, "first", ONE))) == (CALL,)


def test_H015_a_copy_fills_only_what_is_missing() -> None:
    wire = started().add("output_item.added", output_index=0, item=call_item(0, "first", ""))
    wire.add("function_call_arguments.delta", **ARGUMENTS, delta='{"a"')
    wire.add("function_call_arguments.done", **ARGUMENTS, arguments=ONE)
    assert parts_in(wire.add("output_item.done", output_index=0, item=call_item(0, "first", ONE)).completed()) == (
        CALL,
    )


def test_only_the_final_event() -> None:
    message = {**MESSAGE, "id": "msg_1", "content": [{"type": "output_text", "text": "hi", "annotations": []}]}
    wire = Numbered().completed(call_item(0, "first", ONE), message)
    assert parts_in(wire) == (CALL, Text(text="hi", item_id="msg_1"))
    assert irregular_in("responses", wire.wire)


def test_only_the_end_of_an_item() -> None:
    wire = started().add("output_item.done", output_index=0, item=call_item(0, "first", ONE))
    assert parts_in(wire.completed()) == (CALL,)


def test_no_output_item_added_the_name_comes_with_the_end() -> None:
    wire = started().add("function_call_arguments.delta", **ARGUMENTS, delta='{"a"')
    wire.add("function_call_arguments.delta", **ARGUMENTS, delta=":1}")
    wire.add("output_item.done", output_index=0, item=call_item(0, "first", ""))
    assert parts_in(wire.completed()) == (CALL,)


def test_a_call_without_a_name_is_a_failure() -> None:
    wire = started().add("function_call_arguments.delta", **ARGUMENTS, delta=ONE)
    assert "without a name" in failure(events_in("responses", wire.completed().wire)).error.message
    wire = started().add("output_item.done", output_index=0, item=call_item(0, "", ONE))
    assert "without a name" in failure(events_in("responses", wire.completed().wire)).error.message


def test_gaps_in_the_numbers_are_irregular_and_do_no_harm() -> None:
    wire = started()
    wire.number = 7
    wire.message(0, "a", "b").completed()
    assert parts_in(wire) == (Text(text="ab", item_id="msg_0"),)
    assert "sequence" in irregular_in("responses", wire.wire)


def test_no_numbers_and_no_names_of_events() -> None:
    wire = b""
    for frame in started().call(0, "first", ONE).completed().wire.split(b"\n\n")[:-1]:
        value = json.loads(frame.partition(b"data: ")[2])
        value.pop("sequence_number")
        wire += sse(value)
    assert answer_in("responses", wire).parts_of(0) == (CALL,)


def test_H001_every_item_at_output_index_zero() -> None:
    wire = started()
    for name in ("first", "second"):
        item = {**call_item(0, name, ONE), "call_id": name}
        wire.add("output_item.added", output_index=0, item={**item, "arguments": ""})
        wire.add("function_call_arguments.delta", **ARGUMENTS, delta=ONE)
        wire.add("output_item.done", output_index=0, item=item)
    assert [(call.id, call.raw) for call in parts_in(wire.completed())] == [("first", ONE), ("second", ONE)]


def test_two_calls_that_grow_at_once() -> None:
    wire = started()
    for index in (0, 1):
        wire.add("output_item.added", output_index=index, item=call_item(index, f"tool_{index}", ""))
    for text in ('{"a"', ":1}"):
        for index in (0, 1):
            wire.add("function_call_arguments.delta", item_id=f"fc_{index}", output_index=index, delta=text)
    for index in (0, 1):
        wire.add("output_item.done", output_index=index, item=call_item(index, f"tool_{index}", ONE))
    assert [(call.name, call.raw) for call in parts_in(wire.completed())] == [("tool_0", ONE), ("tool_1", ONE)]


def test_deltas_after_the_end_of_their_part_are_dropped_and_reported() -> None:
    wire = started().message(0, "a")
    wire.add("output_text.delta", **PLACE, delta="late", logprobs=[])
    assert parts_in(wire.completed()) == (Text(text="a", item_id="msg_0"),)
    assert irregular_in("responses", wire.wire)
    early = started().add("output_item.added", output_index=0, item=MESSAGE)
    early.add("content_part.added", **PLACE, part={"type": "output_text", "text": ""})
    early.add("output_text.delta", **PLACE, delta="a").add("content_part.done", **PLACE, part={})
    early.add("output_text.delta", **PLACE, delta="late", logprobs=[])
    assert parts_in(early.completed()) == (Text(text="a", item_id="msg_0"),)


def test_an_item_that_ends_as_another_kind_ends_as_it_began() -> None:
    wire = started().add("output_item.added", output_index=0, item=MESSAGE)
    wire.add("content_part.added", **PLACE, part={"type": "output_text", "text": ""})
    wire.add("output_text.delta", **PLACE, delta="a")
    for item in (
        call_item(0, "first", ONE),
        {"type": "web_search_call", "id": "ws"},
        {"type": "reasoning", "id": "rs"},
    ):
        again = Numbered()
        again.wire, again.number = wire.wire, wire.number
        again.add("output_item.done", output_index=0, item=item)
        assert parts_in(again.completed()) == (Text(text="a", item_id="msg_0"),)


def test_reasoning_of_both_kinds_and_what_is_encrypted() -> None:
    wire = started().thought(0, "one", "two", encrypted="ZW5j").thought(1, encrypted="bW9yZQ==")
    one, two, three = parts_in(wire.ended())
    assert (one.text, one.encrypted, one.is_summary) == ("one", None, True)
    assert (two.text, two.encrypted) == ("two", "ZW5j")
    assert (three.text, three.encrypted, three.item_id) == ("", "bW9yZQ==", "rs_1")
    assert irregular_in("responses", wire.wire) == ""


def test_encrypted_reasoning_is_kept_when_the_end_shows_fewer_parts() -> None:
    item = {"type": "reasoning", "id": "rs_0", "summary": []}
    where = {"item_id": "rs_0", "output_index": 0, "content_index": 0}
    wire = started().add("output_item.added", output_index=0, item=item)
    wire.add("reasoning_text.delta", **where, delta="raw")
    wire.add("output_item.done", output_index=0, item={**item, "encrypted_content": "ZW5j"})
    (part,) = parts_in(wire.completed())
    assert part == Reasoning(text="raw", item_id="rs_0", encrypted="ZW5j", extra={"responses": {}})


def test_a_refusal() -> None:
    wire = started().add("output_item.added", output_index=0, item=MESSAGE)
    wire.add("content_part.added", **PLACE, part={"type": "refusal", "refusal": ""})
    wire.add("refusal.delta", **PLACE, delta="I won't").add("refusal.done", **PLACE, refusal="I won't")
    wire.add("content_part.done", **PLACE, part={"type": "refusal", "refusal": "I won't"})
    assert parts_in(wire.completed()) == (Refusal(text="I won't", item_id="msg_0"),)
    bare = started().add("output_item.added", output_index=0, item=MESSAGE)
    bare.add("refusal.delta", **PLACE, delta="I won't").add("content_part.done", **PLACE, part={})
    assert parts_in(bare.completed()) == (Refusal(text="I won't", item_id="msg_0"),)


def test_hosted_tools_are_carried_with_their_events() -> None:
    item = {"type": "web_search_call", "id": "ws_1", "status": "in_progress"}
    wire = started().add("output_item.added", output_index=0, item=item)
    wire.add("web_search_call.searching", item_id="ws_1", output_index=0)
    wire.add("output_item.done", output_index=0, item={**item, "status": "completed"})
    events = events_in("responses", wire.ended().wire)
    assert fold(events).parts_of(0) == (Opaque(dialect="responses", value={**item, "status": "completed"}),)
    (noted,) = [event for event in events if isinstance(event, Noted)]
    assert noted.index == 0
    assert irregular_in("responses", wire.wire) == ""


@pytest.mark.parametrize(
    ("end", "status", "code"),
    [
        ({"error": {"code": "rate_limit_exceeded", "message": "slow"}}, 429, "rate_limited"),
        ({"error": {"code": "context_length_exceeded", "message": "too long"}}, 400, "context_length_exceeded"),
        ({"error": {"code": "server_error", "message": "down"}}, 500, "upstream_error"),
        ({"error": None}, 502, "upstream_error"),
        ({"error": "words"}, 502, "upstream_error"),
    ],
)
def test_H146_H155_a_failed_response(end: dict[str, Any], status: int, code: str) -> None:
    error = failure(events_in("responses", started().completed(status="failed", **end).wire)).error
    assert (error.status, error.code) == (status, code)
    body = json.dumps(response("failed", [], **end)).encode()
    assert failure(body_in("responses", body)).error.status == status


@pytest.mark.parametrize(
    "frame",
    [
        sse({"type": "error", "code": "x", "message": "down", "sequence_number": 1}, "error"),
        sse({"error": {"message": "down"}}),
        sse({"error": "down"}),
    ],
)
def test_an_error_event(frame: bytes) -> None:
    assert "down" in failure(events_in("responses", started().wire, frame)).error.message


def test_a_null_error_in_an_unknown_event_is_no_error() -> None:
    wire = started().add("vendor.note", error=None).message(0, "a").completed()
    assert parts_in(wire) == (Text(text="a", item_id="msg_0"),)


@pytest.mark.parametrize("end", [b"", DONE], ids=["cut", "mark"])
def test_H155_an_end_without_a_final_event_is_an_error(end: bytes) -> None:
    wire = started().message(0, "a").wire
    assert failure(events_in("responses", wire, end)).error.code == "upstream_cut"


@pytest.mark.parametrize(
    ("details", "reason"),
    [({"reason": "max_output_tokens"}, "length"), ({"reason": "content_filter"}, "refused"), (None, "length")],
)
def test_incomplete(details: Any, reason: str) -> None:
    wire = started().message(0, "a").completed(status="incomplete", incomplete_details=details)
    assert answer_in("responses", wire.wire).finished.choices[0].reason == reason


@pytest.mark.parametrize("created", [[], {}, "x", True, -1, 1e300, 1700000000.5, None, 10**20])
def test_any_time_of_creation(created: Any) -> None:
    wire = started().wire.replace(b"1700000000", json.dumps(created).encode(), 1)
    events = events_in("responses", wire, Numbered().completed().wire)
    assert isinstance(terminal(events), Finished)


def test_a_time_beyond_all_numbers_costs_nothing() -> None:
    wire = started().wire.replace(b"1700000000", b"1e999999999", 1)
    assert isinstance(terminal(events_in("responses", wire, Numbered().completed().wire)), Finished)


@pytest.mark.parametrize("depth", [500, 5000])
def test_deep_logprobs_in_a_hot_event(depth: int) -> None:
    wire = started().add("output_item.added", output_index=0, item=MESSAGE)
    deep = "[" * depth + "]" * depth
    delta = f'{{"type":"response.output_text.delta","sequence_number":2,"item_id":"msg_0","output_index":0,"content_index":0,"delta":"a","logprobs":{deep}}}'
    frame = f"event: response.output_text.delta\ndata: {delta}\n\n".encode()
    events = run(DIALECTS["responses"].stream_decoder(make_request("responses")), [wire.wire, frame])
    assert failure(events).error.status == 502


@pytest.mark.parametrize(
    "member", ["content", "summary", "annotations", "encrypted_content", "arguments", "id", "call_id"]
)
@pytest.mark.parametrize("odd", [5, None, "x", [5], {"a": 1}])
def test_wrong_types_inside_items_do_no_harm(member: str, odd: Any) -> None:
    items: list[dict[str, Any]] = [
        {
            "type": "message",
            "id": "a",
            "content": [{"type": "output_text", "text": "hi", "annotations": [], member: odd}],
        },
        {**MESSAGE, member: odd},
        {"type": "reasoning", "id": "r", "summary": [], member: odd},
        {**call_item(0, "first", ONE), member: odd},
    ]
    for item in items:
        body_in("responses", json.dumps(response("completed", [item])).encode())
        for added in ({}, item):
            wire = started().add("output_item.added", output_index=0, item=added)
            events_in("responses", wire.add("output_item.done", output_index=0, item=item).completed().wire)


@pytest.mark.parametrize(
    ("body", "words"), [(b"<html>", "not JSON"), (b"{}", "no output"), (b'{"error":{"message":"no"}}', "no")]
)
def test_a_body_that_is_no_answer(body: bytes, words: str) -> None:
    assert words in failure(body_in("responses", body)).error.message


PAIR = (("call_x", "first", ONE), ("call_y", "second", '{"b":2}'))


def nameless_calls(*, has_call_id: bool, ends: tuple[int, ...], has_arguments: bool, is_interleaved: bool) -> Numbered:
    """Two calls whose starts have neither id nor name, and whose ends have no index."""
    wire = started()

    def add(index: int) -> None:
        item = {"type": "function_call", "arguments": "", "status": "in_progress"}
        named = {"call_id": PAIR[index][0]} if has_call_id else {}
        wire.add("output_item.added", output_index=index, item={**item, **named})

    def grow(index: int, text: str) -> None:
        wire.add("function_call_arguments.delta", output_index=index, delta=text)

    if is_interleaved:
        add(0)
        add(1)
    for index, (_, _, raw) in enumerate(PAIR):
        if not is_interleaved:
            add(index)
            grow(index, raw[:3])
            grow(index, raw[3:])
    for cut in (slice(0, 3), slice(3, None)) if is_interleaved else ():
        for index, (_, _, raw) in enumerate(PAIR):
            grow(index, raw[cut])
    for index in ends:
        call_id, name, raw = PAIR[index]
        item = {"type": "function_call", "call_id": call_id, "name": name, "arguments": raw if has_arguments else ""}
        wire.add("output_item.done", item={**item, "status": "completed"})
    return wire


@pytest.mark.parametrize(
    ("has_call_id", "ends", "has_arguments"),
    [
        (True, (0, 1), True),
        (True, (0, 1), False),
        (True, (1, 0), True),
        (True, (1, 0), False),
        (False, (0, 1), True),
        (False, (0, 1), False),
        (False, (1, 0), True),  # without arguments nothing would tell which end is whose
    ],
)
@pytest.mark.parametrize("is_interleaved", [True, False])
@pytest.mark.parametrize("has_output", [True, False])
def test_ends_without_an_index_are_paired_by_call_id_or_by_their_arguments(
    has_call_id: bool, ends: tuple[int, ...], has_arguments: bool, is_interleaved: bool, has_output: bool
) -> None:
    wire = nameless_calls(
        has_call_id=has_call_id, ends=ends, has_arguments=has_arguments, is_interleaved=is_interleaved
    )
    wire = wire.ended() if has_output else wire.completed()
    assert sorted((one.id, one.name, one.raw) for one in parts_in(wire)) == sorted(PAIR)


def test_an_end_for_a_call_of_another_id_than_all_that_are_done_is_another_call() -> None:
    wire = started().call(0, "first", ONE)
    wire.add("output_item.done", item={**call_item(1, "second", "{}"), "id": ""})
    assert [(one.id, one.name) for one in parts_in(wire.ended())] == [("call_0", "first"), ("call_1", "second")]


def test_a_text_that_another_item_interrupts_continues_in_its_own_part() -> None:
    wire = started().add("output_item.added", output_index=0, item=MESSAGE)
    wire.add("content_part.added", **PLACE, part={"type": "output_text", "text": "", "annotations": []})
    wire.add("output_text.delta", **PLACE, delta="a")
    wire.call(1, "first", ONE)
    wire.add("output_text.delta", **PLACE, delta="b")
    wire.add("output_text.done", **PLACE, text="ab")
    wire.add("output_item.done", output_index=0, item={**MESSAGE, "content": [{"type": "output_text", "text": "ab"}]})
    call = ToolCall(id="call_1", name="first", raw=ONE, args={"a": 1}, item_id="fc_1")
    assert parts_in(wire.ended()) == (Text(text="a", item_id="msg_0"), call, Text(text="b"))
