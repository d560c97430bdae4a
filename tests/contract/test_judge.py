"""Tests of the judge: a correct answer passes, and each of these faults is found."""

from __future__ import annotations

from collections.abc import Iterator
from http.client import HTTPConnection

import pytest

from tests.clients.gateway import Gateway, scripted

from .client_requests import DIALECTS, ask, request_for
from .judge.validate import check

TURN = {"text": "Let me look.", "calls": [{"name": "get_weather", "arguments": '{"location": "Paris"}'}]}
FAULTS = {
    ("chat", "no end mark"): (b"data: [DONE]\n\n", b""),
    ("chat", "no role"): (b'"role":"assistant"', b'"roll":"assistant"'),
    ("chat", "unknown tool"): (b'"get_weather"', b'"get_wether"'),
    ("chat", "wrong finish reason"): (b'"finish_reason":"tool_calls"', b'"finish_reason":"stop"'),
    ("chat", "broken arguments"): (b'"arguments":"\\"}"', b'"arguments":"\\""'),
    ("chat", "unfinished frame"): (b"[DONE]\n\n", b"[DONE]\n"),
    ("responses", "number out of order"): (b'"sequence_number":3,', b'"sequence_number":9,'),
    ("responses", "unknown tool"): (b'"get_weather"', b'"get_wether"'),
    ("responses", "event with another name"): (b"event: response.completed", b"event: response.done"),
    ("responses", "text that differs"): (b'"delta":"Let', b'"delta":"Get'),
    ("responses", "no status"): (b'"status":"completed"', b'"state":"completed"'),
    ("messages", "event with another name"): (b"event: message_stop", b"event: message_end"),
    ("messages", "wrong stop reason"): (b'"stop_reason":"tool_use"', b'"stop_reason":"end_turn"'),
    ("messages", "unknown tool"): (b'"get_weather"', b'"get_wether"'),
    ("messages", "block out of order"): (b'"index":1,', b'"index":2,'),
    ("messages", "delta of another kind"): (b"input_json_delta", b"thinking_delta"),
    ("gemini", "no finish reason"): (b'"finishReason":"STOP"', b'"finish":"STOP"'),
    ("gemini", "unknown tool"): (b'"get_weather"', b'"get_wether"'),
    ("gemini", "arguments as text"): (b'"args":{"location":"Paris"}', b'"args":"Paris"'),
    ("gemini", "no role"): (b'"role":"model"', b'"role":"user"'),
    ("gemini", "an event with a name"): (b"data: ", b"event: chunk\ndata: "),
    ("gemini", "usage that is no sum"): (b'"totalTokenCount":', b'"totalTokenCount":1'),
    ("gemini", "a part that is text"): (b'{"text":"Let me look."}', b'"Let me look."'),
}


@pytest.fixture(scope="module")
def connection(gateway: Gateway) -> Iterator[HTTPConnection]:
    opened = HTTPConnection(gateway.address.removeprefix("http://"), timeout=30)
    yield opened
    opened.close()


@pytest.mark.slow
@pytest.mark.parametrize(("dialect", "name"), FAULTS, ids=[" ".join(fault) for fault in FAULTS])
def test_fault_is_found(gateway: Gateway, connection: HTTPConnection, dialect: str, name: str) -> None:
    request = request_for(dialect, gateway.model(dialect), scripted(TURN), stream=True)
    reply = ask(connection, dialect, gateway.key, request)
    assert not check(dialect, reply.body, reply.status, reply.content_type, request).errors
    right, wrong = FAULTS[dialect, name]
    assert right in reply.body
    broken = reply.body.replace(right, wrong)
    assert check(dialect, broken, reply.status, reply.content_type, request).errors


@pytest.mark.parametrize("dialect", DIALECTS)
def test_wrong_content_type_is_found(dialect: str) -> None:
    assert check(dialect, b"<html>", 200, "text/html", {"stream": True}).errors
    assert check(dialect, b"<html>", 502, "text/html").errors
    assert check(dialect, b'{"detail": "no"}', 502, "application/json").errors
