from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace

from tests.backends.cursor.stage import (
    QUICK,
    Stage,
    calls_of,
    failure,
    next_request,
    on_stage,
    request,
    text_in,
    text_of,
    user,
)
from tests.backends.cursor.wire import server_messages
from tests.backends.cursor.wire.client_tools import fits
from toolwire.backends.cursor.run import AgentRun, Repeats, RunLimits
from toolwire.backends.cursor.simulator.script import (
    Disconnect,
    MakeCall,
    MakeCalls,
    ModelScript,
    Pause,
    Raw,
    Say,
    Stall,
    Think,
    play,
)
from toolwire.backends.cursor.simulator.settings import Settings, SimulatorFaults
from toolwire.backends.cursor.wire import agent
from toolwire.backends.cursor.wire.decoder import RunDecoder
from toolwire.backends.cursor.wire.exec_routing import RunContext
from toolwire.backends.cursor.wire.request import RunSetup, opening
from toolwire.errors import InternalError, UpstreamError
from toolwire.events import Event, PartDelta
from toolwire.types import Message, Text, ToolCall, ToolResult
from toolwire.wire.connect import ConnectEnd, ConnectFrame

pytestmark = pytest.mark.slow

CALLING = play([Say("Looking. "), MakeCall("look", {"city": "Rome"})], [Say("Sunny.")])


def run_on_stage(
    work: Callable[[Stage], Coroutine[Any, Any, None]], model: ModelScript = CALLING, **options: Any
) -> None:
    async def main() -> None:
        async with on_stage(model, **options) as stage:
            async with asyncio.timeout(10):
                await work(stage)

    asyncio.run(main())


@pytest.mark.parametrize("transport", ["run", pytest.param("sse", marks=pytest.mark.slow)])
def test_a_parked_run_is_kept_alive_by_heartbeats_in_time(transport: str) -> None:
    async def work(stage: Stage) -> None:
        current = request("hi")
        answer = await stage.ask(current)
        await asyncio.sleep(0.45)
        [run] = stage.runs
        assert len(run.heartbeats) >= 3
        assert max(after - before for before, after in pairwise(run.heartbeats)) < 0.2
        beats = run.calls[0].heartbeats
        assert len(beats) >= 5
        assert max(after - before for before, after in pairwise(beats)) < 0.15
        assert text_of(await stage.ask(next_request(current, answer))) == "Sunny."
        assert len(stage.runs) == 1
        assert run.offences == []

    run_on_stage(work, transport=transport)


def test_a_call_that_was_answered_gets_no_more_heartbeats() -> None:
    async def work(stage: Stage) -> None:
        current = request("hi")
        answer = await stage.ask(current)
        await stage.ask(next_request(current, answer))
        [call] = stage.runs[0].calls
        assert all(beat <= (call.answered_at or 0.0) + 0.01 for beat in call.heartbeats)

    run_on_stage(work, play(MakeCall("look", {"city": "Rome"}), [Pause(0.2), Say("Sunny.")]))


def test_the_end_of_a_run_is_read_before_it_is_left() -> None:
    async def work(stage: Stage) -> None:
        assert text_of(await stage.ask(request("hi"))) == "Hello."
        await stage.settled(lambda: not len(stage.backend.background))
        assert stage.runs[0].state == "ended"

    run_on_stage(work, play(Say("Hello.")), faults=SimulatorFaults(slow=0.01))


def test_heartbeats_alone_are_not_progress_but_thinking_is() -> None:
    async def work(stage: Stage) -> None:
        events = await stage.events(request("hi"))
        assert failure(events).error.code == "upstream_timeout"
        assert "sent no output" in failure(events).error.message

    run_on_stage(work, play([Think("well, " * 40, pieces=2), Stall()]), limits=replace(QUICK, idle=0.2))
    slow = play([Say("abcdef", pieces=6, pause=0.06)])

    async def patient(stage: Stage) -> None:
        assert text_of(await stage.ask(request("hi"))) == "abcdef"

    run_on_stage(patient, slow, limits=replace(QUICK, first=0.2, idle=0.2))


def test_a_broken_connection_after_calls_leaves_the_calls_whole() -> None:
    async def work(stage: Stage) -> None:
        current = request("hi")
        answer = await stage.ask(current)
        assert len(calls_of(answer)) == 1
        assert len(stage.backend.parking) == 0
        assert text_of(await stage.ask(next_request(current, answer))) == "Sunny."
        assert [sum(run.results.values()) for run in stage.runs] == [0, 0]

    limits = replace(QUICK, quiet=0.3, silent=5.0)
    faults = [SimulatorFaults(at={"parked": "drop"})]
    run_on_stage(work, faults=faults, limits=limits, settings=Settings(heartbeat=0.1, parked_seconds=0.01))


def test_what_comes_after_the_turn_has_ended_is_not_an_error() -> None:
    async def work(stage: Stage) -> None:
        assert text_of(await stage.ask(request("hi"))) == "Hello."

    run_on_stage(work, play(Say("Hello.")), faults=SimulatorFaults(at={"end": "error:internal"}))


def test_many_calls_together_are_one_answer() -> None:
    calls = tuple(MakeCall("look", {"city": str(number)}) for number in range(40))

    async def work(stage: Stage) -> None:
        current = request("hi")
        answer = await stage.ask(current)
        assert [(call.args or {})["city"] for call in calls_of(answer)] == [str(number) for number in range(40)]
        assert len({call.id for call in calls_of(answer)}) == 40
        assert text_of(await stage.ask(next_request(current, answer))) == "All."
        assert set(stage.runs[0].results.values()) == {1}

    run_on_stage(work, play(MakeCalls(calls), Say("All.")))


def test_a_message_of_junk_fails_the_answer_and_keeps_what_was_said() -> None:
    async def work(stage: Stage) -> None:
        events = await stage.events(request("hi"))
        assert text_in(events) == "Some words. "
        assert failure(events).error.code == "upstream_garbage"

    run_on_stage(work, play([Say("Some words. "), Raw("ff" * 11), Say("never")]))


@pytest.mark.slow
def test_a_huge_answer_takes_time_in_proportion_to_its_size() -> None:
    sizes = (1_000_000, 4_000_000)
    times: list[float] = []

    async def work(stage: Stage) -> None:
        began = asyncio.get_running_loop().time()
        answer = await stage.ask(request("hi"))
        times.append(asyncio.get_running_loop().time() - began)
        assert len(text_of(answer)) in sizes

    limits = replace(QUICK, first=10.0, idle=10.0, silent=10.0)
    for size in sizes:
        run_on_stage(work, play([Say("x" * size, pieces=size // 2000, pause=0.00001)]), limits=limits)
    assert times[1] < times[0] * 12


class Wire:
    """A Channel that plays what a test tells it, for what no server does on purpose."""

    how = "run"

    def __init__(self) -> None:
        self.items: asyncio.Queue[list[ConnectFrame | ConnectEnd] | Exception] = asyncio.Queue()
        self.sent: list[bytes] = []
        self.taken = 0
        self.is_closed = False

    async def send(self, message: bytes) -> None:
        self.sent.append(message)

    async def receive(self) -> list[ConnectFrame | ConnectEnd]:
        item = await self.items.get()
        self.taken += 1
        if isinstance(item, Exception):
            raise item
        return item

    def abort(self) -> None:
        self.is_closed = True

    async def close(self) -> None:
        self.is_closed = True


class Clock:
    """Stands still until a test sets it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def turn_on(wire: Wire, limits: RunLimits = QUICK, clock: Callable[[], float] = time.monotonic) -> AgentRun:
    current = request("hi")
    opened = opening(current, RunSetup(conversation_id="c", run_id="r", message_id="m"))
    decoder = RunDecoder(RunContext(model="m", opening=opened, new_call_id=lambda: "call_1", fits=fits))
    turn = AgentRun(wire, decoder, limits, clock=clock)
    turn.listen(current)
    return turn


async def all_read(wire: Wire) -> None:
    """Returns when the run has read everything, or no longer reads because too much is unread."""
    before = -1
    while wire.taken != before:
        before = wire.taken
        for _ in range(20):
            await asyncio.sleep(0)


def text(words: str) -> ConnectFrame:
    update: Any = {"text_delta": {"text": words}}
    return ConnectFrame(agent.AgentServerMessage(interaction_update=update).SerializeToString())


def test_a_fault_of_our_own_in_the_reader_is_reported_at_once() -> None:
    async def main() -> None:
        wire = Wire()
        turn = turn_on(wire)
        wire.items.put_nowait(RuntimeError("a bug"))
        with pytest.raises(InternalError):
            await turn.first()
        await turn.stop()
        assert wire.is_closed

    asyncio.run(main())


def test_only_so_much_is_read_ahead_of_the_client_in_events_and_in_bytes() -> None:
    async def main() -> None:
        for words, most in (("x", 1100), ("x" * 10_000, 200)):
            wire = Wire()
            turn = turn_on(wire)
            for _ in range(2000):
                wire.items.put_nowait([text(words)])
            await all_read(wire)
            assert wire.taken <= most
            wire.items.put_nowait(UpstreamError("cut", code="upstream_cut", retryable=True))
            got = 0
            while not turn.is_over:
                got += sum(isinstance(event, PartDelta) for event in await turn.more())
            assert got == 2000
            await turn.stop()

    asyncio.run(main())


def test_a_pause_of_the_client_is_not_the_servers_silence() -> None:
    async def main() -> None:
        wire, clock = Wire(), Clock()
        turn = turn_on(wire, clock=clock)
        for _ in range(1200):
            wire.items.put_nowait([text("x")])
        await turn.first()
        for _ in range(1200):
            wire.items.put_nowait([text("x")])
        await all_read(wire)
        assert wire.taken < 2400
        clock.now += 10 * QUICK.silent
        await turn.more()
        wire.items.put_nowait([text("the end")])
        events = []
        while not events or not isinstance(events[-1], PartDelta) or events[-1].text != "the end":
            assert not turn.is_over
            events = await turn.more()
        await turn.stop()

    asyncio.run(main())


BLOB = b'{"role": "assistant", "content": [{"type": "text", "text": "It is sunny."}]}'
PATIENT = replace(QUICK, first=600.0, idle=600.0, silent=60.0, heartbeats=10, stall=15.0)


async def continued(
    wire: Wire, clock: Clock, limits: RunLimits = PATIENT
) -> tuple[AgentRun, asyncio.Task[list[Event]]]:
    """A run that got its result at 0 s, stored text as a blob at 1 s and sends a heartbeat every 5 s; and the client's read."""
    turn = turn_on(wire, limits, clock)
    wire.items.put_nowait([ConnectFrame(server_messages.call(1, name="look", city="Rome"))])
    await turn.first()
    clock.now += limits.quiet
    await turn.more()
    assert turn.is_waiting
    await turn.resume(request("hi"), server_messages.results("call1"))
    reading = asyncio.create_task(turn.first())
    clock.now += 1.0
    wire.items.put_nowait([ConnectFrame(server_messages.set_blob(1, b"blob", BLOB))])
    await all_read(wire)
    return turn, reading


async def beat(wire: Wire, clock: Clock, times: int, *, before: bytes = b"") -> None:
    for _ in range(times):
        clock.now += 5.0
        wire.items.put_nowait([ConnectFrame(data) for data in (before, server_messages.heartbeat()) if data])
        await all_read(wire)


def test_a_continued_run_that_stored_its_text_stalls_by_time() -> None:
    async def main() -> None:
        wire, clock = Wire(), Clock()
        turn, reading = await continued(wire, clock)
        await beat(wire, clock, 2)
        assert not reading.done()
        await beat(wire, clock, 1)
        assert "text It is sunny." in server_messages.lines_of(await reading)
        assert turn.is_over
        await turn.stop()

    asyncio.run(main())


def test_progress_restarts_the_stall_time() -> None:
    async def main() -> None:
        wire, clock = Wire(), Clock()
        turn, reading = await continued(wire, clock)
        await beat(wire, clock, 8, before=server_messages.tokens(1))
        assert not reading.done()
        await beat(wire, clock, 3)
        assert "text It is sunny." in server_messages.lines_of(await reading)
        await turn.stop()

    asyncio.run(main())


@pytest.mark.parametrize("stall", [0.0, 15.0])
def test_a_run_stalls_by_time_only_with_a_limit_and_after_a_heartbeat(stall: float) -> None:
    async def main() -> None:
        wire, clock = Wire(), Clock()
        turn, reading = await continued(wire, clock, replace(PATIENT, stall=stall))
        clock.now += 30.0  # without a heartbeat the connection may be slow
        wire.items.put_nowait([ConnectFrame(b"")])
        await all_read(wire)
        assert not reading.done()
        await beat(wire, clock, 1)
        assert reading.done() is bool(stall)
        reading.cancel()
        await turn.stop()

    asyncio.run(main())


def test_stored_text_that_was_sent_before_is_no_stall() -> None:
    async def main() -> None:
        wire, clock = Wire(), Clock()
        turn, reading = await continued(wire, clock, replace(PATIENT, heartbeats=0))
        wire.items.put_nowait([ConnectFrame(server_messages.text("It is sunny."))])
        await all_read(wire)
        await reading
        reading = asyncio.create_task(turn.more())
        await beat(wire, clock, 4)
        wire.items.put_nowait([ConnectFrame(server_messages.turn_ended())])
        await all_read(wire)
        await reading
        assert turn.is_over
        await turn.stop()

    asyncio.run(main())


def test_a_connection_that_broke_after_a_word_is_not_retryable() -> None:
    async def main() -> None:
        for words, is_retryable in (("", True), ("word", False)):
            wire = Wire()
            turn = turn_on(wire)
            wire.items.put_nowait([text(words)])
            wire.items.put_nowait(UpstreamError("cut", code="upstream_cut", retryable=True))
            events = []
            try:
                while not turn.is_over:
                    events += await turn.more()
            finally:
                await turn.stop()
            error = failure(events).error
            assert isinstance(error, UpstreamError)
            assert error.retryable is is_retryable

    asyncio.run(main())


def test_one_error_for_many_runs_is_judged_by_what_each_has_seen() -> None:
    async def main() -> None:
        error = UpstreamError("the connection is gone", code="upstream_cut", retryable=True)
        wires = [Wire(), Wire()]
        turns = [turn_on(wire) for wire in wires]
        wires[0].items.put_nowait([text("word")])
        await turns[0].first()
        for wire in wires:
            wire.items.put_nowait(error)
        last = failure(await turns[0].more()).error
        assert isinstance(last, UpstreamError)
        assert (last.code, last.retryable) == ("upstream_cut", False)
        with pytest.raises(UpstreamError) as caught:
            await turns[1].first()
        assert caught.value.retryable
        await asyncio.gather(*(turn.stop() for turn in turns))

    asyncio.run(main())


def test_leaving_twice_or_at_once_is_the_same() -> None:
    async def main() -> None:
        wire = Wire()
        turn = turn_on(wire)
        await asyncio.gather(turn.stop(), turn.stop())
        await turn.stop()
        assert wire.is_closed
        assert not turn.is_alive
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


def test_a_drop_right_after_the_first_word_is_reported_in_the_stream() -> None:
    async def work(stage: Stage) -> None:
        events = await stage.events(request("hi"))
        assert text_in(events) == "One."
        assert failure(events).error.code == "upstream_cut"
        assert len(stage.runs) == 1

    run_on_stage(work, play([Say("One.", pieces=1), Disconnect("reset")]))


def repeated(call_id: str, city: str = "Rome") -> ToolCall:
    return ToolCall(id=call_id, name="look", raw=f'{{"city": "{city}"}}', args={"city": city})


def result_of(call_id: str, text: str, *, is_error: bool = False) -> ToolResult:
    return ToolResult(call_id=call_id, parts=(Text(text=text),), is_error=is_error)


def answered_call(made: ToolCall, given: ToolResult) -> list[Message]:
    return [Message(role="assistant", parts=(made,)), Message(role="tool", parts=(given,))]


def test_a_call_with_the_same_arguments_has_the_latest_result() -> None:
    repeats = Repeats(
        [
            user("hi"),
            *answered_call(repeated("1"), result_of("1", "old")),
            *answered_call(repeated("2"), result_of("2", "new")),
        ]
    )
    assert repeats.result(repeated("3")) == result_of("2", "new")
    assert repeats.result(repeated("3", "Paris")) is None


def test_arguments_are_the_same_whatever_the_order_of_their_names() -> None:
    made = ToolCall(id="1", name="f", raw='{"a": 1, "b": 2}', args={"a": 1, "b": 2})
    again = ToolCall(id="2", name="f", raw='{"b":2,"a":1}', args={"b": 2, "a": 1})
    repeats = Repeats([user("hi"), *answered_call(made, result_of("1", "x"))])
    assert repeats.result(again) is not None


def test_what_failed_may_be_tried_again() -> None:
    repeats = Repeats([user("hi"), *answered_call(repeated("1"), result_of("1", "no", is_error=True))])
    assert repeats.result(repeated("2")) is None


def test_after_a_user_message_everything_may_be_new() -> None:
    before = [user("hi"), *answered_call(repeated("1"), result_of("1", "x"))]
    assert Repeats([*before, user("look again")]).result(repeated("2")) is None
    assert Repeats(before).result(repeated("2")) is not None


def test_results_that_come_later_are_learned() -> None:
    repeats = Repeats()
    assert repeats.result(repeated("1")) is None
    repeats.learn(
        [repeated("1"), repeated("2", "Paris")], [result_of("2", "rain"), result_of("1", "sun"), result_of("9", "?")]
    )
    assert repeats.result(repeated("3")) == result_of("1", "sun")
    assert repeats.result(repeated("3", "Paris")) == result_of("2", "rain")


def test_results_in_messages_of_the_user_are_results() -> None:
    text_in = Message(role="assistant", parts=(repeated("1"),))
    repeats = Repeats([user("hi"), text_in, Message(role="user", parts=(result_of("1", "x"),))])
    assert repeats.result(repeated("2")) == result_of("1", "x")
