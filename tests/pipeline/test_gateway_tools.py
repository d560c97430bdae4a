"""Tools that the gateway runs inside one request: several rounds of the model are one answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from toolwire.backends.base import Backend, EventReply
from toolwire.calls.parts import part_events
from toolwire.errors import UpstreamError
from toolwire.events import Event, Failed, Finished, FoldedAnswer, Started, fold
from toolwire.pipeline.gateway_tools import GatewayTools, Place, StartedCall, ToolOutcome, ToolRunningBackend
from toolwire.types import Choice, Message, Part, Reason, Request, Text, Tool, ToolCall, Usage

REQUEST = Request(model="m", messages=(Message(role="user", parts=(Text(text="hi"),)),), tools=(Tool(name="own"),))


class Player(Backend):
    """Each request gets the next list of parts."""

    name = "player"

    def __init__(self, *rounds: list[Part], reason: Reason = "tool_calls") -> None:
        self.requests: list[Request] = []
        self.is_closed = False
        self._rounds = list(rounds)
        self._reason: Reason = reason

    async def open(self, request: Request, *, is_verbatim: bool) -> EventReply:
        self.requests.append(request)
        return EventReply(events=self._play(self._rounds.pop(0) if len(self._rounds) > 1 else self._rounds[0]))

    async def _play(self, parts: list[Part]) -> AsyncIterator[list[Event]]:
        try:
            yield [Started(id="a", model="m")]
            for index, part in enumerate(parts):
                yield part_events(index, part, 0)
            yield [Finished(choices=(Choice(reason=self._reason),), usage=Usage(input=10, output=2))]
        finally:
            self.is_closed = True


class Counter(GatewayTools):
    """One tool, "count", which may be called twice."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.ended: list[ToolCall] = []
        self.text = ""

    def begin(self, request: Request) -> Request:
        return request

    def resume(self, request: Request) -> Request:
        return request

    def owns(self, call: ToolCall) -> bool:
        return call.name == "count"

    def start(self, call: ToolCall, place: Place) -> StartedCall:
        self.calls.append(call.id)
        return StartedCall(self._count(len(self.calls)))

    def end(self, calls: list[ToolCall], text: str) -> None:
        self.ended, self.text = calls, text

    async def _count(self, number: int) -> ToolOutcome:
        return ToolOutcome(parts=(Text(text=str(number)),), is_refused=number > 2)


def call(name: str, call_id: str) -> ToolCall:
    return ToolCall(id=call_id, name=name, raw="{}", args={})


def run(player: Player, tools: Counter) -> tuple[FoldedAnswer, EventReply]:
    async def read() -> tuple[FoldedAnswer, EventReply]:
        reply = await ToolRunningBackend(player, (tools,)).open(REQUEST, is_verbatim=False)
        return fold([event async for events in reply.events for event in events]), reply

    return asyncio.run(read())


def test_the_client_sees_one_answer_without_the_gateways_calls() -> None:
    player, tools = Player([Text(text="a"), call("count", "1")], [Text(text="b"), call("own", "2")]), Counter()
    answer, reply = run(player, tools)
    assert answer.parts_of(0) == (Text(text="a"), Text(text="b"), call("own", "2"))
    assert answer.finished.usage == Usage(input=20, output=4)
    assert [local.name for local in reply.local] == ["count"]
    assert (tools.ended, tools.text) == ([call("own", "2")], "ab")


def test_the_model_gets_its_call_and_the_result() -> None:
    player = Player([call("count", "1"), call("count", "1")], [Text(text="b")])
    run(player, Counter())
    sent = player.requests[1]
    assert [message.role for message in sent.messages] == ["user", "assistant", "tool", "tool"]
    assert sent.unseen == 3
    results = [part for message in sent.messages[2:] for part in message.parts]
    assert [result.parts[0].text for result in results] == ["1", "2"]  # type: ignore[union-attr]  # results with text
    assert len({result.call_id for result in results}) == 2  # type: ignore[union-attr]  # results


def test_a_call_of_the_client_ends_the_answer() -> None:
    player, tools = Player([call("count", "1"), call("own", "2")]), Counter()
    answer, _ = run(player, tools)
    assert answer.parts_of(0) == (call("own", "2"),)
    assert (len(player.requests), tools.calls) == (1, ["1"])


@pytest.mark.parametrize("reason", ["length", "refused"])
def test_a_round_that_was_cut_is_the_last(reason: Any) -> None:
    player = Player([call("count", "1")], reason=reason)
    answer, _ = run(player, Counter())
    assert answer.finished.choices[0].reason == reason
    assert len(player.requests) == 1


def test_refused_calls_end_the_answer() -> None:
    player = Player([call("count", "1")])
    run(player, Counter())
    assert len(player.requests) == 3


def test_an_error_of_a_later_round_ends_the_answer() -> None:
    class Failing(Player):
        async def _play(self, parts: list[Part]) -> AsyncIterator[list[Event]]:
            if len(self.requests) > 1:
                yield [Failed(error=UpstreamError("broken."))]
            async for events in super()._play(parts):
                yield events

    with pytest.raises(UpstreamError, match="broken"):
        run(Failing([call("count", "1")]), Counter())


def test_a_client_that_disconnects_stops_the_model() -> None:
    player = Player([Text(text="a"), call("count", "1")])

    async def leave() -> None:
        reply = await ToolRunningBackend(player, (Counter(),)).open(REQUEST, is_verbatim=False)
        await anext(reply.events)
        await reply.close()

    asyncio.run(leave())
    assert player.is_closed
