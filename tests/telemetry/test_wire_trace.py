"""The trace has one log line per message, with its request; content goes only to the trace file."""

from __future__ import annotations

import asyncio
import stat
from contextvars import copy_context
from pathlib import Path

import pytest

from tests.telemetry.tracing import tracing
from tests.tools.workspace.box import needs_proc, open_below
from toolwire.telemetry import wire_trace
from toolwire.telemetry.wire_trace import TraceFile


def test_an_inactive_trace_writes_nothing() -> None:
    assert not wire_trace.active
    wire_trace.sent("b", "POST /x", {"a": 1})
    with tracing() as traced:
        assert wire_trace.active
    assert not wire_trace.active
    assert traced.lines == []


def test_lines_and_entries_describe_each_message(tmp_path: Path) -> None:
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
def test_a_stream_is_traced_event_by_event(size: int) -> None:
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


def test_deeply_nested_messages_are_traced_without_content(tmp_path: Path) -> None:
    value: object = "x"
    for _ in range(5000):
        value = [value]
    with tracing(tmp_path / "trace") as traced:
        wire_trace.sent("b", "data", value, size=10)  # type: ignore[arg-type] # any JSON
    assert traced.words[-1] == "wire b -> data, nested too deeply to trace, 10 bytes"
    assert traced.entries[-1]["message"] is None


def test_uninstalling_keeps_a_later_trace_active() -> None:
    with tracing() as first:
        with tracing() as second:
            wire_trace.sent("b", "x", {})
        assert not wire_trace.active
    assert (len(first.lines), len(second.lines)) == (0, 1)


def write_file(path: Path, *lines: bytes, most: int = 1 << 20) -> None:
    file = TraceFile(path, most)
    for line in lines:
        file.put(line)
    file.close()


def test_lines_are_appended_to_a_private_file(tmp_path: Path) -> None:
    path = tmp_path / "new" / "trace.jsonl"
    write_file(path, b"one", b"two")
    write_file(path, b"three")
    assert path.read_bytes() == b"one\ntwo\nthree\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_permissions_of_an_existing_file_are_tightened(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.touch(mode=0o644)
    write_file(path, b"one")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "trace.jsonl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match=r"."):
        TraceFile(tmp_path / "trace.jsonl", 1000)
    assert not (tmp_path / "elsewhere").exists()


def test_both_files_together_stay_below_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    write_file(path, *(b"%04d" % number + b"x" * 95 for number in range(500)), most=10_000)
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["trace.jsonl", "trace.jsonl.1"]
    assert all(file.stat().st_size <= 5000 for file in files)
    lines = (files[1].read_bytes() + files[0].read_bytes()).splitlines()
    assert [int(line[:4]) for line in lines] == list(range(500 - len(lines), 500))
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_two_writers_share_a_file_and_its_rotation(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    first, second = TraceFile(path, 2000), TraceFile(path, 2000)
    for number in range(100):
        (first if number % 2 else second).put(b"%03d" % number + b"y" * 47)
    first.close()
    second.close()
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 4000
    assert all(len(line) == 50 for file in tmp_path.iterdir() for line in file.read_bytes().splitlines())


@needs_proc
def test_closing_twice_leaks_no_descriptor(tmp_path: Path) -> None:
    file = TraceFile(tmp_path / "trace.jsonl", 1000)
    assert open_below(tmp_path)
    file.close()
    file.close()
    assert open_below(tmp_path) == []
