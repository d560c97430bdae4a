"""Answers of Ollama's API, as `connect --check` reads them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolwire.cli.clients.ollama_answer import OllamaAnswerReader, body_with_results
from toolwire.errors import GatewayError
from toolwire.events import FoldedAnswer, fold
from toolwire.types import Text, ToolCall


def line(content: str = "", *, done: bool = False, **message: Any) -> bytes:
    return json.dumps({"message": {"role": "assistant", "content": content, **message}, "done": done}).encode() + b"\n"


def read(*pieces: bytes) -> FoldedAnswer:
    reader = OllamaAnswerReader()
    return fold([event for piece in pieces for event in reader.feed(piece)] + reader.close())


CALL = {"id": "call_1", "function": {"index": 0, "name": "f", "arguments": {"a": 1}}}


def test_lines_are_one_answer() -> None:
    wire = b" " + line("one ") + line("two") + line(tool_calls=[CALL]) + line(done=True)
    text, call = read(wire[:20], wire[20:]).parts_of(0)
    assert text == Text(text="one two")
    assert isinstance(call, ToolCall)
    assert (call.id, call.name, call.raw) == ("call_1", "f", '{"a":1}')
    assert read(line("x", done=True)).parts_of(0) == (Text(text="x"),)


@pytest.mark.parametrize(
    ("wire", "reason"),
    [
        (line("one") + b'{"error":"it broke"}\n', "it broke"),
        (line("one"), "no end"),
        (b"", "no end"),
        (b"<html>", "expected lines of JSON"),
        (b'{"done":true}\n', "expected lines of JSON"),
        (b"[1]\n", "expected lines of JSON"),
    ],
)
def test_other_answers_are_wrong(wire: bytes, reason: str) -> None:
    with pytest.raises(GatewayError, match=reason):
        read(wire)


def test_results_have_no_ids() -> None:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
    parts = (Text(text="look"), ToolCall(id="call_1", name="f", raw='{"a":1}'))
    messages = json.loads(body_with_results(body, parts, "18 C"))["messages"]
    assert messages[1:] == [
        {"role": "assistant", "content": "look", "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]},
        {"role": "tool", "tool_name": "f", "content": "18 C"},
    ]
