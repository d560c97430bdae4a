"""Replies are decoded again, with the times of their pieces, whatever they contain."""

from __future__ import annotations

import json

from toolwire.errors import UpstreamError
from toolwire.events import Failed
from toolwire.flows.events import decode_reply, event_json, first_content
from toolwire.telemetry import Record
from toolwire.types import Request

REQUEST = Request(model="m", messages=(), stream=True, origin="chat")


def frame(delta: dict[str, str]) -> bytes:
    value = {"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}]}
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def test_the_first_token_is_the_first_content() -> None:
    chunks = [
        (1.0, frame({"role": "assistant", "content": ""})),
        (2.0, frame({"content": "a"})),
        (3.0, frame({"content": "b"})),
    ]
    assert first_content("chat", Record(dialect="chat"), chunks) == 2.0
    assert first_content("chat", Record(dialect="chat"), chunks[:1]) is None
    assert first_content("", Record(dialect="chat"), chunks) is None


def test_every_event_has_its_time() -> None:
    events = list(decode_reply("chat", REQUEST, [(1.0, frame({"content": "a"})), (2.0, frame({"content": "b"}))]))
    values = [event_json(t, event) for t, event in events]
    assert [(value["t"], value["text"]) for value in values if value["type"] == "part_delta"] == [
        (1.0, "a"),
        (2.0, "b"),
    ]


def test_errors_are_described() -> None:
    error = UpstreamError("broken off.", status=502, code="upstream_cut")
    assert event_json(1.0, Failed(error=error)) == {
        "t": 1.0,
        "type": "failed",
        "error": "upstream_cut",
        "text": "broken off.",
    }
    assert event_json(1.0, "KeyError") == {"t": 1.0, "type": "undecodable", "text": "KeyError"}
