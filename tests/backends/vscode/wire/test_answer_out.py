"""Answers out: what a window gets says the same as the events did, and a broken call never looks like an empty one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.backends.vscode.wire.agreed import from_gateway
from tests.thorough import examples
from toolwire.backends.vscode.wire import shapes as bridge
from toolwire.backends.vscode.wire.answer_in import AnswerDecoder
from toolwire.backends.vscode.wire.answer_out import PartsEncoder
from toolwire.backends.vscode.wire.frames import decode_gateway, encode
from toolwire.backends.vscode.wire.usage import usage_part
from toolwire.dialects.shared.answer_out import join_texts
from toolwire.errors import UpstreamError
from toolwire.events import (
    Event,
    Failed,
    Finished,
    FoldedAnswer,
    Noted,
    PartDelta,
    PartEnded,
    PartStarted,
    Started,
    fold,
    unfold,
)
from toolwire.types import Choice, Loss, Media, Opaque, Part, Reasoning, Refusal, Text, ToolCall, Usage

USAGE = Usage(input=9, output=4)
STOP = Finished(choices=(Choice(reason="stop"),), usage=USAGE)


def answer(*parts: Part, finished: Finished = STOP) -> list[Event]:
    ended = tuple(PartEnded(index=index, part=part) for index, part in enumerate(parts))
    return unfold(FoldedAnswer(started=Started(id="a", model="m"), parts=ended, finished=finished))


def sent(*batches: list[Event]) -> list[Any]:
    """Over the wire, and by the schema."""
    encoder = PartsEncoder("r1")
    frames = [frame for batch in batches for frame in encoder.send(batch)]
    assert [decode_gateway(from_gateway(frame)) for frame in frames] == frames
    return frames


def parts_in(frames: list[Any]) -> list[bridge.AnswerPart]:
    assert [frame.seq for frame in frames if isinstance(frame, bridge.Parts)] == list(
        range(sum(isinstance(frame, bridge.Parts) for frame in frames))
    )
    return [part for frame in frames if isinstance(frame, bridge.Parts) for part in frame.parts]


def test_an_answer_given_at_once() -> None:
    frames = sent(
        answer(
            Reasoning(text="hm", item_id="t"),
            Text(text="Hi"),
            ToolCall(id="1", name="f", raw='{"a":1}', args={"a": 1}),
            ToolCall(id="2", name="g", raw="", args=None),
            Refusal(text="No."),
        )
    )
    assert parts_in(frames) == [
        bridge.ThinkingPart(text="hm", id="t"),
        bridge.TextPart(text="Hi"),
        bridge.CallPart(id="1", name="f", input={"a": 1}),
        bridge.CallPart(id="2", name="g", input={}),
        bridge.TextPart(text="No."),
        usage_part(USAGE),
    ]
    assert frames[-1] == bridge.End(id="r1", cancelled=False)


def test_text_that_comes_at_once_is_one_part() -> None:
    begun: list[Event] = [Started(id="a", model="m"), PartStarted(index=0, part=Text(text=""))]
    frames = sent([*begun, PartDelta(0, "a"), PartDelta(0, "b")], [PartDelta(0, "c")], [])
    assert frames == [
        bridge.Parts(id="r1", seq=0, parts=(bridge.TextPart(text="ab"),)),
        bridge.Parts(id="r1", seq=1, parts=(bridge.TextPart(text="c"),)),
    ]


@pytest.mark.parametrize("raw", ["{oops", "[1]", "null", '{"a":1}}'])
def test_broken_arguments_fail_the_answer(raw: str) -> None:
    broken = ToolCall(id="1", name="f", raw=raw)
    frames = sent(answer(Text(text="Hi"), broken, Text(text="more")))
    assert parts_in(frames) == [bridge.TextPart(text="Hi")]
    assert isinstance(last := frames[-1], bridge.Refused)
    assert (last.status, last.name) == (502, "invalid_tool_arguments")
    assert "guard" in last.message


def test_arguments_that_fill_a_frame_fail_the_answer() -> None:
    (last,) = sent(answer(ToolCall(id="1", name="f", raw='{"a":"' + "x" * 8_000_000 + '"}')))
    assert isinstance(last, bridge.Refused)


def test_H072_long_integers_are_a_loss() -> None:
    encoder = PartsEncoder("r1")
    encoder.send(answer(ToolCall(id="1", name="f", raw='{"n":12345678901234567890}')))
    assert [(loss.feature, loss.where) for loss in encoder.losses] == [("call.integer", "f")]


def test_an_error_ends_it_once() -> None:
    encoder = PartsEncoder("r1")
    begun: list[Event] = [PartStarted(index=0, part=Text(text="")), PartDelta(0, "half")]
    frames = encoder.send([*begun, Failed(error=UpstreamError("no", status=429, code="rate_limited"))])
    assert [type(frame) for frame in frames] == [bridge.Parts, bridge.Refused]
    assert encoder.is_over
    assert encoder.send([STOP]) == encoder.fail(UpstreamError("x")) == []


def test_only_the_first_choice_is_sent() -> None:
    other: list[Event] = [
        PartStarted(index=0, part=Text(text=""), choice=1),
        PartDelta(0, "other"),
        PartEnded(index=0, part=Text(text="other"), choice=1),
        Noted(note=Loss("x", "y", "z")),
    ]
    assert parts_in(sent([*other, Finished(choices=())])) == []


def test_data_goes_as_data() -> None:
    marker = Opaque(dialect="vscode", value={"mime": "stateful_marker", "data": "QQ=="})
    others = (
        Opaque(dialect="chat", value={"mime": "x", "data": "QQ=="}),
        Opaque(dialect="vscode", value={"mime": "x"}),
    )
    frames = sent(
        answer(marker, *others, Media(kind="image", mime="image/png", data="QQ=="), finished=Finished(choices=()))
    )
    data = bridge.DataPart
    assert parts_in(frames) == [data(mime="stateful_marker", data="QQ=="), data(mime="image/png", data="QQ==")]


def test_a_million_letters_are_cut_into_frames_that_fit() -> None:
    frames = sent(answer(Text(text="\x00" * 2_500_000)))
    parts = parts_in(frames)
    assert "".join(part.text for part in parts if isinstance(part, bridge.TextPart)) == "\x00" * 2_500_000
    assert max(len(encode(frame)) for frame in frames) < 8_000_000


OWN: dict[str, dict[str, Any]] = {"vscode": {}}
WORDS = st.text(min_size=1, max_size=6)
PARTS: st.SearchStrategy[Part] = st.one_of(
    st.builds(Text, text=WORDS),
    st.builds(Reasoning, text=WORDS, extra=st.just(OWN)),
    st.builds(ToolCall, id=st.uuids().map(str), name=WORDS, raw=st.just('{"a":1}'), args=st.just({"a": 1})),
    st.just(Opaque(dialect="vscode", value={"type": "data", "mime": "x", "data": "QQ=="})),
)


@examples(60)
@given(st.lists(PARTS, max_size=6), st.data())
def test_what_is_sent_is_read_as_the_same_answer(parts: list[Part], data: st.DataObject) -> None:
    """By the decoder of the other role; neighbours of one kind are one part there."""
    batches: list[list[Event]] = [[]]
    for event in answer(*parts):
        if data.draw(st.booleans()):
            batches.append([])
        batches[-1].append(event)
    decoder = AnswerDecoder("r1")
    heard: list[Event] = []
    for frame in sent(*batches):
        heard += decoder.parts(frame) if isinstance(frame, bridge.Parts) else decoder.end(frame)
    folded = fold(heard)
    assert folded.finished.usage == USAGE
    assert list(folded.parts_of(0)) == _merged(parts)


def _merged(parts: list[Part]) -> list[Part]:
    merged: list[Part] = []
    for part in parts:
        before = merged[-1] if merged else None
        if isinstance(part, Text) and isinstance(before, Text):
            merged[-1] = Text(text=join_texts([before, part]))
        elif isinstance(part, Reasoning) and isinstance(before, Reasoning):
            merged[-1] = replace(part, text=join_texts([before, part]))
        else:
            merged.append(part)
    return merged
