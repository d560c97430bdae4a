"""Calls that are repaired while they stream."""

from __future__ import annotations

import json
from itertools import zip_longest
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.calls.schemas import Schemas
from toolwire.calls.streamed_calls import CallRepairer
from toolwire.calls.turn import Turn
from toolwire.calls.validation import CallTally, CallValidator, ToolOffer, with_span
from toolwire.errors import UpstreamError
from toolwire.events import Event, Failed, Finished, PartDelta, PartEnded, PartStarted, Started, fold
from toolwire.types import Choice, Request, Text, Tool, ToolCall, Usage
from toolwire.wire.exact_json import object_of

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "count": {"type": "integer"}, "unit": {"type": "string"}},
    "required": ["city", "count"],
}
RIGHT = '{"city": "Oslo", "count": 2}'
WRITE = Tool(name="write", schema={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]})
END = Finished(choices=(Choice(index=0, reason="tool_calls"),), usage=Usage(input=1, output=1))
CUT = Finished(choices=(Choice(index=0, reason="length"),), usage=Usage(input=1, output=1))


def validator() -> CallValidator:
    return CallValidator(ToolOffer([Tool(name="weather", schema=SCHEMA), WRITE]), Schemas(), CallTally())


def repairer(found: CallValidator | None = None) -> CallRepairer:
    return CallRepairer(found or validator(), has_tools=True)


def call_events(raw: str, size: int, index: int = 0, name: str = "weather") -> list[Event]:
    """One call, its arguments in pieces of this size."""
    call = ToolCall(id=f"c{index}", name=name, raw="")
    pieces = [PartDelta(index, raw[start : start + size]) for start in range(0, len(raw), size)]
    whole = ToolCall(id=f"c{index}", name=name, raw=raw, args=object_of(raw))
    return [PartStarted(index=index, part=call), *pieces, PartEnded(index=index, part=whole)]


def run(one: CallRepairer, events: list[Event]) -> list[Event]:
    """Each event in a batch of its own, as in a stream."""
    return [sent for event in events for sent in one.send([event])]


def arguments(events: list[Event], index: int = 0) -> str:
    return "".join(event.text for event in events if isinstance(event, PartDelta) and event.index == index)


def calls(events: list[Event]) -> list[ToolCall]:
    return [event.part for event in events if isinstance(event, PartEnded) and isinstance(event.part, ToolCall)]


@pytest.mark.parametrize("size", [1, 4, 100])
def test_a_valid_call_is_not_changed(size: int) -> None:
    one = repairer()
    sent = run(one, [*call_events(RIGHT, size), END])
    assert arguments(sent) == RIGHT
    assert calls(sent) == calls(call_events(RIGHT, size))
    assert (one.changed, one.losses, one.withholds, one.deltas) == ("", [], False, None)


@pytest.mark.parametrize("size", [1, 4, 100])
@pytest.mark.parametrize(
    "raw",
    [
        '{"city": "Oslo", "count": "2"}',
        '{"city": "Oslo", "count": 2.0}',
        "{'city': 'Oslo', 'count': 2}",
        '{"City": "Oslo", "count": 2}',
        '{"city": "Oslo", "count": 2,}',
        '{"arguments": {"city": "Oslo", "count": 2}}',
        '{"city": "Oslo", "count": 2, "unit": null}',
        '```json\n{"city": "Oslo", "count": 2}\n```',
    ],
)
def test_a_damaged_call_is_repaired_and_starts_with_what_was_sent(raw: str, size: int) -> None:
    found = validator()
    one = repairer(found)
    sent = run(one, [*call_events(raw, size), END])
    [call] = calls(sent)
    assert json.loads(arguments(sent)) == call.args == {"city": "Oslo", "count": 2}
    assert call.raw == arguments(sent)
    assert one.changed
    assert (found.tally.made, found.tally.invalid, found.tally.repaired, one.losses) == (1, 1, 1, [])


def test_a_call_without_a_certain_repair_is_sent_as_it_came_and_reported() -> None:
    for raw in ('{"city": "Oslo"}', '{"city": ["Oslo", "Rome"], "count": 2}', '{"city": "Oslo", "count": "many"}'):
        one = repairer()
        sent = run(one, [*call_events(raw, 3), END])
        assert arguments(sent) == raw
        assert calls(sent) == calls(call_events(raw, 3))
        assert [(loss.feature, loss.where) for loss in one.losses] == [("call.invalid_arguments", 'call "weather"')]


def test_a_call_in_which_the_answer_was_cut_is_never_completed() -> None:
    raw = '{"city": "Oslo", "count": "2"'
    one = repairer()
    sent = run(one, [*call_events(raw, 3), CUT])
    assert arguments(sent) == raw
    assert (calls(sent)[0].args, one.losses) == (None, [])


def test_a_call_that_is_no_json_waits_until_the_answer_goes_on() -> None:
    raw = '{"city": "Oslo", "count": 2,}'
    one = repairer()
    sent = run(one, call_events(raw, 5))
    assert calls(sent) == []
    assert one.withholds
    [ended, _] = one.send([PartStarted(index=1, part=Text(text=""))])[-2:]
    assert isinstance(ended, PartEnded)
    assert not one.withholds


def test_several_calls_at_once() -> None:
    first, second = call_events('{"city": "Oslo", "count": "2"}', 4), call_events(RIGHT, 4, index=1)
    pairs = zip_longest(first, second)
    sent = run(repairer(), [*(event for pair in pairs for event in pair if event is not None), END])
    assert [json.loads(arguments(sent, index)) for index in (0, 1)] == [{"city": "Oslo", "count": 2}] * 2
    assert [call.args for call in calls(sent)] == [{"city": "Oslo", "count": 2}] * 2


@pytest.mark.parametrize("is_batch", [True, False])
def test_calls_are_sent_in_their_order_also_if_a_later_one_ends_first(is_batch: bool) -> None:
    """As from a Chat Completions server, where a call that is no JSON ends with the answer."""
    fenced = "```json\n" + RIGHT + "\n```"
    [*first, end] = call_events(fenced, 1000)
    events = [*first, *call_events(RIGHT, 1000, index=1), *call_events(RIGHT, 4, index=2), end, END]
    one = repairer()
    batches = (
        [[*first, events[2]], events[3:5], *([event] for event in events[5:])] if is_batch else [[e] for e in events]
    )
    sent = [event for batch in batches for event in one.send(batch)]
    assert [event.index for event in sent if isinstance(event, PartEnded)] == [0, 1, 2]
    assert [event.index for event in sent if isinstance(event, PartStarted)] == [0, 1, 2]
    assert [call.args for call in calls(sent)] == [{"city": "Oslo", "count": 2}] * 3


def test_unknown_tools_pass_and_are_reported() -> None:
    one = repairer()
    events = call_events("{oh no", 2, name="teleport")
    assert run(one, [*events, END]) == [*events, END]
    assert [loss.feature for loss in one.losses] == ["call.unknown_tool"]


def test_a_whole_answer_is_the_same_list_if_it_is_valid() -> None:
    events: list[Event] = [*call_events(RIGHT, 100), END]
    assert repairer().send(events) is events


def test_an_unreadable_call_in_text_becomes_text_or_a_repaired_call() -> None:
    for raw, is_call in (("weather in Oslo", False), ("{'city': 'Oslo', 'count': 2}", True)):
        start, delta, end = call_events(raw, 100)
        assert isinstance(end, PartEnded)
        assert isinstance(end.part, ToolCall)
        broken = PartEnded(index=0, part=with_span(end.part, f"<tool_call>{raw}", "it does not end"))
        one = repairer()
        sent = one.send([start, delta, broken]) + one.send([END])
        assert bool(calls(sent)) == is_call
        texts = [event.part.text for event in sent if isinstance(event, PartEnded) and isinstance(event.part, Text)]
        assert texts == ([] if is_call else [f"<tool_call>{raw}"])


def test_a_failed_answer_ends_with_its_failure() -> None:
    failed = Failed(error=UpstreamError("gone"))
    one = repairer()
    sent = run(one, [*call_events(RIGHT, 3)[:4], failed])
    assert sent[-1] is failed
    assert not one.withholds


def test_deltas_of_a_long_string_pass_the_turn_without_being_sent() -> None:
    turn = Turn(Request(model="m", messages=(), stream=True), str, observer=repairer())
    turn.send([Started(id="a", model="m"), PartStarted(index=0, part=ToolCall(id="c", name="write", raw=""))])
    first = PartDelta(0, '{"text": "' + "a" * 300)
    assert turn.send([first]) == [first]
    assert not turn.withholds
    assert turn.deltas is not None
    assert turn.deltas.passes(PartDelta(0, "more, "))
    assert turn.deltas.passes(PartDelta(1, "another part"))
    quote = PartDelta(0, 'x"')
    assert not turn.deltas.passes(quote)
    assert turn.send([quote]) == [PartDelta(0, "x")]
    assert turn.withholds
    assert not turn.deltas.passes(PartDelta(1, "another part"))


DAMAGED = st.sampled_from(
    [
        RIGHT,
        '{"city": "Oslo", "count": "2"}',
        '{"city": "O"',
        "",
        "{}",
        '{"city": "x", "count": 2}}',
        "[]",
        "{'city': 1}",
    ]
)


@given(st.lists(DAMAGED, min_size=1, max_size=4), st.integers(1, 9), st.booleans())
def test_however_it_is_cut_the_result_is_the_same(raws: list[str], size: int, is_cut: bool) -> None:
    events: list[Event] = [Started(id="a", model="m")]
    for index, raw in enumerate(raws):
        events += call_events(raw, size, index)
    events.append(CUT if is_cut else END)
    whole: list[Event] = [Started(id="a", model="m")]
    for index, raw in enumerate(raws):
        whole += call_events(raw, 1000, index)
    whole.append(events[-1])
    streamed, at_once = fold(run(repairer(), events)), fold(repairer().send(whole))
    assert [part.part.args for part in streamed.parts] == [part.part.args for part in at_once.parts]  # type: ignore[union-attr]
    assert [part.index for part in streamed.parts] == list(range(len(raws)))


@given(st.lists(DAMAGED, min_size=1, max_size=3), st.integers(1, 9), st.integers(2, 9))
def test_several_events_at_once_are_sent_like_one_after_the_other(raws: list[str], size: int, batch: int) -> None:
    events: list[Event] = [Started(id="a", model="m")]
    for index, raw in enumerate(raws):
        events += call_events(raw, size, index)
    events.append(END)
    one = repairer()
    batches = [one.send(events[start : start + batch]) for start in range(0, len(events), batch)]
    together, alone = [event for sent in batches for event in sent], run(repairer(), events)
    assert [call.args for call in calls(together)] == [call.args for call in calls(alone)]
    for sent in (together, alone):
        for index, call in enumerate(calls(sent)):
            assert arguments(sent, index) == call.raw
