"""The shape of a chunk: what the quick way reads, the slow one reads alike."""

from __future__ import annotations

import json

import pytest

from tests.dialects.upstream_events import REGULAR, TOP
from toolwire.dialects.chat.shapes import read_by_hand, read_fast, read_message
from toolwire.wire.exact_json import BadJson


def test_both_ways_read_a_documented_chunk_alike() -> None:
    for block in REGULAR["chat"].split(b"\n\n"):
        data = block.removeprefix(b"data: ")
        if data in (b"", b"[DONE]"):
            continue
        fast, slow = read_fast(data), read_by_hand(data)
        assert fast is not None
        assert slow.faults == ""
        assert slow.unknown == {}
        assert (slow.chunk.id, slow.chunk.usage, slow.chunk.created) == (fast.id, fast.usage, fast.created)
        assert slow.chunk.choices == fast.choices


@pytest.mark.parametrize(
    "data", [b"{}", b"[]", b'{"id":1}', b'{"choices":{}}', b'{"id":"a","choices":[],"model":"m","x":1}']
)
def test_anything_else_is_read_by_hand(data: bytes) -> None:
    assert read_fast(data) is None
    assert read_by_hand(data).chunk.choices == []


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[" * 5000])
def test_what_is_no_json_is_refused(data: bytes) -> None:
    assert read_fast(data) is None
    with pytest.raises(BadJson):
        read_by_hand(data)


def test_faults_are_named() -> None:
    def faults(choice: object) -> str:
        return read_by_hand(json.dumps({**TOP, "choices": [choice]}).encode()).faults

    assert faults({"index": 0, "delta": {}}) == ""
    assert faults({"delta": {}}) == "a choice without an index"
    assert faults({"index": 0}) == "a choice without a delta"
    assert faults({"index": 0, "delta": {"content": []}}) == "content in a list"
    arguments = {"tool_calls": [{"index": 0, "function": {"name": "a", "arguments": {}}}]}
    assert faults({"index": 0, "delta": arguments}) == "arguments that are no text"


def test_a_message_is_read_as_the_delta_it_is() -> None:
    reading = read_message({"content": "a", "annotations": [{"x": 1}], "audio": None})
    assert reading.chunk.choices[0].delta.content == "a"
    assert reading.annotations == [(0, {"x": 1})]
    assert reading.unknown == {"choices": [{"index": 0, "delta": {"audio": None}}]}
