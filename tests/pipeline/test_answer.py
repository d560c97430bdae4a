"""One answer as events: it always ends, is kept where it must be, and leaves no connection behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import msgspec
import pytest

from tests.loop_stage import IN_PROCESS, asked, calls, script
from toolwire.agent.host import Host
from toolwire.backends.base import EventReply
from toolwire.calls.turn import Turn
from toolwire.config.file import BackendConfig, Config, with_backends
from toolwire.events import Event, Failed, Finished, PartDelta, PartStarted, Started
from toolwire.ids import new_id
from toolwire.pipeline.answer import Answering
from toolwire.pipeline.reader import Reading
from toolwire.telemetry import Record
from toolwire.types import Loss, Text, Tool, ToolCall


def answered(prompt: str) -> tuple[list[Event], Answering, Record]:
    async def main() -> tuple[list[Event], Answering, Record]:
        record = Record(model="m", is_stream=True)
        answering = await Host(IN_PROCESS).runtime.answer(asked(prompt), record)
        found = [event async for events in answering.events() for event in events]
        await answering.release()
        return found, answering, record

    return asyncio.run(main())


def test_events_and_the_parts_they_come_to() -> None:
    events, answering, record = answered(script(calls(("f", {"a": 1}), text="So", reasoning="Hm"), strict=False))
    assert isinstance(events[0], Started)
    assert isinstance(events[-1], Finished)
    assert [str(part.__struct_config__.tag) for part in answering.parts] == ["reasoning", "text", "tool_call"]
    assert record.outcome != "error"
    assert record.usage is not None


def test_a_call_nobody_offered_is_a_call_all_the_same() -> None:
    """Who runs the tools judges them."""
    _, answering, _ = answered(script(calls(("f", "{broken")), strict=False))
    (call,) = answering.parts
    assert isinstance(call, ToolCall)
    assert (call.raw, call.args) == ("{broken", None)


def test_an_answer_without_an_end_has_failed() -> None:
    events, answering, record = answered(script({"text": "abcdef", "chunk": 2, "cut": 2}))
    assert isinstance(events[-1], Failed)
    assert "no end" in events[-1].error.message
    assert (record.outcome, record.error) == ("error", events[-1].error.code)
    assert answering.parts == []


def test_an_error_is_the_last_event() -> None:
    events, _, record = answered(script({"text": "abcdef", "chunk": 2, "error": {"after": 1, "code": "busy"}}))
    assert isinstance(events[-1], Failed)
    assert record.error == "busy"


def test_losses_are_those_of_request_and_answer() -> None:
    async def main() -> Record:
        record = Record(model="m", is_stream=True)
        answering = await Host(IN_PROCESS).runtime.answer(asked(script({"text": "x"})), record)
        answering.lose([Loss("seed", "seed", "no such thing")])
        async for _ in answering.events():
            pass
        return record

    assert [loss.feature for loss in asyncio.run(main()).losses] == ["seed"]


def test_whoever_stops_reading_closes_the_back_ends_answer() -> None:
    closed: list[str] = []

    async def play() -> AsyncIterator[list[Event]]:
        try:
            yield [Started(id="g", model="m"), PartStarted(index=0, part=Text(text=""))]
            while True:
                yield [PartDelta(index=0, text="x")]
        finally:
            closed.append("closed")

    async def main() -> Any:
        request = asked("hi")
        reading = Reading(EventReply(events=play()), "", request)
        answering = Answering(reading, Turn(request, new_id), Record(model="m", is_stream=True))
        async with aclosing(answering.events()) as batches:
            await anext(batches)
            await anext(batches)
        await answering.release()

    asyncio.run(main())
    assert closed == ["closed"]


@pytest.mark.parametrize("is_guarded", [False, True])
def test_calls_are_judged_only_for_those_who_ask_for_it(is_guarded: bool) -> None:
    tool = Tool(name="weather", schema={"type": "object", "required": ["city"]})
    config = with_backends(Config(), (BackendConfig(name="s", kind="scripted", guard="repair", policy="error"),))

    async def main() -> None:
        host, record = Host(config), Record()
        prompt = script({"calls": [{"name": "weather", "arguments": {}}]})
        request = msgspec.structs.replace(asked(prompt), tools=(tool,))
        answering = await host.runtime.answer(request, record, is_guarded=is_guarded)
        last = [event async for events in answering.events() for event in events][-1]
        assert isinstance(last, Failed) is is_guarded
        await answering.release()
        await host.close()

    asyncio.run(main())
