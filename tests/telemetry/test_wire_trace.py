"""The trace: one line a message, content only in the file, each with the request it belongs to; off, nothing happens."""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from pathlib import Path

import pytest

from tests.telemetry.tracing import tracing
from toolwire.telemetry import wire_trace


def test_off_it_does_nothing() -> None:
    assert not wire_trace.active
    wire_trace.sent("b", "POST /x", {"a": 1})
    with tracing() as traced:
        assert wire_trace.active
    assert not wire_trace.active
    assert traced.lines == []


def test_a_line_says_what_kind_of_message_went_where(tmp_path: Path) -> None:
    def noted() -> None:
        wire_trace.enter("req_1")
        wire_trace.sent(
            "b", "turn/start", {"threadId": "t-1", "input": [{"type": "text", "text": "the-key-of-the-owner!"}]}
        )
        wire_trace.received("b", "data", b'{"id": "x", "authorization": "me"}', request="req_2")
        wire_trace.received("b", "data", b"no JSON")

    with tracing(tmp_path / "trace", "the-key-of-the-owner") as traced:
        copy_context().run(noted)
    assert wire_trace.request_id() == ""
    assert traced.lines == [
        ("req_1", "wire b -> turn/start 75 bytes {threadId: t-1, input: [1: {type: text, text: text 21}]}"),
        ("req_2", "wire b <- data 34 bytes {id: x, authorization: text 2}"),
        ("req_1", "wire b <- data 7 bytes text 7"),
    ]
    first, second, third = traced.entries
    assert (first["request"], first["backend"], first["direction"], first["kind"]) == (
        "req_1",
        "b",
        "sent",
        "turn/start",
    )
    assert first["message"]["input"][0]["text"] == "[hidden]!"
    assert second["message"] == {"id": "x", "authorization": "[hidden]"}
    assert third["message"] == "no JSON"


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_an_answer_is_noted_event_by_event_however_it_was_cut(size: int) -> None:
    stream = b'event: a\ndata: {"type":"a"}\n\ndata: {"id":"1"}\r\n\r\ndata: [DONE]\n\n'

    async def read() -> bytes:
        nonlocal stream
        piece, stream = stream[:size], stream[size:]
        return piece

    async def main() -> bytes:
        reading = wire_trace.read_through("b", read)
        pieces = []
        while piece := await reading():
            pieces.append(piece)
        return b"".join(pieces)

    whole = stream
    with tracing() as traced:
        assert asyncio.run(main()) == whole
    assert traced.words == [
        "wire b <- a 12 bytes {type: a}",
        "wire b <- data 10 bytes {id: 1}",
        "wire b <- data 6 bytes text 6",
        "wire b <- end 0 bytes",
    ]


def test_a_document_is_one_message() -> None:
    pieces = [b'{"id":', b' "1"}', b""]

    async def read() -> bytes:
        return pieces.pop(0)

    async def main() -> None:
        reading = wire_trace.read_through("b", read)
        while await reading():
            pass

    with tracing() as traced:
        asyncio.run(main())
    assert traced.words == ["wire b <- data 11 bytes {id: 1}", "wire b <- end 0 bytes"]


def test_what_nests_too_deep_is_noted_without_its_content(tmp_path: Path) -> None:
    value: object = "x"
    for _ in range(5000):
        value = [value]
    with tracing(tmp_path / "trace") as traced:
        wire_trace.sent("b", "data", value, size=10)  # type: ignore[arg-type] # any JSON
    assert traced.words[-1] == "wire b -> data, which nests too deep to be noted, 10 bytes"
    assert traced.entries[-1]["message"] is None


def test_another_trace_that_was_installed_meanwhile_stays() -> None:
    with tracing() as first:
        with tracing() as second:
            wire_trace.sent("b", "x", {})
        assert not wire_trace.active
    assert (len(first.lines), len(second.lines)) == (0, 1)
