"""Answers whose calls wait: what leaves at once, what waits, and how all of it leaves in the end."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.backends.event_contract import check_events
from tests.calls.streams import (
    BROKEN,
    REPAIRABLE,
    RIGHT,
    WRONG,
    call,
    checking,
    cuts,
    events_of,
    quickly,
    sliced,
    streams,
)
from toolwire.calls.held_calls import HeldAnswer
from toolwire.calls.validation import CallValidator, cut_choices
from toolwire.errors import UpstreamError
from toolwire.events import Event, Failed, Finished, Noted, PartDelta, PartEnded, PartStarted, Started, fold
from toolwire.types import Choice, Citation, Loss, Opaque, Reasoning, Text, ToolCall, Usage
from toolwire.wire.exact_json import decode


def holding(found: CallValidator | None = None, *, is_first: bool = True) -> HeldAnswer:
    return HeldAnswer(found or checking(), itertools.count().__next__, lambda: is_first)


def whole(events: list[list[Event]], policy: str = "pass", found: CallValidator | None = None) -> list[Event]:
    """All that a client gets of it."""
    answer = holding(found)
    kept = [event for piece in events for event in answer.send(piece)]
    assert answer.finished is not None
    return [*kept, *answer.released(policy), answer.finished]


def parts_in(events: list[Event]) -> list[object]:
    check_events(events)
    return list(fold(events).parts_of(0))


def test_text_leaves_at_once_and_calls_at_the_end() -> None:
    answer = holding()
    *events, end = events_of(Reasoning(text="hm"), Text(text="hi"), call())
    sent = [answer.send([event]) for event in events]
    assert [bool(kept) for kept in sent] == [True] * 7 + [False] * 3
    assert answer.send([end]) == []
    assert answer.is_over
    assert fold([*itertools.chain(*sent), *answer.released("pass"), end]).parts_of(0)[-1] == call()


def test_a_right_call_leaves_to_the_byte() -> None:
    raw = '{"city" :"\\u00e9", "days":\t12345678901234567890123}'
    assert parts_in(whole([events_of(call(raw))])) == [call(raw)]


def test_a_call_with_one_meaning_is_repaired_in_answer_and_history() -> None:
    answer = holding()
    answer.send(events_of(call(REPAIRABLE)))
    [part] = answer.parts
    assert isinstance(part, ToolCall)
    assert (part.raw, part.args) == ('{"city":"Oslo","days":3}', {"city": "Oslo", "days": 3})
    assert answer.wrong == []


def test_H116_a_name_is_put_right() -> None:
    assert parts_in(whole([events_of(call(RIGHT, "functions.weather"))])) == [call(RIGHT)]


@pytest.mark.parametrize(("policy", "kind"), [("pass", ToolCall), ("text", Text)])
def test_calls_that_are_wrong_to_the_end_leave_by_the_policy_and_are_reported(policy: str, kind: type) -> None:
    events = whole([events_of(call(WRONG), call(RIGHT, "climate", "d"), call(RIGHT, call_id="e"))], policy)
    assert [type(part) for part in parts_in(events)] == [kind, kind, ToolCall]
    losses = [event.note.feature for event in events if isinstance(event, Noted) and isinstance(event.note, Loss)]
    assert losses == ["call.invalid_arguments", "call.unknown_tool"]


def test_a_wrong_call_as_text_says_what_and_why() -> None:
    [part] = parts_in(whole([events_of(call(WRONG))], "text"))
    assert part == Text(
        text='The model called "weather", but the arguments do not fit ("city" is missing; it is required): {}'
    )


def test_H080_thoughts_between_calls_keep_their_place() -> None:
    thoughts = [Reasoning(text=word, signature=f"proof-{word}") for word in ("one", "two")]
    parts = [thoughts[0], call(), thoughts[1], call(call_id="d")]
    answer = holding()
    *events, end = events_of(*parts)
    at_once = answer.send([*events, end])
    assert [event.part for event in at_once if isinstance(event, PartEnded)] == [thoughts[0]]
    assert parts_in([*at_once, *answer.released("pass"), end]) == parts
    assert answer.parts == tuple(parts)
    assert answer.right == answer.held


def test_thoughts_wait_only_for_calls_of_their_own_choice() -> None:
    answer = holding()
    thought = Reasoning(text="")
    answer.send([Started(id="a", model="m"), PartStarted(index=0, part=ToolCall(id="c", name="weather", raw=""))])
    assert answer.send([PartStarted(index=1, part=thought, choice=0)]) == []
    assert answer.send([PartStarted(index=2, part=thought, choice=1)]) != []


def test_what_was_said_is_in_the_order_of_start() -> None:
    answer = holding()
    first, second = call(call_id="a"), call(call_id="b")
    answer.send(
        [
            PartStarted(index=0, part=ToolCall(id="a", name="weather", raw="")),
            PartStarted(index=1, part=ToolCall(id="b", name="weather", raw="")),
            PartDelta(1, RIGHT),
            PartEnded(index=1, part=second),
            PartDelta(0, RIGHT),
            PartEnded(index=0, part=first),
        ]
    )
    assert answer.parts == (first, second)


def test_a_call_cut_by_length_is_reported_as_it_was() -> None:
    found = checking()
    events = whole([events_of(call(), call(BROKEN, call_id="d"), reason="length")], "text", found)
    assert parts_in(events) == [call(), call(BROKEN, call_id="d")]
    assert fold(events).finished.choices[0].reason == "length"
    assert (found.tally.cut, found.tally.repaired, found.tally.invalid) == (1, 0, 0)


def test_only_the_first_of_several_answers_begins() -> None:
    answer = holding(is_first=False)
    assert answer.send([Started(id="a", model="m")]) == []
    assert not answer.has_sent
    assert answer.send([PartStarted(index=0, part=Text(text=""))]) != []
    assert answer.has_sent


def test_a_failure_is_kept_and_ends_it() -> None:
    answer = holding()
    error = UpstreamError("no")
    assert answer.send([Started(id="a", model="m"), Failed(error=error), Noted(note=Loss("x", "", ""))]) == [
        Started(id="a", model="m")
    ]
    assert (answer.is_over, answer.error, answer.finished, answer.is_cut) == (True, error, None, True)


def test_notes_of_one_answer_among_several() -> None:
    answer = holding()
    answer.send(
        [PartStarted(index=0, part=Text(text="")), PartStarted(index=1, part=ToolCall(id="c", name="weather", raw=""))]
    )
    cited = Citation(url="u")
    assert answer.send([Noted(note=cited, index=0)]) == [Noted(note=cited, index=0)]
    for note in (Usage(input=1), Opaque(dialect="responses", value={})):
        assert answer.send([Noted(note=note)]) == []
    assert answer.send([Noted(note=cited, index=1)]) == []
    assert answer.send([Noted(note=Loss("x", "", ""))]) == [Noted(note=Loss("x", "", ""))]


@quickly
@given(streams(choices=2), cuts, st.sampled_from(["pass", "text"]))
def test_whatever_comes_leaves_whole_and_in_order(events: list[Event], places: list[int], policy: str) -> None:
    found = checking()
    kept = whole(sliced(events, places), policy, found)
    check_events(kept)
    before, after = fold(events), fold(kept)
    cut = cut_choices(before.finished)
    for choice in (0, 1):
        expected = [part for part in before.parts_of(choice) if not isinstance(part, ToolCall)]
        calls = [part for part in before.parts_of(choice) if isinstance(part, ToolCall)]
        left = list(after.parts_of(choice))
        for part in expected:
            left.remove(part)
        assert len(left) == len(calls)
        for made, sent in zip(calls, left, strict=True):
            _check_call(made, sent, policy, is_cut=choice in cut)
    assert found.tally.made == sum(isinstance(part.part, ToolCall) for part in before.parts)


def _check_call(made: ToolCall, sent: object, policy: str, *, is_cut: bool) -> None:
    if isinstance(sent, Text):
        assert policy == "text"
        assert sent.text.endswith(made.raw)
        return
    assert isinstance(sent, ToolCall)
    assert (sent.id, sent.name) == (made.id, made.name.removeprefix("functions."))
    if made.args is None and is_cut:
        assert sent.raw == made.raw
    if made.args is not None and set(made.args) <= {"city", "days"} and not isinstance(made.args.get("days"), str):
        assert sent.raw == made.raw
    if sent.args is not None:
        assert decode(sent.raw) == sent.args


@quickly
@given(streams(choices=2), cuts)
def test_slices_do_not_matter(events: list[Event], places: list[int]) -> None:
    assert whole(sliced(events, places)) == whole([events])


@quickly
@given(streams())
def test_before_the_first_call_everything_leaves_when_it_comes(events: list[Event]) -> None:
    answer = holding()
    has_called = False
    for event in events:
        kept = answer.send([event])
        has_called = has_called or (isinstance(event, PartStarted) and isinstance(event.part, ToolCall))
        if isinstance(event, PartStarted | PartDelta | PartEnded) and not has_called:
            assert kept == [event]
        if isinstance(event, PartStarted) and isinstance(event.part, Text) and has_called:
            assert kept == []


@quickly
@given(streams(), cuts)
def test_while_it_runs_the_contract_holds(events: list[Event], places: list[int]) -> None:
    answer = holding()
    kept = [event for piece in sliced(events, places) for event in answer.send(piece)]
    check_events(kept, is_cut=True)
    assert not any(isinstance(event, Finished) for event in kept)


def test_text_behind_a_call_keeps_its_place_and_its_sources() -> None:
    cited = Text(text="Soon.", citations=(Citation(url="u"),))
    answer = holding()
    sent: list[Event] = [
        PartStarted(index=0, part=ToolCall(id="c", name="weather", raw="")),
        PartEnded(index=0, part=call(RIGHT)),
        PartStarted(index=1, part=Text(text="")),
        PartDelta(1, "Soon."),
        Noted(note=cited.citations[0], index=1),
        PartEnded(index=1, part=cited),
        Finished(choices=(Choice(reason="stop"),)),
    ]
    assert answer.send(sent) == []
    released = answer.released("pass")
    assert [event.part for event in released if isinstance(event, PartEnded)] == [call(RIGHT), cited]
    assert [event.note for event in released if isinstance(event, Noted)] == list(cited.citations)
