"""Calls that stream through: what is changed, what is counted, and that nothing else moves."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.backends.event_contract import check_events
from tests.calls.streams import BROKEN, RIGHT, WRONG, call, checking, cuts, events_of, quickly, sliced, streams
from toolwire.calls.counts import Tally
from toolwire.calls.stream_checks import Count, Watch, has_tools
from toolwire.calls.validation import Checking
from toolwire.events import Event, Finished, PartDelta, PartEnded, PartStarted, fold
from toolwire.types import Choice, Message, Reasoning, Request, State, Text, Tool, ToolCall, ToolChoice


def watched(pieces: list[list[Event]], found: Checking, *, has_tools: bool = True) -> tuple[Watch, list[Event]]:
    watch = Watch(found, has_tools=has_tools)
    return watch, [event for piece in pieces for event in watch.send(piece)]


def test_what_is_right_stays_the_same_list() -> None:
    watch = Watch(checking(), has_tools=True)
    for piece in ([event] for event in events_of(Text(text="hi"), call())):
        assert watch.send(piece) is piece
    whole = events_of(Text(text="hi"), call())
    assert watch.send(whole) is whole
    assert (watch.changed, watch.losses) == ("", [])


def test_a_wrong_call_passes_as_it_is_and_is_told() -> None:
    found = checking()
    events = events_of(call(WRONG))
    watch, kept = watched([events], found)
    assert kept == events
    assert [loss.feature for loss in watch.losses] == ["call.invalid_arguments"]
    assert watch.losses[0].why == "missing: city"
    assert (found.tally.made, found.tally.invalid) == (1, 1)


def test_nothing_is_judged_before_the_end_is_known() -> None:
    found = checking()
    watched([events_of(call(BROKEN))[:-1]], found)
    assert found.tally.made == 0
    watch, kept = watched([events_of(call(BROKEN), reason="length")], found)
    assert (found.tally.cut, found.tally.invalid, watch.losses) == (1, 0, [])
    assert kept == events_of(call(BROKEN), reason="length")


def test_only_the_choice_that_was_cut_has_cut_calls() -> None:
    events = events_of(call(BROKEN))
    other = call(BROKEN, call_id="d")
    events[-1:] = [
        PartStarted(index=1, part=ToolCall(id="d", name="weather", raw=""), choice=1),
        PartDelta(1, other.raw),
        PartEnded(index=1, part=other, choice=1),
        Finished(choices=(Choice(reason="length"), Choice(reason="tool_calls", index=1))),
    ]
    found = checking()
    watched([events], found)
    assert (found.tally.cut, found.tally.invalid) == (1, 1)


def test_H116_a_name_with_a_prefix_is_put_right_from_the_start() -> None:
    watch, kept = watched([events_of(call(RIGHT, "functions.weather"))], checking())
    assert kept == events_of(call(RIGHT))
    assert watch.changed == "the model called a tool by another name"


@pytest.mark.parametrize("text", ["", "Let me look."])
def test_H090_without_tools_a_call_becomes_text_when_it_is_whole(text: str) -> None:
    found = checking()
    parts = [Text(text=text), call(), Text(text="then")] if text else [call(), Text(text="then")]
    watch, kept = watched([[event] for event in events_of(*parts)], found, has_tools=False)
    check_events(kept)
    said = [part.text for part in fold(kept).parts_of(0) if isinstance(part, Text)]
    assert said == [
        *([text] if text else []),
        f'The model called "weather", though no tool was offered: {RIGHT}',
        "then",
    ]
    assert watch.changed == "a call where no tool was offered"
    assert [loss.feature for loss in watch.losses] == ["call.unasked"]
    assert (found.tally.made, found.tally.unknown) == (1, 1)


def test_a_native_call_without_tools_is_the_providers_business() -> None:
    shell = ToolCall(id="c", name="local_shell", raw="{}", args={}, kind="typed")
    _, kept = watched([events_of(shell)], checking(), has_tools=False)
    assert kept == events_of(shell)


def test_words_in_a_name_are_not_told() -> None:
    watch, _ = watched([events_of(call(RIGHT, 'x("sk-secret")'))], checking(), has_tools=False)
    assert "sk-secret" not in str(watch.losses)


def test_counting_alone_changes_nothing() -> None:
    tally = Tally()
    count = Count(tally)
    events = events_of(call(), call(BROKEN), ToolCall(id="c", name="p", raw="free", kind="custom"))
    assert count.send(events) is events
    assert (tally.made, tally.invalid, count.changed, count.losses) == (3, 1, "", [])


@quickly
@given(streams(choices=2), cuts)
def test_with_tools_only_names_change(events: list[Event], places: list[int]) -> None:
    found = checking()
    watch, kept = watched(sliced(events, places), found)
    check_events(kept)
    calls = [part.part for part in fold(events).parts if isinstance(part.part, ToolCall)]
    assert found.tally.made == len(calls)
    assert found.tally.repaired == 0
    wrong = found.tally.invalid + found.tally.unknown
    assert len(watch.losses) == wrong
    spelled = [_as_offered(event) for event in events]
    assert kept == spelled
    assert bool(watch.changed) == (spelled != events)


def _as_offered(event: Event) -> Event:
    if not isinstance(event, PartStarted | PartEnded) or not isinstance(event.part, ToolCall):
        return event
    part = call(event.part.raw, event.part.name.removeprefix("functions."), event.part.id)
    return type(event)(index=event.index, part=part, choice=event.choice)


@quickly
@given(streams(choices=2), cuts)
def test_H090_without_tools_no_call_is_left_and_nothing_else_is_lost(events: list[Event], places: list[int]) -> None:
    _, kept = watched(sliced(events, places), checking(), has_tools=False)
    check_events(kept)
    before, after = fold(events), fold(kept)
    assert not any(isinstance(part.part, ToolCall) for part in after.parts)
    for choice in (0, 1):
        texts = [part.text for part in after.parts_of(choice) if isinstance(part, Text)]
        for part in before.parts_of(choice):
            if isinstance(part, ToolCall):
                assert any(text.endswith(f": {part.raw}") for text in texts)
            else:
                assert part in after.parts_of(choice)
    assert len(after.parts) == len(before.parts)


@quickly
@given(streams(), cuts, st.booleans())
def test_slices_do_not_matter(events: list[Event], places: list[int], has_tools: bool) -> None:
    one, other = checking(), checking()
    assert (
        watched(sliced(events, places), one, has_tools=has_tools)[1] == watched([events], other, has_tools=has_tools)[1]
    )
    assert one.tally == other.tally


@quickly
@given(streams(), st.booleans())
def test_what_is_no_call_leaves_when_it_comes(events: list[Event], has_tools: bool) -> None:
    watch = Watch(checking(), has_tools=has_tools)
    for event in events:
        kept = watch.send([event])
        if isinstance(event, PartStarted | PartEnded) and isinstance(event.part, Text | Reasoning):
            assert [type(one) for one in kept] == [type(event)]


def test_ten_thousand_misspelled_calls_in_one_piece_cost_linear_time() -> None:
    made = [call(WRONG, "functions.weather", f"c{number}") for number in range(10_000)]
    found = checking()
    start = time.process_time()
    watch, kept = watched([events_of(*made)], found)
    assert time.process_time() - start < 5.0
    assert (found.tally.invalid, len(watch.losses)) == (10_000, 100)
    assert len(kept) == 3 * len(made) + 2


TOOL = Tool(name="weather")


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ({}, False),
        ({"tools": (TOOL,)}, True),
        ({"tools": (TOOL,), "tool_choice": ToolChoice(mode="none")}, False),
        ({"tools": (TOOL,), "tool_choice": ToolChoice(mode="required")}, True),
        ({"state": State(is_leaning=True)}, True),
        ({"state": State(is_upstreams=True)}, True),
        ({"state": State(is_kept=True)}, False),
    ],
)
def test_whether_a_call_may_come_back(request_: dict[str, object], expected: bool) -> None:
    base = Request(model="m", messages=(Message(role="user", parts=()),), **request_)  # type: ignore[arg-type] # the test's
    assert has_tools(base) is expected
