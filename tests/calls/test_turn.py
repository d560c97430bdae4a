"""The promises of a turn: ids, reasons and usage that every client may rely on."""

from __future__ import annotations

import itertools
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.backends.event_contract import check_events
from tests.calls.streams import BROKEN, RIGHT, WRONG, call, checking, cuts, events_of, quickly, sliced, streams
from tests.dialects.codec_harness import make_request, numbered_ids
from toolwire.calls.schemas import Schemas
from toolwire.calls.turn import CallCounter, CallMonitor, Turn, has_tools
from toolwire.calls.validation import CallTally, CallValidator, OfferedTools, ToolOffer
from toolwire.calls.written.splitter import CallSplitter, SplitterPolicy
from toolwire.errors import UpstreamError
from toolwire.events import Event, Failed, Finished, Noted, PartDelta, PartEnded, PartStarted, Started, fold
from toolwire.types import (
    Choice,
    Loss,
    Message,
    Opaque,
    Reason,
    Reasoning,
    Request,
    State,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    Usage,
)

USAGE = Usage(input=5, output=5)


def turn(**members: Any) -> Turn:
    return Turn(make_request("chat", **members), numbered_ids())


def call_events(index: int, call_id: str, raw: str = "{}", choice: int = 0) -> list[Event]:
    args: dict[str, Any] | None = {} if raw == "{}" else None
    started = ToolCall(id=call_id, name="f", raw="")
    ended = ToolCall(id=call_id, name="f", raw=raw, args=args)
    return [PartStarted(index=index, part=started, choice=choice), PartEnded(index=index, part=ended, choice=choice)]


def finished(reason: Reason, usage: Usage | None = USAGE, **members: Any) -> Finished:
    return Finished(choices=(Choice(reason=reason, **members),), usage=usage)


def ids(events: list[Event]) -> list[str]:
    return [
        event.part.id
        for event in events
        if isinstance(event, PartStarted | PartEnded) and isinstance(event.part, ToolCall)
    ]


def reason_after(*events: Event) -> str:
    last = turn().send(list(events))[-1]
    assert isinstance(last, Finished)
    return last.choices[0].reason


def test_what_is_right_passes_as_the_same_list() -> None:
    one = turn()
    events = [Started(id="a", model="m"), *call_events(0, "c"), finished("tool_calls")]
    assert one.send(events) is events
    assert one.changed == ""
    assert (one.calls, one.losses) == (1, [])
    assert one.usage == USAGE


@pytest.mark.parametrize("given", [("", ""), ("c", "c"), ("f", "f"), ("", "c")])
def test_H050_H051_every_call_has_an_id_of_its_own(given: tuple[str, str]) -> None:
    one = turn()
    found = ids(one.send([*call_events(0, given[0]), *call_events(1, given[1])]))
    assert found[0] == found[1]
    assert found[2] == found[3]
    assert found[0] != found[2]
    assert all(found)
    assert max(map(len, found)) <= 40
    assert one.changed


def test_calls_that_end_in_another_read_keep_their_new_ids() -> None:
    one = turn()
    events = [*call_events(0, ""), *call_events(1, "")]
    found = list(itertools.chain.from_iterable(ids(one.send([events[place]])) for place in (0, 2, 3, 1)))
    assert found[0] == found[3]
    assert found[1] == found[2]


def test_calls_of_a_client_that_drops_ids_are_numbered() -> None:
    one = Turn(make_request("ollama"), numbered_ids())
    assert ids(one.send([*call_events(0, "toolu_1"), *call_events(1, "")])) == ["call_1", "call_1", "call_2", "call_2"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("stop", "tool_calls"),
        ("other", "tool_calls"),
        ("tool_calls", "tool_calls"),
        ("length", "length"),
        ("refused", "refused"),
        ("paused", "paused"),
    ],
)
def test_H028_H031_a_call_decides_the_reason_unless_it_was_cut(given: Reason, expected: str) -> None:
    assert reason_after(*call_events(0, "c"), finished(given)) == expected


def test_a_reason_that_promises_a_call_which_never_came() -> None:
    assert reason_after(finished("tool_calls")) == "stop"


def test_H005_reasons_are_by_choice() -> None:
    end = Finished(choices=(Choice(reason="stop", index=0), Choice(reason="stop", index=1)), usage=USAGE)
    last = turn(n=2).send([*call_events(0, "c", choice=1), end])[-1]
    assert isinstance(last, Finished)
    assert [choice.reason for choice in last.choices] == ["stop", "tool_calls"]


@pytest.mark.parametrize("usage", [None, Usage()])
def test_H144_usage_that_is_missing_is_estimated_and_said(usage: Usage | None) -> None:
    one = turn()
    last = one.send(events_of(Text(text="x" * 40), reason="stop", usage=usage))[-1]
    assert isinstance(last, Finished)
    assert last.usage is not None
    assert last.usage.input > 0
    assert last.usage.output == 10
    assert one.changed == "usage was missing"
    assert [loss.feature for loss in one.losses] == ["usage"]


def test_H145_missing_usage_changes_nothing_for_who_did_not_ask() -> None:
    one = turn(stream_options=None)
    one.send([finished("stop", None)])
    assert one.changed == ""


def test_arguments_that_did_not_parse_are_counted() -> None:
    tally = CallTally()
    one = Turn(make_request("chat"), numbered_ids(), observer=CallCounter(tally))
    one.send(
        [
            *call_events(0, "a", '{"x'),
            *call_events(1, "b"),
            PartEnded(index=2, part=ToolCall(id="d", name="p", raw="free", kind="custom")),
        ]
    )
    assert (one.calls, tally.made, tally.invalid) == (3, 3, 1)


def test_losses_and_foreign_parts_are_on_record() -> None:
    one = turn()
    loss = Loss("x", "y", "z")
    one.send([Noted(note=loss), PartEnded(index=0, part=Opaque(dialect="messages", value={"type": "server_tool_use"}))])
    one.send([PartEnded(index=1, part=Opaque(dialect="chat", value={})), PartEnded(index=2, part=Text(text="a"))])
    assert [one.feature for one in one.losses] == ["x", "answer.server_tool_use"]


class Withholding:
    """A watcher that holds back the deltas of calls."""

    withholds = True
    changed = ""

    def __init__(self) -> None:
        self.losses: list[Loss] = []
        self.deltas = self

    def send(self, events: list[Event]) -> list[Event]:
        return [event for event in events if not isinstance(event, PartDelta)]

    def passes(self, delta: PartDelta) -> bool:
        return False


def test_a_delta_with_an_observer_is_not_skipped() -> None:
    request = Request(model="m", messages=(), stream=True)
    delta = PartDelta(0, "{}")
    assert Turn(request, str).deltas is None
    watched = Turn(request, str, observer=Withholding())
    watched.send([PartStarted(index=0, part=ToolCall(id="c", name="f", raw=""))])
    assert watched.deltas is not None
    assert not watched.deltas.passes(delta)
    assert watched.send([delta]) == []


def test_a_failure_passes_untouched() -> None:
    events: list[Event] = [Failed(error=UpstreamError("x"))]
    assert turn().send(events) is events


def watched(
    pieces: list[list[Event]], found: CallValidator, *, has_tools: bool = True
) -> tuple[CallMonitor, list[Event]]:
    watch = CallMonitor(found, has_tools=has_tools)
    return watch, [event for piece in pieces for event in watch.send(piece)]


def test_what_is_right_stays_the_same_list() -> None:
    watch = CallMonitor(checking(), has_tools=True)
    for piece in ([event] for event in events_of(Text(text="hi"), call())):
        assert watch.send(piece) is piece
    whole = events_of(Text(text="hi"), call())
    assert watch.send(whole) is whole
    assert (watch.changed, watch.losses) == ("", [])


def test_a_wrong_call_passes_as_it_is_and_is_reported() -> None:
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


def test_words_in_a_name_are_not_reported() -> None:
    watch, _ = watched([events_of(call(RIGHT, 'x("sk-secret")'))], checking(), has_tools=False)
    assert "sk-secret" not in str(watch.losses)


def test_counting_alone_changes_nothing() -> None:
    tally = CallTally()
    count = CallCounter(tally)
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
    watch = CallMonitor(checking(), has_tools=has_tools)
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


def test_the_splitter_is_built_with_the_first_text_part_and_keeps_earlier_indexes() -> None:
    firsts: list[int] = []
    offer = ToolOffer([Tool(name="weather", schema={"type": "object"})])

    def make(first: int) -> CallSplitter:
        firsts.append(first)
        return CallSplitter(OfferedTools(offer, Schemas(), False), offer, numbered_ids(), SplitterPolicy(), first)

    one = Turn(make_request("chat"), numbered_ids(), splitter=make)
    events = events_of(call(), Text(text='<tool_call>\n{"name": "weather", "arguments": {}}\n</tool_call>'))
    head = [event for event in events if not (isinstance(event, PartStarted) and event.index)][:3]
    assert one.send(head) is head
    assert firsts == []
    sent = one.send(events[len(head) :])
    assert firsts == [1]
    assert [part.name for part in fold([*head, *sent]).parts_of(0) if isinstance(part, ToolCall)] == ["weather"] * 2
    assert one.changed == "a call was written into the text"
