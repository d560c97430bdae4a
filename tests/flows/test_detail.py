"""One flow for a reader: canonical events are decoded from the wire that has a dialect."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.flows.drafts import STREAM, begin, end, recorder
from toolwire.dialects.chat.request_in import decode_request
from toolwire.flows.detail import answer_of, detail, request_of
from toolwire.flows.recorder import FlowRecorder
from toolwire.telemetry.flow_draft import FlowDraft
from toolwire.types import JsonObject, Text

CHUNK = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}


def frame(delta: JsonObject, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps(CHUNK | {"choices": [choice]}).encode() + b"\n\n"


def shown(fill: Callable[[FlowRecorder], FlowDraft]) -> JsonObject:
    flows = recorder()
    return detail(end(flows, fill(flows)))


def test_events_are_decoded_from_the_reply_of_the_back_end() -> None:
    def fill(flows: FlowRecorder) -> FlowDraft:
        draft = begin(flows, is_stream=True)
        wire = draft.exchange("chat", "POST", "http://host/v1/chat/completions", {}, b"{}")
        wire.answer(200, STREAM)
        pieces = [frame({"role": "assistant", "content": "Hel"}), frame({"content": "lo"}), frame({}, "stop")]
        wire.pieces = [*pieces, b"data: [DONE]\n\n"]
        wire.times = [100.5 + place for place in range(4)]
        return draft

    value = shown(fill)
    events = value["events"]
    texts = [(event["t"], event["text"]) for event in events if event["type"] == "part_delta"]
    assert texts == [(0.5, "Hel"), (1.5, "lo")]
    assert {event["upstream"] for event in events} == {0}
    assert events[-1]["type"] == "finished"


def test_events_of_a_back_end_without_a_dialect_are_those_of_the_client() -> None:
    flows = recorder()
    choice = {"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}
    answer = CHUNK | {"object": "chat.completion", "choices": [choice]}
    value = detail(end(flows, begin(flows), json.dumps(answer).encode()))
    ended = [event for event in value["events"] if event["type"] == "part_ended"]
    assert [event["part"]["text"] for event in ended] == ["Hello"]
    assert ended[0]["upstream"] is None


def test_a_reply_that_is_no_answer_has_no_events_and_does_no_harm() -> None:
    def fill(flows: FlowRecorder) -> FlowDraft:
        draft = begin(flows)
        wire = draft.exchange("chat", "POST", "http://host", {}, b"{}")
        wire.answer(200, STREAM)
        wire.receive(b"\xff\xfe garbage\n\n" * 3)
        refused = draft.exchange("chat", "POST", "http://host", {}, b"{}")
        refused.answer(429, [])
        refused.receive(b"slow down")
        return draft

    value = shown(fill)
    assert [event["type"] for event in value["events"] if event["type"] == "part_delta"] == []
    assert value["upstream"][1]["response"]["body"] == "slow down"


def test_the_detail_has_the_summary_and_both_wires() -> None:
    value = shown(lambda flows: begin(flows, b'{"model": "m"}'))
    assert value["client"]["request"]["body"] == '{"model": "m"}'
    assert (value["outcome"], value["upstream"], value["reports"], value["version"]) == ("ok", [], [], 1)


BODY = b'{"model":"m","messages":[{"role":"user","content":"the known-secret"}]}'


def reply(**message: Any) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    return json.dumps(
        {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    ).encode()


def test_the_request_and_its_answer_without_secrets() -> None:
    flows = recorder("known-secret")
    flow = end(flows, begin(flows, BODY, model="m"), reply(content="hello known-secret"))
    request, answer = request_of(flow, decode_request), answer_of(flow)
    assert request is not None
    assert answer is not None
    (question,), (text,) = request.messages[0].parts, answer.parts_of(0)
    assert isinstance(question, Text)
    assert isinstance(text, Text)
    assert text.text.startswith("hello ")
    assert "known-secret" not in question.text + text.text


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"messages": 1}'])
def test_a_body_that_is_no_request_has_no_messages(body: bytes) -> None:
    flows = recorder()
    flow = end(flows, begin(flows, body, model="m"), b"{}")
    assert request_of(flow, decode_request) is None
    assert request_of(flow, None) is None


def test_a_body_that_is_cut_has_no_messages() -> None:
    flows = recorder(max_body_kb=1)
    long = BODY.replace(b"the", b"the " * 1000)
    assert request_of(end(flows, begin(flows, long, model="m")), decode_request) is None


def test_an_answer_that_is_not_complete_is_none() -> None:
    flows = recorder()
    assert answer_of(end(flows, begin(flows, BODY, model="m"), reply(content="a")[:-10])) is None
