"""The back end and the simulator in one loop: what a test asks, and the proof that nothing is left when it ends."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from msgspec.structs import replace

from tests.backends.event_contract import check_events
from toolwire.backends.base import EventReply
from toolwire.backends.cursor.backend import CursorBackend
from toolwire.backends.cursor.run import RunLimits
from toolwire.backends.cursor.simulator.script import SimulatedModel
from toolwire.backends.cursor.simulator.server import Simulator
from toolwire.backends.cursor.simulator.settings import TOKEN, Settings, SimulatorFaults
from toolwire.backends.http.transport import Transport
from toolwire.config.file import BackendConfig
from toolwire.config.secret import Secret
from toolwire.events import Event, Failed, FoldedAnswer, PartEnded, fold
from toolwire.types import Media, Message, Part, Reasoning, Request, Text, Tool, ToolCall, ToolResult

LOOK = Tool(
    name="look",
    description="Looks at a city.",
    schema={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
TRANSPORTS = ("run", "sse")
QUICK = RunLimits(first=2.0, idle=2.0, silent=2.0, quiet=0.02, announced=0.5, beat=0.1, exec_beat=0.06)
HASTY = replace(QUICK, first=0.6, idle=0.6, silent=0.4)  # for what is waited for in vain
HEARTBEAT = 0.1  # of the simulator, well below the limit of silence


class Stage:
    def __init__(self, simulator: Simulator, backend: CursorBackend) -> None:
        self.simulator = simulator
        self.backend = backend

    @property
    def runs(self) -> list[Any]:
        return self.simulator.journal.runs

    async def open(self, request: Request) -> EventReply:
        return await self.backend.open(request, is_verbatim=False)

    async def events(self, request: Request) -> list[Event]:
        reply = await self.open(request)
        try:
            return [event async for batch in reply.events for event in batch]
        finally:
            await reply.close()

    async def ask(self, request: Request) -> FoldedAnswer:
        events = await self.events(request)
        check_events(events)
        return fold(events)

    async def settled(self, is_so: Callable[[], bool], seconds: float = 3.0) -> None:
        """Waits until something is so that must become so."""
        async with asyncio.timeout(seconds):
            while not is_so():
                await asyncio.sleep(0.005)


@asynccontextmanager
async def on_stage(
    model: SimulatedModel | None = None,
    *,
    faults: SimulatorFaults | Sequence[SimulatorFaults] = (),
    settings: Settings | None = None,
    limits: RunLimits = QUICK,
    is_alone: bool = True,
    **config: Any,
) -> AsyncIterator[Stage]:
    """When it is over no task, socket or run is left of the back end. is_alone: nothing else is going on in this process."""
    settings = settings or Settings(heartbeat=HEARTBEAT)
    before, files = asyncio.all_tasks(), open_files()
    async with Simulator(model=model, faults=faults, settings=settings) as simulator:
        transport = Transport(environ={})
        fields: dict[str, Any] = {"token": Secret(TOKEN), "client_version": "cli-2026.01.09"} | config
        backend = CursorBackend(
            BackendConfig(name="cursor", kind="cursor", **{"base_url": simulator.url} | fields),
            transport,
            limits=limits,
        )
        try:
            yield Stage(simulator, backend)
        finally:
            await backend.close()
            await transport.close()
        assert (len(backend.parking), backend.parking.stopping) == (0, 0)
        stage = Stage(simulator, backend)
        await stage.settled(lambda: not simulator.connections)
        assert not [run for run in simulator.journal.runs if run.state == "open"]
    if is_alone:
        await stage.settled(lambda: not asyncio.all_tasks() - before)
        assert open_files() <= files


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def request(*messages: Message | str, tools: Sequence[Tool] = (LOOK,), model: str = "default", **more: Any) -> Request:
    text_in = tuple(user(message) if isinstance(message, str) else message for message in messages)
    return Request(model=model, messages=text_in, tools=tuple(tools), stream=True, **more)


def user(*parts: str | Media) -> Message:
    return Message(role="user", parts=tuple(Text(text=part) if isinstance(part, str) else part for part in parts))


def next_request(before: Request, answer: FoldedAnswer, *texts: str, order: int = 1, is_error: bool = False) -> Request:
    """The results of the answer's calls, in the order of the calls or the other way round; "seen" where no texts are given."""
    calls = calls_of(answer)
    results = [
        Message(role="tool", parts=(ToolResult(call_id=call.id, parts=(Text(text=text),), is_error=is_error),))
        for call, text in zip(calls, texts or ["seen"] * len(calls), strict=True)
    ]
    text_in = Message(role="assistant", parts=answer.parts_of(0))
    return replaced(before, (*before.messages, text_in, *results[::order]))


def replaced(before: Request, messages: tuple[Message, ...]) -> Request:
    return Request(
        model=before.model,
        messages=messages,
        tools=before.tools,
        stream=True,
        owner=before.owner,
        parallel_calls=before.parallel_calls,
    )


def calls_of(answer: FoldedAnswer) -> list[ToolCall]:
    return [part for part in answer.parts_of(0) if isinstance(part, ToolCall)]


def text_of(answer: FoldedAnswer) -> str:
    return "".join(part.text for part in answer.parts_of(0) if isinstance(part, Text))


def thought_of(answer: FoldedAnswer) -> str:
    return "".join(part.text for part in answer.parts_of(0) if isinstance(part, Reasoning))


def text_in(events: Sequence[Event]) -> str:
    """The text of a stream that may have failed."""
    parts: list[Part] = [event.part for event in events if isinstance(event, PartEnded)]
    return "".join(part.text for part in parts if isinstance(part, Text))


def failure(events: Sequence[Event]) -> Failed:
    assert isinstance(events[-1], Failed), events
    return events[-1]
