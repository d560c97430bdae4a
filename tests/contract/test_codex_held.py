"""Codex with turns that wait for the client's results: in each way the versions have.

The app-server is one of ours (held_app_server.py) that asks as the real ones do; the real ones are in tests/programs.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.backends.codex.processes import all_gone
from tests.backends.codex.starting import environment
from toolwire.backends.codex.backend import CodexBackend
from toolwire.backends.sessions import Parking, ParkingCounts
from toolwire.config.file import BackendConfig
from toolwire.events import FoldedAnswer, Folder
from toolwire.types import Media, Message, Request, Text, Tool, ToolCall, ToolResult, Usage

pytestmark = pytest.mark.slow

SERVER = Path(__file__).with_name("held_app_server.py")
LOOK = Tool(name="look", schema={"type": "object", "properties": {"city": {"type": "string"}}})
PICTURE = Media(kind="image", mime="image/png", data="AAAA")
SLOW = pytest.mark.slow
# Each way of asking for tools, and of telling the last of them; the others differ in a detail.
EVERY = pytest.mark.parametrize("minor", [92, 98, pytest.param(130, marks=SLOW), 137, 166])
MOST = pytest.mark.parametrize("minor", [98, pytest.param(137, marks=SLOW), 166])


class Stage:
    """One back end on one process; when it is closed nothing is left of it."""

    def __init__(self, folder: Path, minor: int, *options: str) -> None:
        self.journal = folder / "journal"
        environ, self.mark = environment()
        command = (
            sys.executable,
            "-S",
            "-E",
            str(SERVER),
            "--minor",
            str(minor),
            "--journal",
            str(self.journal),
            *options,
        )
        tier = "held" if minor >= 145 else "auto"
        config = BackendConfig(name="codex", kind="codex", command=command, tier=tier, workers=1)
        self.backend = CodexBackend(config, environ | {"HOME": str(folder)}, folder / "cache")

    @property
    def parking(self) -> Parking[Any]:
        return self.backend._parking

    def count(self, method: str) -> int:
        lines = self.journal.read_text().splitlines()
        return sum(json.loads(line).get("method") == method for line in lines)

    async def ask(self, messages: list[Message]) -> FoldedAnswer:
        request = Request(model="m", messages=tuple(messages), tools=(LOOK,), stream=True)
        folder = Folder()
        async with asyncio.timeout(10):
            reply = await self.backend.open(request, is_verbatim=False)
            async for events in reply.events:
                for event in events:
                    folder.send(event)
            await reply.close()
        return folder.answer()

    async def idle(self) -> None:
        async with asyncio.timeout(5):
            while self.backend.host.pool.running:
                await asyncio.sleep(0.01)


def run_on_stage(stage: Stage, play: Callable[[Stage], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        try:
            await play(stage)
        finally:
            await stage.backend.close()
        assert (len(stage.parking), stage.parking.stopping, stage.backend.host.pool.running) == (0, 0, 0)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())
    assert all_gone(stage.mark)


def history(rounds: int = 1) -> list[Message]:
    return [Message(role="user", parts=(Text(text=f"ROUNDS={rounds}"),))]


def calls_of(answer: FoldedAnswer) -> list[ToolCall]:
    return [part for part in answer.parts_of(0) if isinstance(part, ToolCall)]


def text_of(answer: FoldedAnswer) -> str:
    return "".join(part.text for part in answer.parts_of(0) if isinstance(part, Text))


def with_results(messages: list[Message], answer: FoldedAnswer, mark: str = "") -> list[Message]:
    """Results in another order than the calls."""
    results = [
        ToolResult(call_id=call.id, parts=(Text(text=f"{mark}{json.loads(call.raw)['city']}"),))
        for call in reversed(calls_of(answer))
    ]
    told = Message(role="assistant", parts=answer.parts_of(0))
    return [*messages, told, *(Message(role="tool", parts=(result,)) for result in results)]


def found_in(text: str) -> list[dict[str, str]]:
    """What the app-server got for each call, by round, as text in whatever form the version takes it."""
    return [{call: json.dumps(result) for call, result in found.items()} for found in json.loads(text)]


@EVERY
def test_results_reach_the_turn_that_waits_for_them(tmp_path: Path, minor: int) -> None:
    async def play(stage: Stage) -> None:
        answer = await stage.ask(history())
        assert [call.id for call in calls_of(answer)] == ["call_0_Rome", "call_0_Paris"]
        assert {call.name for call in calls_of(answer)} == {"look"}
        assert answer.finished.choices[0].reason == "tool_calls"
        assert len(stage.parking) == 1
        last = await stage.ask(with_results(history(), answer, "seen "))
        [found] = found_in(text_of(last))
        assert "seen Rome" in found["call_0_Rome"]
        assert "seen Paris" in found["call_0_Paris"]
        assert last.finished.choices[0].reason == "stop"
        await stage.idle()
        assert stage.parking.counts == ParkingCounts(parked=1, taken=1)

    stage = Stage(tmp_path, minor)
    run_on_stage(stage, play)
    assert (stage.count("turn/start"), stage.count("turn/interrupt")) == (1, 0)


@EVERY
def test_a_turn_may_wait_several_times(tmp_path: Path, minor: int) -> None:
    async def play(stage: Stage) -> None:
        messages = history(3)
        answer = await stage.ask(messages)
        for number in range(3):
            assert {call.id for call in calls_of(answer)} == {f"call_{number}_Rome", f"call_{number}_Paris"}
            messages = with_results(messages, answer, f"{number} ")
            answer = await stage.ask(messages)
        for number, found in enumerate(found_in(text_of(answer))):
            assert f"{number} Rome" in found[f"call_{number}_Rome"]

    stage = Stage(tmp_path, minor)
    run_on_stage(stage, play)
    assert stage.count("turn/start") == 1


@MOST
def test_images_and_failures_stay_images_and_failures(tmp_path: Path, minor: int) -> None:
    async def play(stage: Stage) -> None:
        answer = await stage.ask(history())
        results = (
            ToolResult(call_id="call_0_Rome", parts=(Text(text="see"), PICTURE)),
            ToolResult(call_id="call_0_Paris", parts=(Text(text="burnt down"),), is_error=True),
        )
        messages = [
            *history(),
            Message(role="assistant", parts=answer.parts_of(0)),
            Message(role="tool", parts=results),
        ]
        [found] = json.loads(text_of(await stage.ask(messages)))
        rome, paris = found["call_0_Rome"], found["call_0_Paris"]
        assert "Error: the tool call failed.\\nburnt down" in json.dumps(paris)
        if minor < 92:
            assert (rome["isError"], paris["isError"]) == (False, True)
            assert rome["content"][1] == {"type": "image", "data": "AAAA", "mimeType": "image/png"}
        else:
            assert (rome["success"], paris["success"]) == (True, False)
        if minor >= 97:
            assert rome["contentItems"][1] == {"type": "inputImage", "imageUrl": "data:image/png;base64,AAAA"}

    run_on_stage(Stage(tmp_path, minor), play)


def edited(messages: list[Message]) -> list[Message]:
    return [Message(role="user", parts=(Text(text="ROUNDS=1 please"),)), *messages[1:]]


def with_one_result(messages: list[Message]) -> list[Message]:
    return messages[:-1]


def with_a_word(messages: list[Message]) -> list[Message]:
    return [*messages, Message(role="user", parts=(Text(text="And?"),))]


@pytest.mark.parametrize("change", [edited, with_one_result, with_a_word])
@MOST
def test_another_conversation_starts_a_new_thread(
    tmp_path: Path, minor: int, change: Callable[[list[Message]], list[Message]]
) -> None:
    async def play(stage: Stage) -> None:
        answer = await stage.ask(history())
        assert text_of(await stage.ask(change(with_results(history(), answer)))) == "begun anew"
        assert len(stage.parking) == 1

    stage = Stage(tmp_path, minor)
    run_on_stage(stage, play)
    assert (stage.count("turn/start"), stage.count("turn/interrupt")) == (2, 1)


@MOST
def test_of_two_requests_with_the_same_results_one_continues_the_turn(tmp_path: Path, minor: int) -> None:
    async def play(stage: Stage) -> None:
        answer = await stage.ask(history())
        messages = with_results(history(), answer)
        texts = [text_of(last) for last in await asyncio.gather(stage.ask(messages), stage.ask(messages))]
        assert sorted(text == "begun anew" for text in texts) == [False, True]

    run_on_stage(Stage(tmp_path, minor), play)


@MOST
def test_a_turn_that_waited_too_long_is_stopped(tmp_path: Path, minor: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolwire.backends.codex.backend.Parking", partial(Parking, seconds=0.05))

    async def play(stage: Stage) -> None:
        answer = await stage.ask(history())
        await stage.idle()
        assert stage.parking.counts == ParkingCounts(parked=1, expired=1)
        assert stage.count("turn/interrupt") == 1
        assert text_of(await stage.ask(with_results(history(), answer))) == "begun anew"

    run_on_stage(Stage(tmp_path, minor), play)


@MOST
def test_a_turn_whose_process_ended_starts_again(tmp_path: Path, minor: int) -> None:
    async def play(stage: Stage) -> None:
        answer = await stage.ask(history())
        for worker in stage.backend.host.pool.workers:
            os.kill(worker.channel.pid, 9)
        assert text_of(await stage.ask(with_results(history(), answer))) == "begun anew"

    run_on_stage(Stage(tmp_path, minor), play)


@MOST
def test_closing_stops_the_turns_that_wait(tmp_path: Path, minor: int) -> None:
    async def play(stage: Stage) -> None:
        await stage.ask(history())
        await stage.ask(history())
        assert len(stage.parking) == 2

    stage = Stage(tmp_path, minor)
    run_on_stage(stage, play)
    assert stage.parking.counts == ParkingCounts(parked=2, closed=2)
    assert stage.count("turn/interrupt") == 2


def test_a_late_call_is_in_the_next_answer(tmp_path: Path) -> None:
    """In 0.131 to 0.144 nothing tells the last call, so the model may still write one when the answer has ended."""

    async def play(stage: Stage) -> None:
        messages = history()
        answer = await stage.ask(messages)
        assert [call.id for call in calls_of(answer)] == ["call_0_Rome"]
        messages = with_results(messages, answer, "seen ")
        answer = await stage.ask(messages)
        assert [call.id for call in calls_of(answer)] == ["call_0_Paris"]
        [found] = found_in(text_of(await stage.ask(with_results(messages, answer, "seen "))))
        assert "seen Rome" in found["call_0_Rome"]
        assert "seen Paris" in found["call_0_Paris"]

    stage = Stage(tmp_path, 137, "--gap", "0.3")
    run_on_stage(stage, play)
    assert stage.count("turn/start") == 1


def test_a_version_that_marks_the_end_waits_for_a_slow_second_call(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        assert len(calls_of(await stage.ask(history()))) == 2

    run_on_stage(Stage(tmp_path, 98, "--gap", "0.3"), play)


@pytest.mark.parametrize("minor", [98, 166])
def test_each_answer_counts_its_own_tokens(tmp_path: Path, minor: int) -> None:
    async def play(stage: Stage) -> None:
        messages = history(2)
        for _ in range(3):
            answer = await stage.ask(messages)
            assert answer.finished.usage == Usage(input=100, output=20)
            messages = with_results(messages, answer)

    run_on_stage(Stage(tmp_path, minor), play)
