"""Sealed flows: redacted, split into frames with their times, and bodies that both wires share are stored once."""

from __future__ import annotations

from tests.flows.drafts import STREAM, begin, end, recorder
from toolwire.flows.redact import FlowRedaction, WireRedaction
from toolwire.flows.sealed import seal_wires, texts_of
from toolwire.telemetry.flow_draft import FlowDraft


def redaction(draft: FlowDraft, *known: str) -> FlowRedaction:
    return FlowRedaction(WireRedaction(known), "", texts_of(draft))


def test_a_stream_is_split_into_its_frames() -> None:
    flows = recorder()
    draft = begin(flows)
    draft.client.answer(200, STREAM)
    draft.client.times = [101.0, 102.0, 103.0]
    draft.client.pieces = [b"data: 1\n\ndata: 2\n", b"\ndata: 3\r\n\r\n", b"data: cut"]
    client, _ = seal_wires(draft, redaction(draft))
    assert [(frame.t, frame.data) for frame in client.frames()] == [
        (1.0, "data: 1\n\n"),
        (2.0, "data: 2\n\n"),
        (2.0, "data: 3\r\n\r\n"),
        (3.0, "data: cut"),
    ]
    response = client.record().response
    assert response is not None
    assert response.body is None


def test_the_frames_are_the_body() -> None:
    flows = recorder("known-secret")
    draft = begin(flows)
    draft.client.answer(200, STREAM)
    for piece in (b"data: known-", b"secret\n\ndata", b": 2\n\n"):
        draft.client.receive(piece)
    client, _ = seal_wires(draft, redaction(draft, "known-secret"))
    assert "".join(frame.data for frame in client.frames()) == "data: [hidden]\n\ndata: 2\n\n"


def test_texts_are_searched_once_and_hidden_headers_never() -> None:
    draft = begin(recorder(), b"the body")
    draft.exchange("chat", "POST", "http://host/v1", {"x-api-key": "the key", "a": "the header"}, b"the body")
    texts = list(texts_of(draft))
    assert texts.count(b"the body") == 1
    assert b"the header" in texts
    assert b"the key" not in texts


def test_the_query_of_a_url_is_redacted() -> None:
    flows = recorder()
    draft = begin(flows)
    draft.exchange("gemini", "POST", "http://host/v1beta/models/m:generateContent?key=abc&alt=sse", {}, b"")
    wire = end(flows, draft).upstream[0]
    assert wire.url == "http://host/v1beta/models/m:generateContent?key=[hidden]&alt=sse"
    assert wire.path == "/v1beta/models/m:generateContent?key=[hidden]&alt=sse"


def test_messages_of_other_back_ends_are_a_wire_of_their_own() -> None:
    flows = recorder()
    draft = begin(flows)
    draft.note("sent", "codex", "turn/start", {"input": "hello", "api_key": "hunter2"}, 40)
    draft.note("received", "codex", "item", b'{"text":"hi"}', 13)
    (wire,) = end(flows, draft).upstream
    assert wire.url == "codex"
    assert [(message.direction, message.kind, message.data) for message in wire.messages] == [
        ("sent", "turn/start", '{"input":"hello","api_key":"[hidden]"}'),
        ("received", "item", '{"text":"hi"}'),
    ]
