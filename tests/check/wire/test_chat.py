from __future__ import annotations

import json
from typing import Any

import pytest

from toolwire.check.deviations import DeviationLog
from toolwire.check.wire.chat import is_error, read_body, read_stream


def stream(*chunks: Any) -> bytes:
    lines = [chunk if isinstance(chunk, str) else json.dumps(chunk) for chunk in chunks]
    return "".join(f"data: {line}\n\n" for line in lines).encode()


def chunk(delta: Any, finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def call(index: int, arguments: str, **more: Any) -> dict[str, Any]:
    name = {"name": more.pop("name")} if "name" in more else {}
    return {"tool_calls": [{"index": index, "function": {"arguments": arguments, **name}, **more}]}


def codes(raw: bytes) -> set[str]:
    log = DeviationLog()
    read_stream(raw, log)
    return set(log.found)


def test_a_valid_stream_of_two_calls_is_read_without_deviation() -> None:
    log = DeviationLog()
    answer = read_stream(
        stream(
            chunk({"role": "assistant", "content": None}),
            chunk(call(0, '{"a"', id="x", type="function", name="f")),
            chunk(call(0, ": 1}")),
            chunk(call(1, "{}", id="y", type="function", name="g")),
            chunk({}, "tool_calls"),
            {**chunk({}), "choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}},
            "[DONE]",
        ),
        log,
    )
    assert not log.found
    assert [(one.id, one.name, one.arguments) for one in answer.calls] == [("x", "f", '{"a": 1}'), ("y", "g", "{}")]
    assert (answer.finish, answer.usage, answer.pieces) == ("calls", (1, 2), 3)


@pytest.mark.parametrize(
    ("chunks", "code"),
    [
        ([chunk(call(0, "{}", id="x", name="f")), chunk(call(0, "{}", id="y", name="g"))], "call.index_shared"),
        ([chunk(call(0, "{}", id="x", name="f")), chunk(call(0, "", id="y"))], "call.id_changes"),
        ([chunk(call(0, "{}", id="x", name="f")), chunk(call(0, "", id="x"))], "call.id_resent"),
        ([chunk(call(1, "{}", id="x", name="f"))], "call.index_gap"),
        ([chunk(call(0, "{}", id="x", name="f"))], "call.type_missing"),
        ([{**chunk({}), "choices": None, "usage": {"prompt_tokens": 1, "completion_tokens": 2}}], "usage.alone"),
        ([chunk({"content": "a"}, "stop"), chunk({"content": "b"})], "stream.order"),
        ([chunk({"content": "a"}, "stop"), chunk({}, "length")], "finish.changes"),
        ([chunk({"content": "a"}, "tool_calls")], "finish.calls_absent"),
        ([chunk({"function_call": {"name": "f"}})], "call.legacy"),
        ([chunk({"content": ["a"]})], "body.member_type"),
        ([{"error": {"message": "overloaded"}}], "stream.error"),
        (["{broken"], "stream.bad_json"),
    ],
)
def test_an_irregular_stream_has_its_code(chunks: list[Any], code: str) -> None:
    assert code in codes(stream(*chunks, "[DONE]"))


def test_events_after_done_are_reported() -> None:
    assert "stream.after_end" in codes(stream(chunk({"content": "a"}, "stop"), "[DONE]", chunk({"content": "b"})))


@pytest.mark.parametrize("body", [{}, {"choices": []}, {"choices": [{"finish_reason": "stop"}]}, {"choices": 7}])
def test_a_body_without_a_message_has_no_structure(body: Any) -> None:
    log = DeviationLog()
    read_body(json.dumps(body).encode(), log)
    assert "body.structure" in log.found


def test_the_form_of_an_error() -> None:
    assert is_error({"error": {"message": "no"}})
    assert not is_error({"error": "no"})
    assert not is_error([])


def test_a_stream_without_finish_reason_and_done_has_no_end() -> None:
    assert codes(stream(chunk({"content": "a"}))) == {"stream.end_missing"}
    assert codes(stream(chunk({"content": "a"}), "[DONE]")) == {"finish.missing"}
    assert codes(stream(chunk({"content": "a"}, "stop"))) == {"stream.done_missing"}


def test_a_byte_order_mark_is_unusual_and_skipped() -> None:
    log = DeviationLog()
    answer = read_stream("\ufeff".encode() + stream(chunk({"content": "a"}, "stop"), "[DONE]"), log)
    assert set(log.found) == {"stream.byte_order_mark"}
    assert answer.text == "a"
