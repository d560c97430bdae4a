"""JSON-RPC in lines: any chunking gives the same messages, and a bad line spoils no other."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.thorough import examples
from toolwire.wire.json_rpc import (
    BadLine,
    Incoming,
    LineReader,
    RpcNotification,
    RpcRequest,
    RpcResponse,
    encode,
    message_in,
    notification,
    refusal,
    request,
    result,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.text(max_size=4), JSON, max_size=3)
IDS = st.integers(min_value=0) | st.text(max_size=6)
MESSAGES = st.one_of(
    st.builds(
        lambda id, params: (request(id, "a/b", params), RpcRequest(id=id, method="a/b", params=params)), IDS, OBJECTS
    ),
    st.builds(lambda params: (notification("a/b", params), RpcNotification(method="a/b", params=params)), OBJECTS),
    st.builds(lambda id, value: (result(id, value), RpcResponse(id=id, result=value)), IDS, JSON),
    st.builds(lambda id, error: (refusal(id, error), RpcResponse(id=id, error=error)), IDS, OBJECTS),
)


def read(*chunks: bytes, longest: int = 1000) -> list[Incoming]:
    lines = LineReader(longest)
    return [message for chunk in chunks for message in lines.feed(chunk)] + lines.close()


@examples(60)
@given(st.lists(MESSAGES, max_size=5), st.data())
def test_any_cut_gives_the_same_messages(pairs: list[tuple[Any, Incoming]], data: st.DataObject) -> None:
    wire = b"".join(encode(message) for message, _ in pairs)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(wire)), max_size=6)))
    edges = [0, *cuts, len(wire)]
    chunks = [wire[start:end] for start, end in pairwise(edges)]
    assert read(*chunks, longest=1 << 20) == [incoming for _, incoming in pairs]


@given(
    st.lists(st.sampled_from([b'{"method":"a"}', b"junk", b"", b" ", b"[1]", b"x" * 40, b"\xff", b"\r"]), max_size=8)
)
def test_garbled_lines_are_marked_and_good_ones_come_through_in_order(given_lines: list[bytes]) -> None:
    wire = b"\n".join(given_lines)
    whole = read(wire, longest=30)
    assert whole == read(*(wire[at : at + 1] for at in range(len(wire))), longest=30)
    kinds = [type(message) for message in whole]
    assert kinds == [RpcNotification if line.startswith(b"{") else BadLine for line in given_lines if line.strip()]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"id":0,"method":"m"}', RpcRequest(id=0, method="m")),
        (b'{"id":"s","method":"m","params":{"a":1}}', RpcRequest(id="s", method="m", params={"a": 1})),
        (b'{"method":"m","params":[1],"emittedAtMs":5}', RpcNotification(method="m")),
        (b'{"id":1,"result":null}', RpcResponse(id=1)),
        (
            b'{"error":{"code":-32600,"message":"no"},"id":1}',
            RpcResponse(id=1, error={"code": -32600, "message": "no"}),
        ),
        (b'{"error":"no","id":1}', RpcResponse(id=1, error={"message": "no"})),
        (b'{"error":[[]],"id":1}', RpcResponse(id=1, error={"message": "the error is no object"})),
    ],
)
def test_messages_are_distinguished_by_their_members(line: bytes, message: Incoming) -> None:
    assert message_in(line) == message


@pytest.mark.parametrize(
    "line",
    [b'{"id":1}', b'{"id":true,"method":"m"}', b'{"id":[],"result":1}', b'{"method":7,"id":1,"result":1}', b"{}"],
)
def test_what_is_no_message_is_rejected(line: bytes) -> None:
    found = message_in(line)
    assert isinstance(found, BadLine)
    assert "neither a request" in found.why


def test_a_line_that_never_ends_is_dropped_and_not_kept() -> None:
    lines = LineReader(10)
    found = [message for _ in range(1000) for message in lines.feed(b"x" * 5)]
    assert found == [BadLine("a line is longer than 10 bytes", is_lost=True)]
    assert list(lines.feed(b"\n")) == []
    assert list(lines.feed(b'{"id":1}\n')) == [message_in(b'{"id":1}')]


def test_a_garbled_line_is_shown_bounded_and_escaped() -> None:
    found = message_in(b"\x1b[31m" + b"secret" * 1000)
    assert isinstance(found, BadLine)
    assert len(found.why) < 400
    assert "\x1b" not in found.why


def test_one_message_is_one_line_whatever_is_in_it() -> None:
    message = notification("m", {"text": 'a\nb\u2028c"\ud800'})
    wire = encode(message)
    assert wire.count(b"\n") == 1
    assert read(wire) == [RpcNotification(method="m", params=message["params"])]
    assert json.loads(encode(notification("m"))) == {"method": "m"}


def test_a_reader_may_stop_early() -> None:
    lines = LineReader()
    found = lines.feed(b'{"method":"a"}\n' + b"junk\n" * 100_000)
    assert (next(found), lines.size) == (RpcNotification(method="a"), 14)
    assert isinstance(next(found), BadLine)
