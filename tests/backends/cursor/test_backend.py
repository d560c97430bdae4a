from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable, Coroutine
from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace

from tests.backends.cursor.stage import (
    HASTY,
    LOOK,
    QUICK,
    TRANSPORTS,
    Stage,
    calls_of,
    failure,
    next_request,
    on_stage,
    replaced,
    request,
    text_in,
    text_of,
    thought_of,
    user,
)
from tests.backends.event_contract import check_events
from toolwire.backends.cursor.allowance import MAX_DECLINED, MAX_DECLINED_WITHOUT_TOOLS
from toolwire.backends.cursor.run import AgentRun
from toolwire.backends.cursor.simulator.script import (
    AskPerson,
    Checkpoint,
    Disconnect,
    EndTurn,
    MakeCall,
    MakeCalls,
    ModelScript,
    Native,
    Pause,
    Say,
    SetBlob,
    Think,
    TurnUsage,
    With,
    play,
)
from toolwire.backends.cursor.simulator.settings import Settings, SimulatorFaults
from toolwire.calls.written.request import to_text_request
from toolwire.errors import UpstreamError
from toolwire.events import Finished, FoldedAnswer, PartDelta, fold
from toolwire.types import Loss, Media, Message, Request, Sampling, Text, Tool, ToolCall, ToolChoice, ToolResult

pytestmark = pytest.mark.slow

ONE = play([Say("Looking. "), MakeCall("look", {"city": "Rome"})], [Say("Sunny.")])
PICTURE = Media(kind="image", mime="image/png", data="iVBORw0KGgo=")
ONCE = pytest.mark.parametrize("transport", ["run", pytest.param("sse", marks=pytest.mark.slow)])
BOTH = pytest.mark.parametrize("transport", TRANSPORTS)


def run_on_stage(work: Callable[[Stage], Coroutine[Any, Any, None]], model: ModelScript = ONE, **options: Any) -> None:
    async def main() -> None:
        async with on_stage(model, **options) as stage:
            async with asyncio.timeout(10):
                await work(stage)

    asyncio.run(main())


async def parked(stage: Stage, current: Request | None = None) -> tuple[Request, FoldedAnswer]:
    """A run that waits for results."""
    current = current or request("hi")
    answer = await stage.ask(current)
    assert calls_of(answer)
    assert len(stage.backend.parking) == 1
    return current, answer


def is_left(stage: Stage) -> bool:
    """The server has heard of it, by a word or by the end of the stream."""
    return all(run.state == "gone" or run.error.startswith("canceled") for run in stage.runs)


@BOTH
def test_the_results_of_a_call_go_to_the_run_that_made_it(transport: str) -> None:
    async def work(stage: Stage) -> None:
        current, answer = await parked(stage)
        reply = await stage.open(next_request(current, answer, "clear sky"))
        assert reply.how == transport
        await reply.close()
        [run] = stage.runs
        await stage.settled(lambda: run.calls[0].text == "clear sky")
        assert run.results == {run.calls[0].call_id: 1}
        assert stage.backend.parking.counts.taken == 1

    run_on_stage(work, transport=transport)


@ONCE
def test_twenty_steps_are_one_run(transport: str) -> None:
    steps = [MakeCall("look", {"city": f"city {number}"}) for number in range(20)]

    async def work(stage: Stage) -> None:
        current = request("hi")
        answer = await stage.ask(current)
        for number in range(20):
            assert calls_of(answer)[0].args == {"city": f"city {number}"}
            current = next_request(current, answer)
            answer = await stage.ask(current)
        assert text_of(answer) == "Done."
        [run] = stage.runs
        assert set(run.results.values()) == {1}
        await stage.settled(lambda: run.state == "ended")
        assert run.offences == []

    run_on_stage(work, play(*steps, Say("Done.")), transport=transport)


def other_text(current: Request, answer: FoldedAnswer) -> Request:
    return replaced(current, (*next_request(current, answer).messages, user("And be quick.")))


def other_id(current: Request, answer: FoldedAnswer) -> Request:
    following = next_request(current, answer)
    call = replace(calls_of(answer)[0], id="call_of_somebody_else")
    result = ToolResult(call_id=call.id, parts=(Text(text="seen"),))
    text_in = (Message(role="assistant", parts=(call,)), Message(role="tool", parts=(result,)))
    return replaced(following, (*current.messages, *text_in))


def other_arguments(current: Request, answer: FoldedAnswer) -> Request:
    following = next_request(current, answer)
    call = replace(calls_of(answer)[0], raw='{"city": "Paris"}', args={"city": "Paris"})
    return replaced(following, (*current.messages, Message(role="assistant", parts=(call,)), following.messages[-1]))


def edited(current: Request, answer: FoldedAnswer) -> Request:
    following = next_request(current, answer)
    return replaced(following, (user("ho"), *following.messages[1:]))


CHANGES: dict[str, Callable[[Request, FoldedAnswer], Request]] = {
    "the user's words behind the results": other_text,
    "another id": other_id,
    "other arguments": other_arguments,
    "an edited history": edited,
    "another owner": lambda current, answer: replace(next_request(current, answer), owner="somebody"),
    "another model": lambda current, answer: replace(next_request(current, answer), model="composer-2"),
    "other tools": lambda current, answer: replace(
        next_request(current, answer), tools=(replace(LOOK, description="x"),)
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_anything_but_exactly_the_results_is_a_fresh_run_with_the_whole_history(change: str) -> None:
    async def work(stage: Stage) -> None:
        current, answer = await parked(stage)
        assert text_of(await stage.ask(CHANGES[change](current, answer))) == "Sunny."
        first, second = stage.runs
        assert (first.calls[0].answers, second.calls) == (0, [])
        assert [message["role"] for message in second.messages][-2:] == ["assistant", "tool"]
        assert second.action == ("user_message_action" if "words" in change else second.action)
        assert second.offences == []
        waits = change in ("another id", "another owner")  # its results may still come; otherwise they went elsewhere
        assert len(stage.backend.parking) == waits

    run_on_stage(work)


@pytest.mark.parametrize("order", [1, -1])
def test_results_may_come_in_any_order(order: int) -> None:
    model = play(MakeCalls((MakeCall("look", {"city": "A"}), MakeCall("look", {"city": "B"}))), Say("Both."))

    async def work(stage: Stage) -> None:
        current, answer = await parked(stage)
        assert [call.args for call in calls_of(answer)] == [{"city": "A"}, {"city": "B"}]
        following = next_request(current, answer, "a", "b", order=order)
        assert text_of(await stage.ask(following)) == "Both."
        assert [(call.args["city"], call.text) for call in stage.runs[0].calls] == [("A", "a"), ("B", "b")]

    run_on_stage(work, model)


def test_of_two_that_bring_the_same_results_one_goes_on_and_the_other_starts_again() -> None:
    async def work(stage: Stage) -> None:
        current, answer = await parked(stage)
        following = next_request(current, answer)
        answers = await asyncio.gather(stage.ask(following), stage.ask(following))
        assert [text_of(one) for one in answers] == ["Sunny.", "Sunny."]
        assert [sum(run.results.values()) for run in stage.runs] == [1, 0]

    run_on_stage(work)


def test_half_of_the_results_is_a_fresh_run() -> None:
    model = play(MakeCalls((MakeCall("look", {"city": "A"}), MakeCall("look", {"city": "B"}))), Say("Both."))

    async def work(stage: Stage) -> None:
        current, answer = await parked(stage)
        following = next_request(current, answer)
        await stage.ask(replaced(following, following.messages[:-1]))
        assert len(stage.runs) == 2
        assert [call.answers for call in stage.runs[0].calls] == [0, 0]

    run_on_stage(work, model)


@ONCE
def test_a_call_that_comes_late_is_the_next_answers_and_never_lost(transport: str) -> None:
    late = (MakeCall("look", {"city": "A"}), MakeCall("look", {"city": "B"}))
    model = play(MakeCalls(late, late=0.1, is_late_announced=False), Say("Both."))

    async def work(stage: Stage) -> None:
        current, first = await parked(stage)
        assert [call.args for call in calls_of(first)] == [{"city": "A"}]
        await asyncio.sleep(0.15)
        current = next_request(current, first)
        second = await stage.ask(current)
        assert [call.args for call in calls_of(second)] == [{"city": "B"}]
        assert text_of(await stage.ask(next_request(current, second))) == "Both."
        assert set(stage.runs[0].results.values()) == {1}
        assert len(stage.runs) == 1

    run_on_stage(work, model, transport=transport)


def test_a_call_that_was_announced_is_waited_for() -> None:
    late = (MakeCall("look", {"city": "A"}), MakeCall("look", {"city": "B"}))

    async def work(stage: Stage) -> None:
        _, answer = await parked(stage)
        assert [call.args for call in calls_of(answer)] == [{"city": "A"}, {"city": "B"}]

    run_on_stage(work, play(MakeCalls(late, late=0.1), Say("Both.")))


def test_a_client_that_wants_one_call_at_a_time_gets_the_others_afterwards() -> None:
    model = play(MakeCalls(tuple(MakeCall("look", {"city": name}) for name in "ABC")), Say("All."))

    async def work(stage: Stage) -> None:
        current = request("hi", parallel_calls=False)
        answer = await stage.ask(current)
        for name in "ABC":
            assert [call.args for call in calls_of(answer)] == [{"city": name}]
            current = next_request(current, answer)
            answer = await stage.ask(current)
        assert text_of(answer) == "All."
        assert set(stage.runs[0].results.values()) == {1}
        assert len(stage.runs) == 1

    run_on_stage(work, model)


@BOTH
def test_a_client_that_disconnects_during_the_answer_frees_the_run(transport: str) -> None:
    async def work(stage: Stage) -> None:
        reply = await stage.open(request("hi"))
        await anext(reply.events)
        await reply.close()
        await stage.settled(lambda: stage.runs[0].state != "open")
        assert is_left(stage)

    run_on_stage(work, play([Say("word " * 50, pieces=50, pause=0.05)]), transport=transport)


def test_an_unread_answer_frees_the_run() -> None:
    async def work(stage: Stage) -> None:
        reply = await stage.open(request("hi"))
        await reply.close()
        await stage.settled(lambda: stage.runs[0].state != "open")

    run_on_stage(work, play([Say("word " * 50, pieces=50, pause=0.05)]))


@ONCE
@pytest.mark.parametrize("delay", [0.0, 0.01, 0.1])
def test_a_client_that_leaves_while_the_run_opens_frees_it(transport: str, delay: float) -> None:
    async def work(stage: Stage) -> None:
        opening = asyncio.create_task(stage.open(request("hi")))
        await asyncio.sleep(delay)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        await stage.settled(lambda: all(run.state != "open" for run in stage.runs))

    run_on_stage(work, play([Pause(30), Say("late")]), transport=transport)


@ONCE
def test_an_abandoned_run_is_canceled_after_its_time(transport: str) -> None:
    async def work(stage: Stage) -> None:
        stage.backend.parking._seconds = 0.05
        current, answer = await parked(stage)
        [turn] = [entry.run for entry in stage.backend.parking._all]
        held = weakref.ref(turn)
        del turn
        await stage.settled(lambda: stage.runs[0].state != "open")
        assert is_left(stage)
        await stage.settled(lambda: not stage.backend.parking.stopping)
        assert (len(stage.backend.parking), stage.backend.parking.counts.expired) == (0, 1)
        gc.collect()
        assert held() is None  # and with it its blobs
        assert text_of(await stage.ask(next_request(current, answer))) == "Sunny."
        assert len(stage.runs) == 2

    run_on_stage(work, transport=transport)


def test_nothing_of_a_run_is_left_when_it_is_over() -> None:
    async def work(stage: Stage) -> None:
        for _ in range(3):
            current, answer = await parked(stage)
            await stage.ask(next_request(current, answer))
        await stage.settled(lambda: all(run.state == "ended" for run in stage.runs))
        await stage.settled(lambda: not len(stage.backend.background))
        gc.collect()
        assert not [found for found in gc.get_objects() if isinstance(found, AgentRun)]

    run_on_stage(work)


@ONCE
@pytest.mark.parametrize("how", ["drop", pytest.param("close", marks=pytest.mark.slow), "silence", "error:internal"])
def test_a_run_that_dies_while_it_waits_is_forgotten_at_once(transport: str, how: str) -> None:
    async def work(stage: Stage) -> None:
        current, answer = await parked(stage)
        await stage.settled(lambda: len(stage.backend.parking) == 0)
        await stage.settled(lambda: not len(stage.backend.background))
        assert text_of(await stage.ask(next_request(current, answer))) == "Sunny."
        assert [sum(run.results.values()) for run in stage.runs] == [0, 0]

    limits = HASTY if how == "silence" else QUICK
    settings = Settings(heartbeat=0.1, parked_seconds=0.1)
    run_on_stage(
        work, transport=transport, faults=[SimulatorFaults(at={"parked": how})], limits=limits, settings=settings
    )


@ONCE
def test_close_leaves_none_of_fifty_parked_runs(transport: str) -> None:
    async def work(stage: Stage) -> None:
        await asyncio.gather(*(stage.ask(request(f"hi {number}")) for number in range(50)))
        assert len(stage.backend.parking) == 50
        await stage.backend.close()
        await stage.settled(lambda: is_left(stage))
        await stage.backend.close()

    limits = replace(QUICK, first=9.0, idle=9.0, silent=9.0)
    run_on_stage(work, transport=transport, limits=limits)


def test_without_parking_every_request_is_a_run() -> None:
    async def work(stage: Stage) -> None:
        current = request("hi")
        answer = await stage.ask(current)
        assert len(stage.backend.parking) == 0
        assert text_of(await stage.ask(next_request(current, answer, "clear"))) == "Sunny."
        first, second = stage.runs
        assert first.state != "open"
        assert second.messages[-1]["content"][0]["result"] is not None

    run_on_stage(work, park_seconds=0)


def test_the_prefix_of_a_history_is_the_same_to_the_byte() -> None:
    async def work(stage: Stage) -> None:
        current = request("hi")
        for _ in range(4):
            current = next_request(current, await stage.ask(current))
        await stage.ask(current)
        roots = [run.roots for run in stage.runs]
        for before, after in pairwise(roots):
            assert after[: len(before)] == before

    run_on_stage(work, play(*[MakeCall("look", {"city": "Rome"})] * 4, Say("Done.")), park_seconds=0)


@pytest.mark.parametrize("is_parked", [True, False])
def test_results_that_are_errors_and_pictures_arrive_as_such(is_parked: bool) -> None:
    async def work(stage: Stage) -> None:
        current, answer = request("hi"), await stage.ask(request("hi"))
        parts: tuple[Any, ...] = (Text(text="no such city"), PICTURE)
        result = ToolResult(call_id=calls_of(answer)[0].id, parts=parts, is_error=True)
        text_in = Message(role="assistant", parts=answer.parts_of(0))
        await stage.ask(replaced(current, (*current.messages, text_in, Message(role="tool", parts=(result,)))))
        if is_parked:
            [run] = stage.runs
            assert (run.calls[0].result, run.calls[0].text) == ("success", "no such city")
        else:
            assert "no such city" in str(stage.runs[1].messages)
            assert "image" in str(stage.runs[1].messages)
        assert all(run.offences == [] for run in stage.runs)

    run_on_stage(work, park_seconds=600 if is_parked else 0)


def test_a_picture_of_the_users_reaches_the_model() -> None:
    class Looking:
        def start(self, seen: Any) -> Any:
            yield Say(f"{seen.user_text} {[kind for kind, _ in seen.images]}")

    async def work(stage: Stage) -> None:
        assert text_of(await stage.ask(request(user("what is it?", PICTURE)))) == "what is it? ['image/png']"

    run_on_stage(work, Looking())  # type: ignore[arg-type] # any model will do


@pytest.mark.parametrize("is_tagged", [True, False])
def test_thinking_is_reasoning_and_not_text(is_tagged: bool) -> None:
    async def work(stage: Stage) -> None:
        answer = await stage.ask(request("hi"))
        assert (thought_of(answer), text_of(answer)) == ("Hm, well.", "Yes.")

    run_on_stage(work, play([Think("Hm, well."), Say("Yes.")]), faults=SimulatorFaults(think_tags=is_tagged))


@pytest.mark.parametrize("pieces", [1, 7])
def test_a_stop_sequence_ends_the_answer_and_the_run(pieces: int) -> None:
    model = play([Say("one two STOP three", pieces=pieces, pause=0.01), Pause(30)])

    async def work(stage: Stage) -> None:
        answer = await stage.ask(request("hi", sampling=Sampling(stop=("STOP",))))
        assert text_of(answer) == "one two "
        assert answer.finished.choices[0].stop_sequence == "STOP"
        await stage.settled(lambda: is_left(stage))

    run_on_stage(work, model)


def test_tokens_of_all_answers_of_a_run_add_up_to_those_of_the_turn() -> None:
    model = play(
        [Say("12345678", pieces=1), Checkpoint(used_tokens=900), MakeCall("look", {"city": "Rome"})],
        [Say("Sunny."), EndTurn(TurnUsage(input=1500, output=40, cache_read=800, reasoning=5))],
    )

    async def work(stage: Stage) -> None:
        current, first = await parked(stage)
        second = await stage.ask(next_request(current, first))
        one, two = first.finished.usage, second.finished.usage
        assert one is not None
        assert two is not None
        assert (one.input, one.output) == (900, 3)
        assert (two.input, one.output + two.output, two.cached, two.reasoning) == (1500, 40, 800, 5)

    run_on_stage(work, model)


def test_the_models_are_asked_for_once() -> None:
    async def work(stage: Stage) -> None:
        lists = await asyncio.gather(*(stage.backend.models() for _ in range(5)))
        assert all([model.id for model in found] == ["default", "m-1"] for found in lists)
        current = [path for _, path, _ in stage.simulator.journal.requests if "Models" in path]
        assert len(current) == 1

    run_on_stage(work, settings=Settings(models=("default", "m-1"), is_enveloped=True))


def test_models_that_the_owner_names_are_not_asked_for() -> None:
    async def work(stage: Stage) -> None:
        assert [model.id for model in await stage.backend.models()] == ["mine"]
        assert stage.simulator.journal.requests == []

    run_on_stage(work, models=("mine",))


def test_H167_a_conversation_that_runs_in_circles_is_stopped() -> None:
    async def work(stage: Stage) -> None:
        current = request("hi")
        for _ in range(4):
            current = next_request(current, await stage.ask(current))
        with pytest.raises(UpstreamError) as caught:
            await stage.ask(current)
        assert (caught.value.status, caught.value.code) == (429, "budget_exceeded")
        assert 1 <= int(caught.value.headers["retry-after"]) <= 60
        assert len(stage.runs) == 1

    run_on_stage(work, play(*[MakeCall("look", {"city": "Rome"})] * 9), max_requests_per_minute=3)


def test_a_conversation_that_costs_too_much_is_stopped() -> None:
    model = play(*[[Checkpoint(used_tokens=5000), MakeCall("look", {"city": "Rome"})]] * 9)

    async def work(stage: Stage) -> None:
        current = request("hi")
        for _ in range(3):
            current = next_request(current, await stage.ask(current))
        with pytest.raises(UpstreamError) as caught:
            await stage.ask(current)
        assert caught.value.code == "budget_exceeded"
        assert "max_tokens_per_minute" in caught.value.message

    run_on_stage(work, model, max_tokens_per_minute=10_000)


def test_first_requests_are_never_too_many() -> None:
    async def work(stage: Stage) -> None:
        for _ in range(6):
            assert text_of(await stage.ask(request("hi"))) == "Hello."

    run_on_stage(work, play(Say("Hello.")), max_requests_per_minute=3)


@pytest.mark.parametrize("repeated", ["tell", "answer"])
def test_a_repeated_call_is_counted_and_only_answered_from_memory_if_the_owner_says_so(repeated: str) -> None:
    model = play(MakeCall("look", {"city": "Rome"}), MakeCall("look", {"city": "Rome"}), Say("Enough."))

    async def work(stage: Stage) -> None:
        current, first = await parked(stage)
        current = next_request(current, first, "clear sky")
        events = await stage.events(current)
        losses = [event.note.feature for event in events if isinstance(getattr(event, "note", None), Loss)]
        assert losses == ["repeated_call"]
        if repeated == "answer":
            assert text_in(events) == "Enough."
            assert [call.text for call in stage.runs[0].calls] == ["clear sky"] * 2
        else:
            assert text_of(await stage.ask(next_request(current, fold(events)))) == "Enough."
        assert set(stage.runs[0].results.values()) == {1}

    run_on_stage(work, model, repeated_calls=repeated)


def test_local_tools_serve_clients_without_tools_only(tmp_path: Any) -> None:
    (tmp_path / "note.txt").write_text("the word is plum")

    class Reading:
        def start(self, seen: Any) -> Any:
            [result] = yield Native("read", {"path": str(tmp_path / "note.txt")})
            yield Say(f"{result.kind}: {result.text}")

    async def work(stage: Stage) -> None:
        assert text_of(await stage.ask(request("hi", tools=()))) == "success: the word is plum"
        assert "read_tool_call" in stage.runs[0].headers["x-cursor-agent-allowed-tools"]
        refused = text_of(await stage.ask(request("hi")))
        assert "plum" not in refused
        assert "look" in refused
        assert stage.runs[1].headers["x-cursor-agent-allowed-tools"] == "mcp_tool_call"

    run_on_stage(work, Reading(), workspace=str(tmp_path), local_tools=("read",))  # type: ignore[arg-type] # any model will do


@pytest.mark.parametrize("how", ["none", "words", "before"])
def test_nothing_runs_here_for_a_client_whose_tools_the_model_is_not_offered(tmp_path: Any, how: str) -> None:
    (tmp_path / "note.txt").write_text("the word is plum")
    before = Message(role="assistant", parts=(ToolCall(id="call_1", name="look", raw="{}", args={}),))
    seen = Message(role="tool", parts=(ToolResult(call_id="call_1", parts=(Text(text="seen"),)),))
    current = {
        "none": request("hi", tool_choice=ToolChoice(mode="none")),
        "words": to_text_request(request("hi")).request,
        "before": request("hi", before, seen, user("and?"), tools=()),
    }[how]

    async def work(stage: Stage) -> None:
        assert text_of(await stage.ask(current)) == "Done."
        [read] = [exec for exec in stage.runs[0].execs if exec.kind == "read"]
        assert read.result == "rejected"
        assert stage.runs[0].headers["x-cursor-agent-allowed-tools"] == "mcp_tool_call"
        assert str(tmp_path) not in str(stage.runs[0].request)

    model = play([Native("read", {"path": str(tmp_path / "note.txt")}), Say("Done.")])
    run_on_stage(work, model, workspace=str(tmp_path), local_tools=("read",), request_context="asked")


class Circling:
    """The same step over and over, with a context of so many tokens."""

    def __init__(self, step: Any, tokens: int = 0, text: str = "", pause: float = 0.0) -> None:
        self._step = step
        self._tokens = tokens
        self._text = text
        self._pause = pause

    def start(self, seen: Any) -> Any:
        if self._text:
            yield Say(self._text)
        while True:
            yield self._step
            yield Checkpoint(used_tokens=self._tokens)
            yield Pause(self._pause)


READ = Native("read", {"path": "note.txt"})
ROUND = 0.26  # seconds: what is wanted sooner after another counts as one round with it
CIRCLES = pytest.mark.parametrize(
    ("step", "config"),
    [
        (READ, {"max_tokens_per_minute": 1000, "local_tools": ("read",)}),
        (READ, {"max_tokens_per_minute": 1000}),
        (READ, {"max_requests_per_minute": 2}),
        (AskPerson(), {"max_requests_per_minute": 2}),
    ],
)


@CIRCLES
@ONCE
@pytest.mark.parametrize("is_heard", [False, True])
def test_a_run_that_goes_in_circles_within_one_answer_is_stopped(
    tmp_path: Any, step: Any, config: dict[str, Any], transport: str, is_heard: bool
) -> None:
    current = request("hi", tools=() if "local_tools" in config else (LOOK,))

    async def work(stage: Stage) -> None:
        if is_heard:
            events = await stage.events(current)
            check_events(events)
            assert text_in(events) == "Let me see."
            error = failure(events).error
        else:
            with pytest.raises(UpstreamError) as caught:
                await stage.ask(current)
            error = caught.value
        assert (error.status, error.code) == (429, "budget_exceeded")
        assert len(stage.runs) == 1
        await stage.settled(lambda: stage.runs[0].state != "open")
        assert (
            stage.runs[0].received["conversation_action"] == 1
        )  # the service is told to stop, which costs nobody anything

    model: Any = Circling(step, tokens=900, text="Let me see." if is_heard else "", pause=ROUND)
    run_on_stage(work, model, workspace=str(tmp_path), transport=transport, **config)


@ONCE
@pytest.mark.parametrize("text", ["", "Let me see."])
@pytest.mark.parametrize("tools", [(), (LOOK,)])
def test_a_model_that_keeps_calling_ends_with_the_text_there_is(
    transport: str, text: str, tools: tuple[Tool, ...]
) -> None:
    async def work(stage: Stage) -> None:
        events = await stage.events(request("hi", tools=tools))
        check_events(events)
        assert text_in(events) == (text or '[call of fly: {"city":"Rome"}]')
        [choice] = fold(events).finished.choices
        assert (choice.reason, choice.raw_reason) == ("length", "max_iterations")
        assert "cursor.runaway" in [
            event.note.feature for event in events if isinstance(getattr(event, "note", None), Loss)
        ]
        assert len(stage.runs[0].calls) <= (MAX_DECLINED if tools else MAX_DECLINED_WITHOUT_TOOLS) + 1
        assert len(stage.runs) == 1
        await stage.settled(lambda: stage.runs[0].state != "open")

    free = {"max_requests_per_minute": 0, "max_tokens_per_minute": 0}
    model: Any = Circling(MakeCall("fly", {"city": "Rome"}), text=text)
    run_on_stage(work, model, transport=transport, **free)


def test_a_model_that_only_asks_questions_is_stopped() -> None:
    async def work(stage: Stage) -> None:
        with pytest.raises(UpstreamError) as caught:
            await stage.ask(request("hi"))
        assert (caught.value.status, caught.value.code) == (429, "budget_exceeded")

    model: Any = Circling(AskPerson())
    run_on_stage(work, model, max_requests_per_minute=0, max_tokens_per_minute=0)


def test_a_repeated_call_that_is_answered_from_memory_for_ever_is_stopped_and_not_started_again() -> None:
    async def work(stage: Stage) -> None:
        current, first = await parked(stage)
        with pytest.raises(UpstreamError) as caught:
            await stage.ask(next_request(current, first))
        assert (caught.value.status, caught.value.code) == (429, "budget_exceeded")
        assert len(stage.runs) == 1

    model = Circling(MakeCall("look", {"city": "Rome"}), pause=ROUND)
    run_on_stage(work, model, repeated_calls="answer", max_requests_per_minute=3)  # type: ignore[arg-type] # any model will do


def test_a_call_of_a_tool_that_is_not_offered_now_is_refused_and_the_run_goes_on() -> None:
    async def work(stage: Stage) -> None:
        grab = replace(LOOK, name="grab")
        for choice in (ToolChoice(mode="none"), ToolChoice(mode="named", names=("grab",))):
            answer = await stage.ask(request("hi", tools=(LOOK, grab), tool_choice=choice))
            assert calls_of(answer) == []
            assert text_of(answer) == "Then in words."
            assert [call.result for call in stage.runs[-1].calls] == ["tool_not_found"]

    run_on_stage(work, play([MakeCall("look", {"city": "Rome"})], [Say("Then in words.")]))


@pytest.mark.parametrize("seconds", [0, 600])
def test_text_that_comes_only_as_a_blob_is_sent_with_the_call_that_followed_it(seconds: int) -> None:
    async def work(stage: Stage) -> None:
        current = request("hi")
        first = await stage.ask(current)
        assert [type(part) for part in first.parts_of(0)] == [Text, ToolCall]
        assert text_of(first) == "Reading it."
        assert text_of(await stage.ask(next_request(current, first))) == "It is sunny."

    blobs = With(SimulatorFaults(text_as_blob=True))
    call = MakeCall("look", {"city": "Rome"})
    run_on_stage(
        work, play([blobs, Say("Reading it."), SetBlob(), call], [blobs, Say("It is sunny.")]), park_seconds=seconds
    )


def test_the_input_of_an_uncounted_answer_is_estimated_and_said_to_be() -> None:
    async def work(stage: Stage) -> None:
        events = await stage.events(request("x" * 400))
        usage = fold(events).finished.usage
        assert usage is not None
        assert usage.input == 100
        assert usage.output > 0
        notes = [event.note.feature for event in events if isinstance(getattr(event, "note", None), Loss)]
        assert notes == ["usage.input"]

    run_on_stage(work)


def test_a_local_tool_is_not_run_again_when_the_connection_breaks(tmp_path: Any) -> None:
    class Writing:
        def start(self, seen: Any) -> Any:
            yield Native("write", {"path": str(tmp_path / "out.txt"), "file_text": "once"})
            yield Disconnect()

    async def work(stage: Stage) -> None:
        with pytest.raises(UpstreamError) as caught:
            await stage.ask(request("hi", tools=()))
        assert (caught.value.code, caught.value.retryable) == ("upstream_cut", False)
        assert len(stage.runs) == 1
        assert (tmp_path / "out.txt").read_text() == "once"

    run_on_stage(work, Writing(), workspace=str(tmp_path), local_tools=("write",))  # type: ignore[arg-type] # any model will do


@pytest.mark.slow
@BOTH
def test_a_slow_reader_stops_the_server_and_loses_nothing(transport: str) -> None:
    size = 4_000_000
    model = play([*[Say("x" * 20_000, pieces=1)] * (size // 20_000)])

    async def work(stage: Stage) -> None:
        reply = await stage.open(request("hi"))
        iterator = aiter(reply.events)
        first = await anext(iterator)
        await stage.settled(lambda: len(stage.runs[0].text) > 1_000_000)
        assert stage.runs[0].state == "open"
        events = [*first, *[event async for batch in iterator for event in batch]]
        assert sum(len(event.text) for event in events if isinstance(event, PartDelta)) == size
        assert isinstance(events[-1], Finished)
        await reply.close()

    run_on_stage(work, model, transport=transport)
