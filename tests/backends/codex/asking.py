"""A back end on fake app-servers, and requests to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from tests.backends.codex.processes import marked, zombies
from tests.backends.codex.starting import environment, fake, journal, methods
from toolwire.backends.base import EventReply
from toolwire.backends.codex.backend import CodexBackend
from toolwire.config.file import BackendConfig
from toolwire.events import Event, PartEnded
from toolwire.types import Message, Request, Sampling, Text, Tool, ToolCall, ToolResult

WEATHER = Tool(
    name="get_weather",
    description="the weather of a city",
    schema={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)


class Stage:
    """settings are members of its configuration."""

    def __init__(self, folder: Path, *options: str, **settings: Any) -> None:
        self.folder = folder
        self.journal = folder / "journal"
        environ, self.mark = environment()
        command = fake("--journal", str(self.journal), *options)
        config = BackendConfig(name="codex", kind="codex", **{"command": command, "retries": 0, **settings})
        self.backend = CodexBackend(config, environ | {"HOME": str(folder / "user")}, folder / "cache")

    @property
    def methods(self) -> list[str]:
        return methods(self.journal)

    def sent(self, method: str) -> list[dict[str, Any]]:
        return [message["params"] for message in journal(self.journal) if message.get("method") == method]

    async def until_heard(self, method: str, count: int = 1) -> None:
        async with asyncio.timeout(5):
            while self.methods.count(method) < count:
                await asyncio.sleep(0.01)

    async def until_idle(self) -> None:
        async with asyncio.timeout(5):
            while self.backend.host.pool.running:
                await asyncio.sleep(0.01)


def played(stage: Stage, play: Callable[[Stage], Coroutine[Any, Any, None]]) -> None:
    """play() on the stage; then no process, no folder and no zombie is left."""

    async def main() -> None:
        try:
            await play(stage)
        finally:
            await stage.backend.close()
            await stage.backend.close()

    asyncio.run(main())
    assert marked(stage.mark) == zombies() == []
    assert not list((stage.folder / "cache").glob("*"))


def request(word: str, *messages: Message, has_tools: bool = False, stop: tuple[str, ...] = ()) -> Request:
    return Request(
        model="some-model",
        messages=(user(f"DO={word}"), *messages),
        tools=(WEATHER,) if has_tools else (),
        sampling=Sampling(stop=stop),
    )


def user(text: str) -> Message:
    return Message(role="user", parts=(Text(text=text),))


async def read(reply: EventReply) -> list[Event]:
    events = [event async for batch in reply.events for event in batch]
    await reply.close()
    return events


async def answered(stage: Stage, asked: Request) -> list[Event]:
    return await read(await stage.backend.open(asked, is_verbatim=False))


def text_of(events: list[Event]) -> str:
    return "".join(event.part.text for event in events if isinstance(event, PartEnded) and isinstance(event.part, Text))


def calls_of(events: list[Event]) -> list[ToolCall]:
    return [event.part for event in events if isinstance(event, PartEnded) and isinstance(event.part, ToolCall)]


def with_results(asked: Request, events: list[Event], said: str = "sunny") -> Request:
    """The request that a client sends when it has run the calls."""
    parts = tuple(event.part for event in events if isinstance(event, PartEnded))
    results = tuple(ToolResult(call_id=call.id, parts=(Text(text=f"{said} {call.raw}"),)) for call in calls_of(events))
    more = (Message(role="assistant", parts=parts), Message(role="tool", parts=results))
    return Request(model=asked.model, messages=(*asked.messages, *more), tools=asked.tools)
