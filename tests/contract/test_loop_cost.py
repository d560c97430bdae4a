"""The cost of a turn of the loop compared with a turn of the gateway, with five calls in every second turn."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.contract.harness import NAMES, HistoryEntry, calls_play, talk, text_play
from tests.server.answers import KINDS
from toolwire.agent.host import Host
from toolwire.agent.loop import Loop, Terms
from toolwire.backends.base import Backend, Model
from toolwire.config.file import BackendConfig, Config, with_backends
from toolwire.config.secret import Secret
from toolwire.dialects import DIALECTS
from toolwire.telemetry import Record
from toolwire.tools.functions import function_tool
from toolwire.types import Message, Request, Text, ToolResult

pytestmark = pytest.mark.slow

ROUNDS = 150
ARGUMENTS = '{"city": "Rome", "days": 2}'


async def weather(city: str, days: int = 1) -> str:
    """What the weather will be."""
    return "rain"


TOOL = function_tool(weather)


class Reply:
    headers: dict[str, str] = {}
    content_type = "text/event-stream"
    losses = ()
    is_complete = True

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = iter(pieces)

    async def read(self) -> bytes:
        return next(self._pieces, b"")

    def abort(self) -> None:
        pass


class Instant:
    """Encodes each request as the real back end would, does not send it, and replays the bytes of two answers."""

    def __init__(self, model: Backend) -> None:
        self.name, self.dialect, self.profile, self.tool_kinds = (
            model.name,
            model.dialect,
            model.profile,
            model.tool_kinds,
        )
        pieces = [ARGUMENTS[at : at + 6] for at in range(0, len(ARGUMENTS), 6)]
        made = [(f"call_{number}", "weather", pieces) for number in range(5)]
        self._calls = _frames(calls_play(self.dialect, *made))
        self._text = _frames(text_play(self.dialect, "It rains."))

    async def models(self) -> list[Model]:
        return []

    async def open(self, request: Request, *, is_verbatim: bool) -> Any:
        assert not is_verbatim
        assert DIALECTS[self.dialect].encode_request(request, self.profile).body
        has_results = any(isinstance(part, ToolResult) for message in request.messages for part in message.parts)
        return Reply(self._text if has_results else self._calls)

    async def close(self) -> None:
        pass


def _frames(play: list[Any]) -> list[bytes]:
    return [chunk.partition(b"\r\n")[2][:-2] for chunk in play[1:-1]]


def _host(dialect: str) -> Host:
    backend = BackendConfig(
        name="b", kind=KINDS[dialect], base_url="http://127.0.0.1:9", key=Secret("k"), models=("m",)
    )  # type: ignore[arg-type] # a kind
    host = Host(with_backends(Config(), (backend,)))
    host.runtime.backends["b"] = Instant(host.runtime.backends["b"])
    return host


async def _loops(host: Host) -> None:
    user = Message(role="user", parts=(Text(text="What is the weather?"),))
    for _ in range(ROUNDS):
        request = Request(model="b/m", messages=(user,), stream=True, stream_usage=True)
        loop = Loop(host.runtime, request, [TOOL], Terms())
        results = [event async for event in loop.events() if event.__struct_config__.tag == "tool_result"]
        assert (len(results), loop.iterations) == (5, 2)


async def _steps(host: Host, client: str) -> None:
    """The same two requests, from a client that runs the tools itself."""
    steps = [HistoryEntry("user", "What is the weather?")]
    steps += [HistoryEntry("call", ARGUMENTS, f"call_{number}", "weather") for number in range(5)]
    steps += [HistoryEntry("result", "rain", f"call_{number}", "weather") for number in range(5)]
    tools = {"weather": dict(TOOL.tool.schema or {})}
    bodies = [json.dumps({"model": "b/m", **talk(client, *said, tools=tools)}).encode() for said in (steps[:1], steps)]

    async def write(data: bytes) -> None:
        pass

    for _ in range(ROUNDS):
        for body in bodies:
            step = await host.runtime.step(
                DIALECTS[client].decode_request(body, {}), Record(model="b/m", is_stream=True)
            )
            await step.run(write)
            await step.release()


@pytest.mark.parametrize("dialect", NAMES)
def test_a_turn_of_the_loop_costs_less_than_two_of_the_gateway(dialect: str) -> None:
    client = "messages" if dialect == "chat" else "chat"
    host = _host(dialect)

    async def best(work: Callable[[], Awaitable[None]]) -> float:
        begun = time.process_time()
        await work()
        return time.process_time() - begun

    async def main() -> tuple[float, float]:
        pairs = [(await best(lambda: _loops(host)), await best(lambda: _steps(host, client))) for _ in range(4)]
        return min(loop for loop, _ in pairs), min(step for _, step in pairs)

    loop, step = asyncio.run(main())
    print(f"{dialect}: {loop / ROUNDS / 2 * 1e6:.0f} us a turn, {loop / step:.2f} times a step")
    assert loop < 2 * step
