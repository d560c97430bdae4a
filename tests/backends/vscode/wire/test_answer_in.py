"""Answers out of parts: the same however they are cut into frames, and always a well-formed stream of events."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.backends.event_contract import check_events
from tests.backends.vscode.wire.agreed import answer_parts, from_window
from tests.thorough import examples
from toolwire.backends.vscode.wire import shapes as bridge
from toolwire.backends.vscode.wire.answer_in import AnswerDecoder
from toolwire.backends.vscode.wire.frames import decode_window
from toolwire.backends.vscode.wire.usage import usage_part
from toolwire.calls.arguments import Invalid, Valid, judge
from toolwire.calls.schemas import Schemas
from toolwire.errors import UpstreamError
from toolwire.events import Event, Failed, Finished, FoldedAnswer, Noted, PartDelta, fold
from toolwire.types import Choice, Loss, Opaque, Part, Reasoning, Refusal, Text, Tool, ToolCall, Usage

END = bridge.End(id="r1", cancelled=False)
OWN: dict[str, dict[str, Any]] = {"vscode": {}}
WEATHER = Tool(
    name="weather", schema={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
)


def text(words: str) -> bridge.TextPart:
    return bridge.TextPart(text=words)


def call(name: str, given: Any, id: str = "c1") -> bridge.CallPart:
    return bridge.CallPart(id=id, name=name, input=given)


def heard(
    frames: list[list[bridge.AnswerPart]],
    last: bridge.End | bridge.Failure = END,
    *,
    sends_usage: bool = False,
) -> list[Event]:
    """Every frame goes over the wire, and by the schema."""
    decoder = AnswerDecoder("r1", model="copilot/m", sends_usage=sends_usage)
    events: list[Event] = []
    for seq, parts in enumerate(frames):
        frame = decode_window(from_window(bridge.Parts(id="r1", seq=seq, parts=tuple(parts))))
        assert isinstance(frame, bridge.Parts)
        events += decoder.parts(frame)
    from_window(last)
    events += decoder.end(last) if isinstance(last, bridge.End) else decoder.error(last)
    assert decoder.is_over
    return events


def parts_of(*parts: bridge.AnswerPart) -> tuple[Part, ...]:
    return fold(heard([list(parts)])).parts_of(0)


def answer_of(*parts: bridge.AnswerPart, sends_usage: bool = False) -> FoldedAnswer:
    return fold(heard([list(parts)], sends_usage=sends_usage))


def test_text_and_calls() -> None:
    answer = answer_of(text("Let me "), text("look."), call("weather", {"city": "Rome"}), call("weather", {}, "c2"))
    assert answer.parts_of(0) == (
        Text(text="Let me look."),
        ToolCall(id="c1", name="weather", raw='{"city":"Rome"}', args={"city": "Rome"}),
        ToolCall(id="c2", name="weather", raw="{}", args={}),
    )
    assert answer.finished.choices[0].reason == "tool_calls"
    assert answer.started.model == "copilot/m"


def test_arguments_that_vs_code_lost_reach_the_guard_empty() -> None:
    """Copilot gives {} for what was no JSON; a tool that needs anything refuses that, and the model is told."""
    (made,) = parts_of(call("weather", {}))
    assert isinstance(made, ToolCall)
    verdict = judge(made, WEATHER, Schemas())
    assert isinstance(verdict, Invalid)
    assert "city" in verdict.missing
    assert isinstance(judge(made, Tool(name="weather", schema={"type": "object"}), Schemas()), Valid)


@pytest.mark.parametrize(
    ("given_input", "raw"),
    [('{"city": "Ro', '{"city": "Ro'), ("plain words", "plain words"), (["a"], '["a"]'), (None, "null"), (3, "3")],
)
def test_input_that_is_no_object_is_kept_as_it_is(given_input: Any, raw: str) -> None:
    (made,) = parts_of(call("weather", given_input))
    assert isinstance(made, ToolCall)
    assert (made.raw, made.args) == (raw, None)


def test_text_that_is_an_object_is_read_as_one() -> None:
    (made,) = parts_of(call("weather", '{"city": "Rome"}'))
    assert isinstance(made, ToolCall)
    assert (made.raw, made.args) == ('{"city": "Rome"}', {"city": "Rome"})


def test_ids_that_are_missing_or_used_twice_are_created_again() -> None:
    made = [
        part.id
        for part in parts_of(*[call("f", {}, id) for id in ("", "x", "x", "", "")])
        if isinstance(part, ToolCall)
    ]
    assert made[1] == "x"
    assert len(set(made)) == 5
    assert all(0 < len(id) <= 40 for id in made)


def test_thoughts_are_parts_of_their_own() -> None:
    think = bridge.ThinkingPart
    done = think(text="", id="t1", meta={"vscode_reasoning_done": True})
    parts = parts_of(think(text="Hm", id="t1"), think(text="m."), done, think(text="More", id="t2"), text("Hi"), done)
    assert parts == (Reasoning(text="Hmm.", extra=OWN), Reasoning(text="More", extra=OWN), Text(text="Hi"))


def test_a_thought_is_one_whatever_ids_its_pieces_have() -> None:
    pieces = [bridge.ThinkingPart(text=word, id=f"item{number}") for number, word in enumerate(["I", " need", " to"])]
    done = bridge.ThinkingPart(text="", id="item9", meta={"vscode_reasoning_summary_part_done": True})
    assert parts_of(*pieces, done, *pieces[:2], text("Hi")) == (
        Reasoning(text="I need to", extra=OWN),
        Reasoning(text="I need", extra=OWN),
        Text(text="Hi"),
    )


def test_data_parts_of_others_are_kept_for_them() -> None:
    marker = bridge.DataPart(mime="stateful_marker", data="bVxyMQ==")
    assert parts_of(text("Hi"), marker) == (
        Text(text="Hi"),
        Opaque(dialect="vscode", value={"type": "data", "mime": "stateful_marker", "data": "bVxyMQ=="}),
    )


def test_usage_is_no_part_and_parts_no_text() -> None:
    usage = Usage(input=9, output=4, cached=2)
    answer = answer_of(text("a"), usage_part(usage), text("b"), sends_usage=True)
    assert answer.parts_of(0) == (Text(text="ab"),)
    assert answer.finished.usage == usage
    assert answer.finished.choices[0].reason == "stop"


def test_a_count_that_is_missing_means_that_the_answer_was_cut() -> None:
    assert answer_of(text("a"), sends_usage=True).finished.choices[0].reason == "length"
    assert answer_of(call("weather", {}), sends_usage=True).finished.choices[0].reason == "length"
    assert answer_of(text("a")).finished.choices[0].reason == "stop"
    old = bridge.DataPart(mime="token_usage", data="e30=")
    assert answer_of(text("a"), old, sends_usage=True).finished.choices[0].reason == "stop"


def test_too_long_is_an_end_and_no_error() -> None:
    failure = bridge.Failure(id="r1", code="Unknown", name="Error", message="Response too long.")
    events = heard([[text("half")]], failure)
    check_events(events)
    assert fold(events).finished.choices[0].reason == "length"


@pytest.mark.parametrize("words", ["Response got filtered.", "Model declined to respond."])
def test_a_refusal_is_an_end_and_keeps_what_was_said(words: str) -> None:
    failure = bridge.Failure(id="r1", code="Unknown", name="Error", message=words)
    events = heard([[text("Well, ")]], failure)
    check_events(events)
    assert fold(events).parts_of(0) == (Text(text="Well, "),)
    assert fold(events).finished.choices == (Choice(reason="refused", raw_reason=words.rstrip(".")),)


def test_a_refusal_before_the_first_word_is_said_in_words() -> None:
    message = 'Filtered by Responsible AI Service\n\n{"error":{"code":"content_filter"}}'
    events = heard([], bridge.Failure(id="r1", code="", name="Error", message=message))
    check_events(events)
    told = "The provider ended the answer: Filtered by Responsible AI Service."
    assert fold(events).parts_of(0) == (Refusal(text=told, extra=OWN),)
    assert fold(events).finished.choices[0].reason == "refused"


@pytest.mark.parametrize(
    ("last", "sends_usage"),
    [
        (END, True),
        (bridge.Failure(id="r1", code="", name="Error", message="Response too long."), False),
        (bridge.Failure(id="r1", code="", name="Error", message="Response got filtered."), False),
    ],
)
def test_the_call_that_an_answer_was_cut_in_is_not_whole(last: bridge.End | bridge.Failure, sends_usage: bool) -> None:
    events = heard([[call("weather", {}), call("weather", {}, "c2")]], last, sends_usage=sends_usage)
    check_events(events)
    whole, cut = fold(events).parts_of(0)
    assert isinstance(whole, ToolCall)
    assert isinstance(cut, ToolCall)
    assert (whole.raw, whole.args) == ("{}", {})
    assert (cut.id, cut.raw, cut.args) == ("c2", "", None)


def test_a_call_without_arguments_is_whole_where_the_answer_is() -> None:
    answer = answer_of(call("weather", {}), usage_part(Usage(input=1, output=2)), sends_usage=True)
    assert answer.parts_of(0) == (ToolCall(id="c1", name="weather", raw="{}", args={}),)
    assert answer.finished.choices[0].reason == "tool_calls"


def test_integers_that_may_have_lost_digits_are_noted() -> None:
    events = heard([[call("weather", {"id": 12345678901234567000}), call("weather", {"id": 2**53}, "c2")]])
    check_events(events)
    notes = [event.note for event in events if isinstance(event, Noted)]
    assert [(note.feature, note.where) for note in notes if isinstance(note, Loss)] == [("call.integer", "weather")]


@pytest.mark.parametrize(
    ("last", "code"),
    [
        (bridge.Failure(id="r1", code="Blocked", name="Error", message="x"), "rate_limited"),
        (bridge.Failure(id="r1", code="", name="Error", message="network request aborted"), "cancelled"),
        (bridge.End(id="r1", cancelled=True), "cancelled"),
    ],
)
def test_failures_end_it(last: bridge.End | bridge.Failure, code: str) -> None:
    events = heard([[text("half")]], last)
    check_events(events)
    assert isinstance(failed := events[-1], Failed)
    assert failed.error.code == code


def test_a_window_that_goes_away_ends_it_once() -> None:
    decoder = AnswerDecoder("r1")
    assert not decoder.has_output
    events = decoder.parts(bridge.Parts(id="r1", seq=0, parts=(text("a"),))) + decoder.cut()
    assert decoder.has_output
    assert isinstance(failed := events[-1], Failed)
    assert failed.error.code == "upstream_cut"
    assert decoder.cut() == decoder.end(END) == decoder.fail(UpstreamError("x")) == []
    assert decoder.parts(bridge.Parts(id="r1", seq=1, parts=(text("a"),))) == []


def test_frames_of_others_are_passed_over_and_lost_ones_are_noticed() -> None:
    decoder = AnswerDecoder("r1")
    assert decoder.parts(bridge.Parts(id="r2", seq=0, parts=(text("a"),))) == []
    assert decoder.end(bridge.End(id="r2", cancelled=False)) == []
    assert decoder.error(bridge.Failure(id="r2", code="", name="", message="")) == []
    events = decoder.parts(bridge.Parts(id="r1", seq=1, parts=(text("a"),)))
    assert isinstance(failed := events[-1], Failed)
    assert failed.error.code == "upstream_garbage"


def test_an_answer_of_nothing_is_an_answer() -> None:
    events = heard([])
    check_events(events)
    assert isinstance(events[-1], Finished)


def test_what_nests_too_deep_is_wrong_and_not_fatal() -> None:
    deep: Any = {}
    for _ in range(100_000):
        deep = [deep]
    decoder = AnswerDecoder("r1")
    events = decoder.parts(bridge.Parts(id="r1", seq=0, parts=(call("f", deep),)))
    assert PartDelta(0, "null") in events


@st.composite
def cuttings(draw: st.DrawFn) -> tuple[list[bridge.AnswerPart], list[list[bridge.AnswerPart]]]:
    """Parts, and the same parts with texts cut and all of it put into frames in some way."""
    parts = draw(st.lists(answer_parts, max_size=8))
    pieces: list[bridge.AnswerPart] = []
    for part in parts:
        if isinstance(part, bridge.TextPart | bridge.ThinkingPart) and part.text:
            place = draw(st.integers(0, len(part.text)))
            pieces.append(_with(part, part.text[:place], is_last=False))
            pieces.append(_with(part, part.text[place:], is_last=True))
        else:
            pieces.append(part)
    frames: list[list[bridge.AnswerPart]] = []
    for piece in pieces:
        if not frames or draw(st.booleans()):
            frames.append([])
        frames[-1].append(piece)
    return parts, frames


def _with(part: bridge.TextPart | bridge.ThinkingPart, words: str, *, is_last: bool) -> bridge.AnswerPart:
    if isinstance(part, bridge.TextPart):
        return text(words)
    return bridge.ThinkingPart(text=words, id=part.id, meta=part.meta if is_last else {})


@pytest.mark.slow
@examples(300)
@given(cuttings(), st.booleans())
def test_cutting_does_not_matter(
    cutting: tuple[list[bridge.AnswerPart], list[list[bridge.AnswerPart]]], sends_usage: bool
) -> None:
    parts, frames = cutting
    whole = heard([parts] if parts else [], sends_usage=sends_usage)
    cut = heard(frames, sends_usage=sends_usage)
    check_events(whole)
    check_events(cut)
    assert fold(cut) == fold(whole)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_word_a_frame_is_the_same_as_all_at_once(size: int) -> None:
    parts = [
        text("Let me "),
        text("look."),
        bridge.ThinkingPart(text="hm", id="t"),
        text("So"),
        call("f", {}),
        text("!"),
    ]
    frames = [parts[start : start + size] for start in range(0, len(parts), size)]
    assert fold(heard(frames)) == fold(heard([parts]))
