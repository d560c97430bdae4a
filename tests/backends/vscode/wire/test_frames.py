"""Frames: what is written validates and reads back as it was; what is no frame is an error, and nothing else."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.backends.vscode.wire.agreed import MODEL, answer_parts, asks, from_gateway, from_window, values
from tests.thorough import examples
from toolwire.backends.vscode.wire import shapes as bridge
from toolwire.backends.vscode.wire.frames import (
    MAX_FRAME,
    WHOLE,
    BadWindowFrame,
    decode_gateway,
    decode_window,
    encode,
    loses_digits,
)
from toolwire.wire.exact_json import encode as encode_json

TEXT = bridge.TextPart(text="hi")
PARTS = bridge.Parts(id="r1", seq=0, parts=(TEXT,))
OFFERED = bridge.OfferedModel(
    id="demo/echo",
    name="echo",
    family="echo",
    version="1",
    max_input_tokens=1,
    max_output_tokens=1,
    can_call_tools=True,
    can_see_images=False,
)
WINDOWS: list[bridge.FromWindow] = [
    bridge.Hello(v=1, window="w", vscode="1.139.1", extension="1", focused=True, copilot="0.67.0", folder="x"),
    bridge.Hello(v=1, window="w", vscode="1.139.1", extension="1", focused=False),
    bridge.Focus(focused=False),
    bridge.Models(models=(MODEL,)),
    PARTS,
    bridge.End(id="r1", cancelled=True),
    bridge.Failure(id="r1", code="", name="", message=""),
    bridge.Counted(id="r1", tokens=9),
    bridge.Pong(n=1),
    bridge.Ask(id="r1", model="m", messages=()),
    bridge.Stop(id="r1"),
    bridge.List(),
]
GATEWAYS: list[bridge.FromGateway] = [
    bridge.Welcome(v=1, gateway="1"),
    bridge.Chat(id="r1", model="copilot/x", messages=(bridge.ChatMessage(role="user", parts=(TEXT,)),)),
    bridge.Cancel(id="r1"),
    bridge.Count(id="r1", model="copilot/x", text=""),
    bridge.Refresh(),
    bridge.Ping(n=1),
    bridge.Offer(models=(OFFERED,)),
    PARTS,
    bridge.End(id="r1", cancelled=False),
    bridge.Refused(id="r1", status=429, code="Blocked", name="rate_limited", message="wait"),
]


@pytest.mark.parametrize("frame", WINDOWS, ids=lambda frame: type(frame).__name__)
def test_frames_of_a_window(frame: bridge.FromWindow) -> None:
    assert decode_window(from_window(frame)) == frame


@pytest.mark.parametrize("frame", GATEWAYS, ids=lambda frame: type(frame).__name__)
def test_frames_of_the_gateway(frame: bridge.FromGateway) -> None:
    assert decode_gateway(from_gateway(frame)) == frame


@examples(40)
@given(st.lists(answer_parts, min_size=1, max_size=4), st.integers(0, 9))
def test_parts_read_back_as_they_were(parts: list[bridge.AnswerPart], seq: int) -> None:
    frame = bridge.Parts(id="r1", seq=seq, parts=tuple(parts))
    assert decode_window(from_window(frame)) == frame
    assert decode_gateway(from_gateway(frame)) == frame


@pytest.mark.slow
@given(asks)
def test_asks_read_back_as_they_were(ask: bridge.Ask) -> None:
    assert decode_window(from_window(ask)) == ask


def test_H072_numbers_are_exact() -> None:
    call = '{"t":"call","id":"1","name":"f","input":{"n":12345678901234567890,"x":1.10}}'
    text = f'{{"type":"parts","id":"r1","seq":0,"parts":[{call}]}}'
    frame = decode_window(text)
    assert isinstance(frame, bridge.Parts)
    assert encode(frame) == text


def test_half_of_a_surrogate_pair_survives() -> None:
    text = '{"type":"parts","id":"r1","seq":0,"parts":[{"t":"text","text":"\\ud83d"}]}'
    frame = decode_window(text)
    assert frame == bridge.Parts(id="r1", seq=0, parts=(bridge.TextPart(text="\ud83d"),))
    assert encode(frame) == text  # type: ignore[arg-type] # it was seen to be no Unknown


def test_what_only_a_newer_version_knows_is_passed_over() -> None:
    assert decode_window('{"type":"dance","id":"r1"}') == bridge.UnknownFrame(type="dance")
    assert decode_gateway('{"type":"hello"}') == bridge.UnknownFrame(type="hello")
    assert decode_window('{"type":"focus","focused":true,"since":3}') == bridge.Focus(focused=True)
    parts = '[{"t":"smell"},{"t":"text","text":"hi","bold":true},{"t":"result","id":"1","parts":[{"t":"smell"}]}]'
    message = f'{{"role":"user","parts":{parts}}}'
    newer = '{"role":"referee","parts":[]}'
    ask = decode_window(f'{{"type":"ask","id":"r1","model":"m","messages":[{message},{newer}]}}')
    assert isinstance(ask, bridge.Ask)
    result = bridge.ResultPart(id="1", parts=())
    assert ask.messages == (bridge.AskMessage(role="user", parts=(TEXT, result)),)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{}",
        '{"type":null}',
        '{"type":"focus"}',
        '{"type":"focus","focused":"yes"}',
        '{"type":"parts","id":"1","seq":0,"parts":[{"text":"no t"}]}',
        '{"type":"parts","id":"1","seq":0,"parts":[3]}',
        '{"type":"parts","id":"1","seq":0.5,"parts":[]}',
        '{"type":"ask","id":"1","model":"m","messages":[[]]}',
        '{"type":"count","id":"1","tokens":null}',
        '{"type":"parts","id":"1","seq":0,"parts":' + "[" * 100_000,
        '{"type":"focus","focused":true}' + " " * MAX_FRAME,
    ],
    ids=range(14),
)
def test_what_is_no_frame_is_bad(text: str) -> None:
    with pytest.raises(BadWindowFrame) as caught:
        decode_window(text)
    assert len(str(caught.value)) < 400


def test_a_frame_that_nests_too_deep_is_bad_when_it_is_written() -> None:
    deep: Any = {}
    for _ in range(100_000):
        deep = {"a": deep}
    call = bridge.CallPart(id="1", name="f", input=deep)
    with pytest.raises(BadWindowFrame):
        encode(bridge.Parts(id="r1", seq=0, parts=(call,)))


KINDS = st.sampled_from(
    ["hello", "focus", "models", "parts", "end", "error", "count", "pong", "ask", "stop", "list", "chat", "offer", "x"]
)
MEMBERS = st.sampled_from(
    ["id", "seq", "parts", "messages", "model", "models", "tools", "options", "t", "role", "v", "n"]
)
HOSTILE = st.recursive(
    values | st.sampled_from(["text", "call", "data", "result", "thinking", "user"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(MEMBERS, inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.slow
@examples(400)
@given(KINDS, st.dictionaries(MEMBERS, HOSTILE, max_size=6))
def test_hostile_objects_are_frames_or_bad(kind: str, members: dict[str, Any]) -> None:
    text = encode_json({**members, "type": kind}).decode()
    for read in (decode_window, decode_gateway):
        with suppress(BadWindowFrame):
            assert read(text) is not None


@given(st.text() | st.binary())
def test_hostile_text_is_bad_or_a_frame(text: str | bytes) -> None:
    with suppress(BadWindowFrame):
        assert decode_window(text) is not None


@pytest.mark.parametrize(
    ("value", "is_lost"),
    [
        (WHOLE, False),
        (WHOLE + 1, True),
        (-WHOLE - 1, True),
        ({"a": [1, {"b": (2, WHOLE * 2)}]}, True),
        ({"a": ["9" * 30, 1.5, True, None]}, False),
    ],
)
def test_H072_long_integers_are_seen(value: Any, is_lost: bool) -> None:
    assert loses_digits(value) is is_lost


def test_depth_does_not_matter() -> None:
    deep: Any = WHOLE + 1
    for _ in range(100_000):
        deep = [deep]
    assert loses_digits(deep)
