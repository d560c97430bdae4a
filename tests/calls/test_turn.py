"""The promises of a turn: ids, reasons and usage that every client may rely on."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.dialects.playing import asking, minting
from toolwire.calls.counts import Tally
from toolwire.calls.stream_checks import Count
from toolwire.calls.turn import Turn
from toolwire.errors import UpstreamError
from toolwire.events import Event, Failed, Finished, Noted, PartDelta, PartEnded, PartStarted, Started
from toolwire.types import Choice, Loss, Opaque, Reason, Request, Text, ToolCall, Usage

USAGE = Usage(input=5, output=5)


def turn(**members: Any) -> Turn:
    return Turn(asking("chat", **members), minting())


def call(index: int, call_id: str, raw: str = "{}", choice: int = 0) -> list[Event]:
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
    events = [Started(id="a", model="m"), *call(0, "c"), finished("tool_calls")]
    assert one.send(events) is events
    assert one.changed == ""
    assert (one.calls, one.losses) == (1, [])
    assert one.usage == USAGE


@pytest.mark.parametrize("given", [("", ""), ("c", "c"), ("f", "f"), ("", "c")])
def test_H050_H051_every_call_has_an_id_of_its_own(given: tuple[str, str]) -> None:
    one = turn()
    found = ids(one.send([*call(0, given[0]), *call(1, given[1])]))
    assert found[0] == found[1]
    assert found[2] == found[3]
    assert found[0] != found[2]
    assert all(found)
    assert max(map(len, found)) <= 40
    assert one.changed


def test_calls_that_end_in_another_read_keep_their_new_ids() -> None:
    one = turn()
    events = [*call(0, ""), *call(1, "")]
    found = list(itertools.chain.from_iterable(ids(one.send([events[place]])) for place in (0, 2, 3, 1)))
    assert found[0] == found[3]
    assert found[1] == found[2]


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
    assert reason_after(*call(0, "c"), finished(given)) == expected


def test_a_reason_that_promises_a_call_which_never_came() -> None:
    assert reason_after(finished("tool_calls")) == "stop"


def test_H005_reasons_are_by_choice() -> None:
    end = Finished(choices=(Choice(reason="stop", index=0), Choice(reason="stop", index=1)), usage=USAGE)
    last = turn(n=2).send([*call(0, "c", choice=1), end])[-1]
    assert isinstance(last, Finished)
    assert [choice.reason for choice in last.choices] == ["stop", "tool_calls"]


@pytest.mark.parametrize("usage", [None, Usage()])
def test_H144_usage_that_is_missing_is_estimated_and_said(usage: Usage | None) -> None:
    one = turn()
    last = one.send([PartDelta(0, "x" * 40), finished("stop", usage)])[-1]
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
    tally = Tally()
    one = Turn(asking("chat"), minting(), watch=Count(tally))
    one.send(
        [
            *call(0, "a", '{"x'),
            *call(1, "b"),
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

    is_holding = True
    changed = ""

    def __init__(self) -> None:
        self.losses: list[Loss] = []

    def send(self, events: list[Event]) -> list[Event]:
        return [event for event in events if not isinstance(event, PartDelta)]


def test_a_delta_that_somebody_wants_to_see_does_not_pass_by() -> None:
    request = Request(model="m", messages=(), stream=True)
    delta = PartDelta(0, "{}")
    assert Turn(request, str).passes(delta)
    watched = Turn(request, str, watch=Withholding())
    watched.send([PartStarted(index=0, part=ToolCall(id="c", name="f", raw=""))])
    assert not watched.passes(delta)
    assert watched.send([delta]) == []


def test_a_failure_passes_untouched() -> None:
    events: list[Event] = [Failed(error=UpstreamError("x"))]
    assert turn().send(events) is events
