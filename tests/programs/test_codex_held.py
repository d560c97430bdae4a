"""The real Codex, with turns that wait for the client's results."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.backends.codex.processes import all_gone
from tests.backends.codex.provider import Provider, providing
from tests.backends.codex.starting import environment
from tests.programs.codex_backend.binaries import NEWEST, codex
from tests.programs.installed import search_path
from toolwire.backends.codex.backend import CodexBackend
from toolwire.backends.sessions import Parking, ParkingCounts
from toolwire.config.file import BackendConfig
from toolwire.events import FoldedAnswer, Folder
from toolwire.types import Media, Message, Request, Text, Tool, ToolCall, ToolResult

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("version", [NEWEST])]

WEATHER = Tool(
    name="get_weather",
    description="The weather in a city.",
    schema={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
ASKED = Message(role="user", parts=(Text(text="DO=calls"),))
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
LAST_WORDS = "It is sunny."


class Stage:
    def __init__(self, version: str, provider: Provider, folder: Path) -> None:
        self.provider = provider
        environ, self.mark = environment()
        environ |= {"HOME": str(folder), "PATH": search_path(), "PROVIDER_KEY": "sk-of-nobody"}
        provider_config = {
            "name": "played",
            "base_url": provider.address,
            "env_key": "PROVIDER_KEY",
            "wire_api": "responses",
        }
        config = BackendConfig(
            name="codex",
            kind="codex",
            command=(str(codex(version)), "app-server"),
            tier="held",
            workers=1,
            config={"model": "some-model", "model_provider": "played", "model_providers": {"played": provider_config}},
        )
        self.backend = CodexBackend(config, environ, folder / "cache")

    @property
    def parking(self) -> Parking[Any]:
        return self.backend._parking

    async def ask(self, *messages: Message) -> FoldedAnswer:
        request = Request(model="some-model", messages=messages, tools=(WEATHER,), stream=True)
        folder = Folder()
        async with asyncio.timeout(60):
            reply = await self.backend.open(request, is_verbatim=False)
            async for events in reply.events:
                for event in events:
                    folder.send(event)
            await reply.close()
        return folder.answer()

    async def idle(self) -> None:
        async with asyncio.timeout(10):
            while self.backend.host.pool.running:
                await asyncio.sleep(0.02)


def run_on_stage(version: str, folder: Path, play: Callable[[Stage], Coroutine[Any, Any, None]]) -> None:
    async def main(stage: Stage) -> None:
        try:
            await play(stage)
        finally:
            await stage.backend.close()
        assert (len(stage.parking), stage.parking.stopping) == (0, 0)

    with providing() as provider:
        stage = Stage(version, provider, folder)
        asyncio.run(main(stage))
    assert all_gone(stage.mark)


def results_for(answer: FoldedAnswer) -> tuple[Message, ...]:
    """In another order than the calls; one failed, one has an image."""
    calls = [part for part in answer.parts_of(0) if isinstance(part, ToolCall)]
    assert [(call.name, call.id, call.raw) for call in calls] == [
        ("get_weather", "call_p1", '{"city": "Paris"}'),
        ("get_weather", "call_p2", '{"city":"Rome"}'),
    ]
    assert answer.finished.choices[0].reason == "tool_calls"
    failed = ToolResult(call_id="call_p2", parts=(Text(text="no such city"),), is_error=True)
    seen = (Text(text="rain in Paris"), Media(kind="image", mime="image/png", data=PICTURE))
    results = (failed, ToolResult(call_id="call_p1", parts=seen))
    told = Message(role="assistant", parts=answer.parts_of(0))
    return (ASKED, told, *(Message(role="tool", parts=(result,)) for result in results))


def outputs_in(request: dict[str, Any]) -> dict[str, str]:
    items = [item for item in request["input"] if item.get("type") == "function_call_output"]
    return {item["call_id"]: str(item["output"]) for item in items}


def text_of(answer: FoldedAnswer) -> str:
    return "".join(part.text for part in answer.parts_of(0) if isinstance(part, Text))


def test_parallel_calls_are_held_and_the_turn_continues(version: str, tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        messages = results_for(await stage.ask(ASKED))
        assert len(stage.parking) == 1
        answer = await stage.ask(*messages)
        assert (text_of(answer), answer.finished.choices[0].reason) == (LAST_WORDS, "stop")
        assert len(stage.provider.requests) == 2
        outputs = outputs_in(stage.provider.requests[-1])
        assert "rain in Paris" in outputs["call_p1"]
        assert f"data:image/png;base64,{PICTURE}" in outputs["call_p1"]
        assert "Error: the tool call failed." in outputs["call_p2"]
        assert "no such city" in outputs["call_p2"]
        await stage.idle()
        assert stage.parking.counts == ParkingCounts(parked=1, taken=1)

    run_on_stage(version, tmp_path, play)


def test_a_turn_that_waited_too_long_is_started_again(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolwire.backends.codex.backend.Parking", partial(Parking, seconds=0.2))

    async def play(stage: Stage) -> None:
        messages = results_for(await stage.ask(ASKED))
        await stage.idle()
        assert stage.parking.counts == ParkingCounts(parked=1, expired=1)
        assert text_of(await stage.ask(*messages)) == LAST_WORDS
        assert "rain in Paris" in outputs_in(stage.provider.requests[-1])["call_p1"]

    run_on_stage(version, tmp_path, play)


def test_a_turn_whose_process_was_killed_is_started_again(version: str, tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        messages = results_for(await stage.ask(ASKED))
        [worker] = stage.backend.host.pool.workers
        os.killpg(worker.channel.pid, signal.SIGKILL)
        assert text_of(await stage.ask(*messages)) == LAST_WORDS
        assert "rain in Paris" in outputs_in(stage.provider.requests[-1])["call_p1"]

    run_on_stage(version, tmp_path, play)
