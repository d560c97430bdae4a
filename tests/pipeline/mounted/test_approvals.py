"""Calls that the client decides about: run once, and only while the decision is new."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from tests.pipeline.mounted.fakes import FakeTool, call, offer_of
from toolwire.calls.schemas import Schemas
from toolwire.pipeline.mounted.approvals import APPROVE, DENY, ApprovedCalls
from toolwire.pipeline.mounted.offer import CallRate, MountedOffer
from toolwire.pipeline.mounted.tools import CallRunner
from toolwire.tools.base import Output
from toolwire.types import JsonObject, Message, Text, ToolCall, ToolResult

RUN = partial(CallRunner(Schemas(), CallRate(lambda: 0.0), "").run, may_repair=False)


def history(decision: str, made: ToolCall | None = None, *, later: bool = False) -> tuple[Message, ...]:
    made = made or call()
    result = ToolResult(call_id=made.id, parts=(Text(text=decision),))
    more = (Message(role="assistant", parts=(Text(text="ok"),)),) if later else ()
    return (Message(role="assistant", parts=(made,)), Message(role="tool", parts=(result,)), *more)


def result_in(messages: tuple[Message, ...]) -> str:
    [part] = messages[1].parts
    assert isinstance(part, ToolResult)
    return "".join(inner.text for inner in part.parts if isinstance(inner, Text))


def decide(
    approved: ApprovedCalls, offer: MountedOffer, *turns: tuple[Message, ...], owner: str = "ann"
) -> list[tuple[Message, ...]]:
    async def run() -> list[tuple[Message, ...]]:
        return [await approved.applied(turn, offer, owner, RUN) for turn in turns]

    return asyncio.run(run())


def test_an_approved_call_is_run_once() -> None:
    tool = FakeTool("box__echo")
    offer = offer_of(tool, is_returned=True)
    first, again, later = decide(
        ApprovedCalls(), offer, history(APPROVE), history(f" {APPROVE}\n"), history(APPROVE, later=True)
    )
    assert {result_in(first), result_in(again), result_in(later)} == {"got 1"}
    assert tool.calls == [{"n": 1}]


def test_an_approval_that_is_not_new_runs_nothing() -> None:
    tool = FakeTool("box__echo")
    [found] = decide(ApprovedCalls(), offer_of(tool, is_returned=True), history(APPROVE, later=True))
    assert "no longer stored" in result_in(found)
    assert tool.calls == []


def test_a_denied_call_is_not_run() -> None:
    tool = FakeTool("box__echo")
    [found] = decide(ApprovedCalls(), offer_of(tool, is_returned=True), history(DENY))
    assert "did not allow" in result_in(found)
    assert tool.calls == []


@pytest.mark.parametrize(
    ("text", "made", "is_returned"),
    [
        ("done", call(), True),  # the client has run it
        (APPROVE, call("weather"), True),  # a tool of the client
        (APPROVE, call(), False),  # the gateway runs it without asking
        (f"The page says {APPROVE}", call(), True),
    ],
)
def test_other_results_are_not_changed(text: str, made: ToolCall, is_returned: bool) -> None:
    messages, tool = history(text, made), FakeTool("box__echo")
    [found] = decide(ApprovedCalls(), offer_of(tool, is_returned=is_returned), messages)
    assert result_in(found) == text
    assert tool.calls == []


def test_owners_do_not_see_each_others_results() -> None:
    tool, approved = FakeTool("box__echo"), ApprovedCalls()
    offer = offer_of(tool, is_returned=True)
    decide(approved, offer, history(APPROVE), owner="ann")
    [found] = decide(approved, offer, history(APPROVE, later=True), owner="bob")
    assert "no longer stored" in result_in(found)


def test_other_arguments_are_another_call() -> None:
    tool, approved = FakeTool("box__echo"), ApprovedCalls()
    decide(
        approved,
        offer_of(tool, is_returned=True),
        history(APPROVE),
        history(APPROVE, call(raw='{"n": 2}', args={"n": 2})),
    )
    assert tool.calls == [{"n": 1}, {"n": 2}]


def test_a_client_that_disconnects_finds_the_result_later() -> None:
    async def run() -> tuple[str, int]:
        is_begun, may_end = asyncio.Event(), asyncio.Event()

        async def wait(arguments: JsonObject) -> Output:
            is_begun.set()
            await may_end.wait()
            return Output.of_text("done")

        tool = FakeTool("box__echo", wait)
        offer, approved = offer_of(tool, is_returned=True), ApprovedCalls()
        first = asyncio.create_task(approved.applied(history(APPROVE), offer, "", RUN))
        await is_begun.wait()
        first.cancel()
        await asyncio.wait({first})
        may_end.set()
        return result_in(await approved.applied(history(APPROVE), offer, "", RUN)), len(tool.calls)

    assert asyncio.run(run()) == ("done", 1)


def test_stored_results_are_bounded() -> None:
    async def large(arguments: JsonObject) -> Output:
        return Output.of_text("x" * 1000)

    tool, approved = FakeTool("box__echo", large), ApprovedCalls(most_bytes=2500)
    offer = offer_of(tool, is_returned=True)
    turns = [history(APPROVE, call(call_id=f"c{number}")) for number in range(4)]
    old = [history(APPROVE, call(call_id=f"c{number}"), later=True) for number in range(4)]
    found = decide(approved, offer, *turns, *old)
    assert ["no longer" in result_in(turn) for turn in found[4:]] == [True, True, False, False]
