"""The tool loop: what it asks, what it runs, where it ends, and that its conversation is whole at every moment."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace

from tests.agent_harness import IN_PROCESS, Weather, asked, calls, folded, kinds_of, pairs, played, script
from tests.contract.harness import calls_play
from tests.server.harness import Upstream
from toolwire.agent.events import (
    ApprovalEvent,
    CompleteEvent,
    ErrorEvent,
    StatusEvent,
    TextEvent,
    ToolCallEvent,
    ToolErrorEvent,
    ToolResultEvent,
)
from toolwire.agent.host import Host
from toolwire.agent.loop import Hooks, Loop, Terms
from toolwire.agent.toolbox import Decision
from toolwire.backends.base import EventReply, Model
from toolwire.config.file import BackendConfig, Config, with_backends
from toolwire.config.secret import Secret
from toolwire.errors import RUNAWAY, ConfigError, UpstreamError
from toolwire.events import Choice, Event, Failed, Finished, PartDelta, PartEnded, PartStarted, Started
from toolwire.profiles import PLAIN
from toolwire.telemetry import Record
from toolwire.tools.functions import function_tool
from toolwire.tools.runner import Bounds
from toolwire.types import Message, Request, Text, ToolCall, ToolChoice, Usage


def ending(events: list[Any]) -> CompleteEvent:
    assert isinstance(events[-1], CompleteEvent)
    assert sum(isinstance(event, CompleteEvent) for event in events) == 1
    return events[-1]


def errors(events: list[Any]) -> list[tuple[str, str]]:
    return [(event.kind, event.message) for event in events if isinstance(event, ToolErrorEvent)]


def test_text_alone_is_one_request() -> None:
    events, loop = played(script({"text": "Hello there.", "chunk": 3}))
    assert kinds_of(events) == ["status:asking", "text", "complete"]
    assert (ending(events).text, ending(events).reason, loop.iterations) == ("Hello there.", "done", 1)
    assert [message.role for message in loop.messages] == ["user", "assistant"]


def test_two_texts_of_an_answer_stay_apart_as_they_come_and_at_the_end() -> None:
    parts = [{"text": "I looked."}, {"reasoning": "Hm."}, {"text": "It rains."}]
    events, _ = played(script({"parts": parts, "chunk": 4}))
    assert ending(events).text == "I looked.\n\nIt rains."
    assert "".join(event.text for event in events if isinstance(event, TextEvent)) == ending(events).text


def test_a_task_from_call_to_answer() -> None:
    weather = Weather()
    turn = calls(("weather", {"city": "Rome"}), reasoning="Where?", text="I will look.")
    events, loop = played(script(turn, {"text": "So: {{result:0}}"}), weather.tools)
    assert kinds_of(events) == [
        "status:asking",
        "reasoning",
        "text",
        "status:calling",
        "status:arguments",
        "tool_call",
        "tool_result",
        "status:asking",
        "text",
        "complete",
    ]
    assert ending(events).text == "So: Rome: rain for 1 days"
    assert len(pairs(loop.messages)) == 1


def test_parallel_calls_keep_their_ids_in_any_order() -> None:
    weather = Weather()
    cities = ["Slow", "Rome", "Slow", "Oslo", "Bern"]
    events, loop = played(
        script(calls(*(("weather", {"city": city}) for city in cities)), {"text": "ok"}), weather.tools
    )
    made = {event.id: event.arguments["city"] for event in events if isinstance(event, ToolCallEvent)}
    told = [(event.id, event.text) for event in events if isinstance(event, ToolResultEvent)]
    assert len(made) == len(told) == 5
    assert all(text.startswith(made[call_id] + ":") for call_id, text in told)
    assert [text.partition(":")[0] for _, text in told][:3] == ["Rome", "Oslo", "Bern"]
    assert [text.partition(":")[0] for _, text in pairs(loop.messages)] == cities
    assert ending(events).text == "ok"  # the script is strict and rejects a history that differs from its answers


def test_H048_ids_that_come_again_in_each_answer_stay_with_their_calls() -> None:
    weather = Weather()
    turns = [{"calls": [{"name": "weather", "arguments": {"city": city}, "id": "call_0"}]} for city in ("A", "B", "C")]
    events, loop = played(script(*turns, {"text": "{{result:0}}, {{result:1}}, {{result:2}}"}), weather.tools)
    assert ending(events).text == ", ".join(f"{city}: rain for 1 days" for city in "ABC")
    assert weather.asked == ["A", "B", "C"]
    assert len(loop.messages) == 8


def test_invalid_arguments_are_reported_and_the_model_corrects_itself() -> None:
    weather = Weather()
    turns = [calls(("weather", {"town": "Rome"})), calls(("weather", {"city": "Rome"})), {"text": "ok"}]
    events, loop = played(script(*turns), weather.tools)
    ((kind, message),) = errors(events)
    assert kind == "invalid"
    assert "city" in json.dumps(json.loads(message))
    [error] = [event for event in events if isinstance(event, ToolErrorEvent)]
    assert error.missing == ("city",)
    assert error.validation_errors == tuple(json.loads(message)["validation_errors"])
    assert {"path", "message"} == error.validation_errors[0].keys()
    assert error.received == {"town": "Rome"}
    assert weather.asked == ["Rome"]
    assert (ending(events).reason, loop.iterations) == ("done", 3)
    assert pairs(loop.messages)[0][1] == message


@pytest.mark.parametrize("call", [("weather", {"city": {"x": 1}}), ("weather", "{not json"), ("nothing", {})])
def test_calls_that_stay_invalid_end_with_text(call: tuple[str, Any]) -> None:
    weather = Weather()
    events, loop = played(
        script(calls(call), calls(call), calls(call), {"text": "I cannot."}, strict=False), weather.tools
    )
    assert [kind for kind, _ in errors(events)] == ["unknown" if call[0] == "nothing" else "invalid"] * 3
    assert weather.asked == []
    assert (ending(events).reason, ending(events).text, loop.iterations) == ("invalid", "I cannot.", 4)
    assert [event.detail for event in events if isinstance(event, StatusEvent) and event.status == "last"] == [
        "invalid"
    ]


def test_one_valid_call_among_invalid_ones_is_made_and_counts() -> None:
    weather = Weather()
    both = calls(("weather", {"city": "Rome"}), ("weather", {}), ("nothing", {}))
    events, loop = played(script(both, both, both, {"text": "ok"}, strict=False), weather.tools)
    assert [kind for kind, _ in errors(events)] == ["invalid", "unknown"] * 3
    assert weather.asked == ["Rome"] * 3
    assert ending(events).reason == "done"
    assert len(pairs(loop.messages)) == 9


def test_an_unknown_tool_is_reported_with_the_known_ones() -> None:
    events, _ = played(script(calls(("wether_report", {})), {"text": "ok"}, strict=False), Weather().tools)
    ((kind, message),) = errors(events)
    assert kind == "unknown"
    assert "weather" in message


def test_H090_the_last_request_has_no_tools_and_its_calls_are_words() -> None:
    weather = Weather()
    turns = [calls(("weather", {"city": f"C{number}"})) for number in range(9)]
    events, loop = played(script(*turns, strict=False), weather.tools, Terms(max_iterations=3))
    assert weather.asked == ["C0", "C1", "C2"]
    assert loop.iterations == 4
    assert ending(events).reason == "max_iterations"
    assert ending(events).text == '[call of weather: {"city":"C3"}]'
    asking = [event for event in events if isinstance(event, StatusEvent) and event.status in ("asking", "last")]
    assert [event.status for event in asking] == ["asking", "asking", "asking", "last", "asking"]
    assert len(pairs(loop.messages)) == 3


def test_the_record_of_the_last_answer_says_that_the_bound_is_reached() -> None:
    class Noted:
        def __init__(self) -> None:
            self.bounds: list[bool] = []

        def opened(self, record: Record) -> None: ...

        def closed(self, record: Record) -> None:
            self.bounds.append(record.has_reached_bound)

    async def main(turns: list[Any], most: int) -> list[bool]:
        host, noted = Host(IN_PROCESS), Noted()
        loop = Loop(
            host.runtime,
            asked(script(*turns, strict=False)),
            Weather().tools,
            Terms(max_iterations=most),
            hooks=Hooks(telemetry=noted),
        )
        async for _ in loop.events():
            pass
        await host.close()
        return noted.bounds

    many = [calls(("weather", {"city": f"C{number}"})) for number in range(9)]
    assert asyncio.run(main(many, 2)) == [False, False, True]
    assert asyncio.run(main([many[0], {"text": "ok"}], 2)) == [False, False]
    assert asyncio.run(main([many[0]] * 9, 20)) == [False] * 6  # the same again and again ends it, not the bound


class Circling:
    """A back end whose model keeps calling tools that are not offered, until the back end ends the answer."""

    name = "s"
    dialect = ""
    profile = PLAIN
    tool_kinds: frozenset[str] = frozenset()

    def __init__(self, text: str, last: str, error: UpstreamError, *, is_at_once: bool) -> None:
        self._text, self._last, self._error, self._is_at_once = text, last, error, is_at_once
        self._count = 0

    async def models(self) -> list[Model]:
        return []

    async def open(self, request: Request, *, is_verbatim: bool) -> EventReply:
        if not request.tools and self._is_at_once:
            raise self._error
        return EventReply(events=self._play(has_tools=bool(request.tools)))

    async def close(self) -> None: ...

    async def _play(self, *, has_tools: bool) -> AsyncIterator[list[Event]]:
        self._count += 1
        text = self._text if has_tools else self._last
        yield [Started(id="a", model="m")]
        if text:
            whole = Text(text=text)
            yield [
                PartStarted(index=0, part=Text(text="")),
                PartDelta(index=0, text=text),
                PartEnded(index=0, part=whole),
            ]
        if not has_tools:
            yield [Failed(error=self._error)]
            return
        call = ToolCall(id=f"call_{self._count}", name="weather", raw=f'{{"city":"C{self._count}"}}')
        yield [PartStarted(index=1, part=replace(call, raw="")), PartDelta(index=1, text=call.raw)]
        yield [PartEnded(index=1, part=call), Finished(choices=(Choice(reason="calls"),))]


def circled(text: str, last: str, error: UpstreamError, *, is_at_once: bool = False) -> tuple[list[Any], Loop]:
    async def main() -> tuple[list[Any], Loop]:
        host = Host(IN_PROCESS)
        host.runtime.backends["s"] = Circling(text, last, error, is_at_once=is_at_once)
        loop = Loop(host.runtime, asked("go"), Weather().tools, Terms(max_iterations=2))
        events = [event async for event in loop.events()]
        await host.close()
        return events, loop

    return asyncio.run(main())


@pytest.mark.parametrize("is_at_once", [True, False])
@pytest.mark.parametrize(
    ("text", "last", "best"),
    [
        ("I will look.", "So far, rain.", "So far, rain."),
        ("I will look.", "", "I will look."),
        ("", "", '[call of weather: {"city":"C2"}]'),
    ],
)
def test_a_model_that_keeps_calling_ends_with_its_best_text(text: str, last: str, best: str, is_at_once: bool) -> None:
    error = UpstreamError("it runs in circles.", status=429, code="budget_exceeded", details=RUNAWAY)
    events, loop = circled(text, last, error, is_at_once=is_at_once)
    assert not [event for event in events if isinstance(event, ErrorEvent)]
    assert loop.failure is None
    assert ending(events).reason == "max_iterations"
    assert ending(events).text == (best if not is_at_once or best != last else text)
    assert len(pairs(loop.messages)) == 2


def test_another_failure_of_the_last_request_is_one() -> None:
    events, loop = circled("I will look.", "", UpstreamError("gone.", code="upstream_cut"))
    assert (ending(events).reason, loop.failure is not None) == ("error", True)


def test_after_max_iterations_the_last_answer_is_text() -> None:
    weather = Weather()
    turns = [calls(("weather", {"city": f"C{number}"})) for number in range(2)]
    events, loop = played(script(*turns, {"text": "That is all."}), weather.tools, Terms(max_iterations=2))
    assert (ending(events).text, ending(events).reason, loop.iterations) == ("That is all.", "max_iterations", 3)


def test_the_last_request_offers_nothing() -> None:
    turns = [calls(("weather", {"city": f"C{number}"})) for number in range(3)]
    events, _ = played(script(*turns), Weather().tools, Terms(max_iterations=2))
    assert ending(events).text == "TOOL-NOT-OFFERED: weather; offered: none"


def test_H137_the_same_call_with_the_same_result_ends_the_loop() -> None:
    weather = Weather()
    events, loop = played(script(*[calls(("weather", {"city": "Rome"}))] * 9, strict=False), weather.tools)
    assert weather.asked == ["Rome"] * 5
    assert (ending(events).reason, loop.iterations) == ("loop", 6)


def test_H137_the_model_gets_a_note_before_it_is_stopped() -> None:
    turns = [calls(("weather", {"city": "Rome"}))] * 3
    events, _ = played(script(*turns, {"text": "{{result:1}} / {{result:2}}"}), Weather().tools)
    first, _, second = ending(events).text.partition(" / ")
    assert first == "Rome: rain for 1 days"
    assert second.startswith("Rome: rain for 1 days[Notice: the last 3 rounds")


def test_H138_a_call_whose_result_changes_may_be_repeated() -> None:
    count = iter(range(100))

    def poll() -> int:
        return next(count)

    events, _ = played(script(*[calls(("poll", {}))] * 8, {"text": "done"}), [poll])
    assert (ending(events).reason, ending(events).text) == ("done", "done")


def test_an_error_before_the_answer_ends_the_loop_and_is_kept() -> None:
    events, loop = played(script({"error": {"status": 529, "message": "Too many.", "code": "overloaded"}}))
    assert [type(event) for event in events] == [StatusEvent, ErrorEvent, CompleteEvent]
    assert (ending(events).reason, ending(events).text) == ("error", "")
    assert loop.failure is not None
    assert (loop.failure.status, loop.failure.code) == (529, "overloaded")
    assert [message.role for message in loop.messages] == ["user"]


def test_an_error_in_the_middle_keeps_the_text() -> None:
    turn = {"text": "Some words here", "chunk": 5, "error": {"after": 2}}
    events, loop = played(script(calls(("weather", {"city": "Rome"})), turn), Weather().tools)
    assert ending(events).reason == "error"
    assert loop.messages[-1] == Message(role="assistant", parts=(Text(text="Some words"),))
    assert len(pairs(loop.messages)) == 1


def test_an_error_in_the_last_request_is_an_error() -> None:
    turns = [calls(("weather", {"city": "Rome"})), {"error": {"status": 500}}]
    events, loop = played(script(*turns), Weather().tools, Terms(max_iterations=1))
    assert ending(events).reason == "error"
    assert loop.failure is not None


def test_a_stream_without_an_end_is_an_error() -> None:
    events, _ = played(script({"text": "Some words here", "cut": 1}))
    assert isinstance(events[-2], ErrorEvent)
    assert ending(events).reason == "error"


def test_an_error_does_not_contain_the_text_of_an_earlier_turn() -> None:
    before = Message(role="user", parts=(Text(text="hi"),)), Message(role="assistant", parts=(Text(text="Old."),))
    request = asked(script({"error": {"status": 500}}), *before)

    async def main() -> list[Any]:
        host = Host(IN_PROCESS)
        return [event async for event in Loop(host.runtime, request, [], Terms()).events()]

    assert ending(asyncio.run(main())).text == ""


@pytest.mark.parametrize("finish", ["length", "refused"])
def test_the_reason_of_an_answer_is_the_reason_of_the_end(finish: str) -> None:
    events, _ = played(script({"text": "So far", "finish": finish}))
    assert (ending(events).reason, ending(events).text) == (finish, "So far")


def test_the_text_of_a_refusal_is_the_result() -> None:
    events, _ = played(script({"refusal": "I will not."}))
    assert (ending(events).reason, ending(events).text) == ("refused", "I will not.")


def test_a_call_that_was_cut_is_not_made() -> None:
    weather = Weather()
    cut = calls(("weather", '{"city": "Ro'), finish="length")
    events, loop = played(script(cut, {"text": "ok"}, strict=False), weather.tools)
    assert weather.asked == []
    ((kind, message),) = errors(events)
    assert kind == "invalid"
    assert "ended in the middle" in message
    assert (ending(events).reason, loop.iterations) == ("done", 2)


def test_an_answer_of_nothing_ends_the_loop() -> None:
    events, loop = played(script(calls(("weather", {"city": "Rome"})), {}, strict=False), Weather().tools)
    assert (ending(events).reason, loop.iterations) == ("done", 2)


@pytest.mark.parametrize(
    ("terms", "rounds"),
    [
        (Terms(max_tokens=100), 4),
        (Terms(max_tokens=90), 3),
        (Terms(max_cost=0.001, prices=(10.0, 100.0)), 3),
        (Terms(max_cost=0.0, prices=(1.0, 1.0)), 1),
    ],
)
def test_budgets_end_the_loop_with_every_result(terms: Terms, rounds: int) -> None:
    turns = [calls(("weather", {"city": f"C{n}"}), usage={"input": 28, "output": 2}) for n in range(9)]
    events, loop = played(script(*turns), Weather().tools, terms)
    assert (ending(events).reason, loop.iterations) == ("budget", rounds)
    assert len(pairs(loop.messages)) == rounds
    assert ending(events).usage == Usage(input=28 * rounds, output=2 * rounds)


def test_usage_is_that_of_all_requests() -> None:
    usage = {"input": 10, "output": 3, "cached": 4, "cache_written": 2, "reasoning": 1}
    events, _ = played(
        script(calls(("weather", {"city": "A"}), usage=usage), {"text": "x", "usage": usage}), Weather().tools
    )
    assert ending(events).usage == Usage(input=20, output=6, cached=8, cache_written=4, reasoning=2)


def test_missing_usage_is_estimated_so_that_budgets_hold() -> None:
    upstream = Upstream()
    upstream.on("m", calls_play("chat", ("c1", "weather", ['{"city": "Rome"}'])))
    backend = BackendConfig(name="b", kind="openai-chat", base_url=f"{upstream.url}/v1", key=Secret("k"), models=("m",))

    async def main() -> list[Any]:
        host = Host(with_backends(Config(), (backend,)))
        request = asked("x" * 4000, model="b/m")
        loop = Loop(host.runtime, request, Weather().tools, Terms(max_tokens=2500))
        events = [event async for event in loop.events()]
        await host.close()
        return events

    try:
        end = ending(asyncio.run(main()))
    finally:
        upstream.close()
    assert (end.reason, end.iterations) == ("budget", 3)
    assert 3000 < end.usage.input < 3300


def test_an_exception_of_approve_ends_the_task_with_a_valid_conversation() -> None:
    def approve(event: ToolCallEvent, runnable: Any) -> bool:
        raise KeyError("nobody here")

    async def main() -> list[tuple[str, str]]:
        host = Host(IN_PROCESS)
        request = asked(script(calls(("weather", {"city": "Rome"}))))
        loop = Loop(host.runtime, request, Weather().tools, Terms(approve=approve))
        with pytest.raises(KeyError, match="nobody here"):
            async for _ in loop.events():
                pass
        return pairs(loop.messages)

    ((_, text),) = asyncio.run(main())
    assert text.startswith("Interrupted")


def test_numbers_reach_the_tool_and_the_conversation_exactly() -> None:
    got: list[float] = []

    def pay(amount: float) -> str:
        got.append(amount)
        return "paid"

    events, loop = played(script(calls(("pay", '{"amount": 0.10}')), {"text": "ok"}), [pay])
    assert got == [0.1]
    (event,) = [event for event in events if isinstance(event, ToolCallEvent)]
    assert event.arguments == {"amount": Decimal("0.10")}
    (call,) = [part for message in loop.messages for part in message.parts if isinstance(part, ToolCall)]
    assert call.raw == '{"amount": 0.10}'


def test_a_choice_of_tool_is_for_the_first_request_only() -> None:
    weather = Weather()
    choice = ToolChoice(mode="named", names=("weather",))
    events, _ = played(script(calls(("weather", {"city": "A"})), {"text": "ok"}), weather.tools, tool_choice=choice)
    assert ending(events).text == "ok"


def test_edited_arguments_are_in_the_conversation() -> None:
    weather = Weather()

    def approve(event: ToolCallEvent, runnable: Any) -> Decision:
        return Decision(arguments={"city": "Oslo"})

    prompt = script(calls(("weather", {"city": "Rome"})), {"text": "{{result:0}}"}, strict=False)
    events, loop = played(prompt, weather.tools, Terms(approve=approve))
    assert weather.asked == ["Oslo"]
    (said,) = [event for event in events if isinstance(event, ApprovalEvent)]
    assert (said.is_allowed, said.arguments) == (True, {"city": "Oslo"})
    (call,) = [part for message in loop.messages for part in message.parts if isinstance(part, ToolCall)]
    assert (call.raw, call.args) == ('{"city":"Oslo"}', {"city": "Oslo"})
    assert ending(events).text == "Oslo: rain for 1 days"


def recorded_prompt() -> str:
    first = calls(
        ("weather", {"city": "Slow"}), ("weather", {"city": "Rome"}), ("nothing", {}), reasoning="Hm.", text="Look: "
    )
    return script(first, calls(("weather", {})), {"text": "It rains.", "chunk": 4}, strict=False)


def test_interrupted_at_every_event_the_conversation_is_valid() -> None:
    """Closed after each number of events there can be: every call has one result, and tools have stopped."""
    whole, _ = played(recorded_prompt(), Weather().tools)

    async def stopped_after(count: int) -> tuple[Message, ...]:
        host = Host(IN_PROCESS)
        loop = Loop(host.runtime, asked(recorded_prompt()), Weather().tools, Terms())
        async with aclosing(loop.events()) as events:
            for _ in range(count):
                await anext(events)
        assert len(asyncio.all_tasks()) == 1
        return loop.messages

    seen: set[int] = set()
    for count in range(len(whole) + 1):
        messages = asyncio.run(stopped_after(count))
        told = pairs(messages)
        assert folded(whole[:count])[-1:] != [] or count == 0
        interrupted = [text for _, text in told if text.startswith("Interrupted")]
        done = [event for event in whole[:count] if isinstance(event, ToolResultEvent | ToolErrorEvent)]
        assert len(told) - len(interrupted) >= len(done)
        seen.add(len(interrupted))
        texts = "".join(event.text for event in whole[:count] if isinstance(event, TextEvent))
        said = "".join(part.text for m in messages[1:] for part in m.parts if isinstance(part, Text))
        assert said.replace(" ", "") == texts.replace(" ", "")
    assert seen == {0, 1, 2, 3}


def test_calls_that_did_not_start_are_reported_as_not_made() -> None:
    async def main() -> list[tuple[str, str]]:
        host = Host(IN_PROCESS)
        loop = Loop(host.runtime, asked(script(calls(("weather", {"city": "Rome"})))), Weather().tools, Terms())
        async with aclosing(loop.events()) as events:
            async for event in events:
                if isinstance(event, ToolCallEvent):
                    break
        return pairs(loop.messages)

    ((_, text),) = asyncio.run(main())
    assert text == "Interrupted: the user stopped the task before this call was made."


def test_a_cancelled_task_stops_its_tools() -> None:
    begun, ended = asyncio.Event(), []

    async def wait() -> str:
        begun.set()
        try:
            await asyncio.sleep(30)
        finally:
            ended.append("stopped")
        return "never"

    async def main() -> list[tuple[str, str]]:
        host = Host(IN_PROCESS)
        loop = Loop(host.runtime, asked(script(calls(("wait", {})))), [function_tool(wait)], Terms())

        async def read() -> None:
            async with aclosing(loop.events()) as events:
                async for _ in events:
                    pass

        task = asyncio.create_task(read())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended == ["stopped"]
        return pairs(loop.messages)

    ((_, text),) = asyncio.run(main())
    assert text.startswith("Interrupted: the tool was stopped while it ran.")


def test_timeouts_and_failures_do_not_end_the_task() -> None:
    async def hang() -> None:
        await asyncio.sleep(30)

    def fail() -> None:
        raise ValueError("no such thing")

    prompt = script(calls(("hang", {}), ("fail", {})), {"text": "ok"})
    tools = [hang, function_tool(fail, timeout=30)]  # a thread may start later than in 0.05 s
    events, loop = played(prompt, tools, Terms(bounds=Bounds(timeout=0.05)))
    assert sorted(errors(events)) == [
        ("failed", "ValueError: no such thing"),
        ("timeout", 'Timed out: "hang" did not end within 0.05 seconds, and was stopped.'),
    ]
    assert ending(events).text == "ok"
    assert [text.partition(":")[0] for _, text in pairs(loop.messages)] == ["Timed out", "ValueError"]


class Noted:
    """Telemetry that remembers."""

    def __init__(self) -> None:
        self.opened_ones = 0
        self.records: list[Record] = []

    def opened(self, record: Record) -> None:
        self.opened_ones += 1

    def closed(self, record: Record) -> None:
        self.records.append(record)


def watched(prompt: str, tools: list[Any], watching: Hooks) -> list[Any]:
    async def main() -> list[Any]:
        host = Host(IN_PROCESS)
        try:
            loop = Loop(host.runtime, asked(prompt), tools, Terms(), hooks=watching)
            return [event async for event in loop.events()]
        finally:
            await host.close()

    return asyncio.run(main())


def test_each_answer_is_counted_with_what_was_found_of_its_calls() -> None:
    noted, weather = Noted(), Weather()
    turns = (calls(("weather", {})), calls(("weather", {"city": "Rome"}), ("climate", {})), {"text": "ok"})
    watched(script(*turns, strict=False), weather.tools, Hooks(telemetry=noted))
    assert noted.opened_ones == len(noted.records) == 3
    tallies = [(one.tally.made, one.tally.invalid, one.tally.unknown) for one in noted.records]
    assert tallies == [(1, 1, 0), (2, 0, 1), (0, 0, 0)]
    assert all(one.backend == "s" and one.ended >= one.started > 0 and one.usage is not None for one in noted.records)


def test_tools_that_come_and_go_are_offered_as_they_are_now() -> None:
    weather = Weather()
    offers = [weather.tools, []]

    async def refresh() -> list[Any]:
        return offers.pop(0)

    turns = (calls(("weather", {"city": "Rome"})), calls(("weather", {"city": "Oslo"})), {"text": "ok"})
    events = watched(script(calls(("weather", {"city": "Bern"})), *turns[1:], strict=False), [], Hooks(refresh=refresh))
    assert [kind for kind, _ in errors(events)] == ["unknown"]
    assert weather.asked == ["Oslo"]


def test_a_failing_source_keeps_its_tools() -> None:
    weather = Weather()

    async def refresh() -> list[Any]:
        raise ConfigError("the server is gone.")

    turns = (calls(("weather", {"city": "Rome"})), calls(("weather", {"city": "Oslo"})), {"text": "ok"})
    watched(script(*turns), weather.tools, Hooks(refresh=refresh))
    assert weather.asked == ["Rome", "Oslo"]
