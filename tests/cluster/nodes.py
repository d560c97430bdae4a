"""Processes of a cluster, in one event loop: each has its own listener, and back ends whose runs it alone can continue."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

from toolwire.backends.base import Backend, EventReply, Model, ParkedRuns
from toolwire.backends.continuation import resume_point_after
from toolwire.backends.sessions import Parking
from toolwire.cluster.node import ClusterNode, bind_internal
from toolwire.config.file import ClusterConfig, ServerConfig
from toolwire.config.secret import Secret
from toolwire.errors import UpstreamError
from toolwire.events import Event, Finished, PartEnded, PartStarted, Started
from toolwire.memory.store import Store
from toolwire.server.connections import Connections
from toolwire.server.launch import Options
from toolwire.server.protocol import Protocol
from toolwire.types import Choice, Message, Request, Text, ToolCall, ToolResult

SECRET = "a secret of the tests"
_numbers = count(1)


class Runs(Backend):
    """Each run answers every request with one more call; a request without results starts a new one."""

    def __init__(self, name: str = "runs") -> None:
        self.name = name
        self.parking: Parking[list[str]] = Parking(self._stop)
        self.stopped: list[list[str]] = []
        self.waits: asyncio.Event | None = None
        self.fault: UpstreamError | None = None

    @property
    def parked_runs(self) -> ParkedRuns:
        return self.parking

    async def open(self, request: Request, *, is_verbatim: bool) -> EventReply:
        resumed = self.parking.resume(request)
        run = resumed[0] if resumed is not None else [f"run {next(_numbers)}"]
        if self.fault is not None:
            raise self.fault.fresh()
        return EventReply(events=self._play(run, request), how="played")

    async def close(self) -> None:
        await self.parking.close()

    async def _play(self, run: list[str], request: Request) -> AsyncGenerator[list[Event], None]:
        run.append(f"step {len(run)}")
        call = ToolCall(id=f"call_{run[0]}_{len(run)}", name="tool", raw="{}", args={})
        is_over = False
        try:
            yield [
                Started(id="gen", model="m"),
                PartStarted(index=0, part=Text(text="")),
                PartEnded(index=0, part=Text(text=run[0])),
            ]
            if self.waits is not None:
                await self.waits.wait()
            is_over = True
            self.parking.park(run, resume_point_after(request, [call]))
            yield [
                PartStarted(index=1, part=ToolCall(id=call.id, name=call.name, raw="")),
                PartEnded(index=1, part=call),
                Finished(choices=(Choice(reason="tool_calls"),)),
            ]
        finally:
            if not is_over:
                self.stopped.append(run)

    async def _stop(self, run: list[str]) -> None:
        self.stopped.append(run)


class Windows(Backend):
    """Answers only in the process that has a window."""

    name = "windows"
    is_single_process = True

    def __init__(self) -> None:
        self.window = ""

    @property
    def absence(self) -> UpstreamError | None:
        return None if self.window else UpstreamError("no window is connected.", status=503, code="no_window")

    async def models(self) -> list[Model]:
        return [Model(id=f"model of {self.window}")] if self.window else []

    async def open(self, request: Request, *, is_verbatim: bool) -> EventReply:
        if self.absence is not None:
            raise self.absence
        return EventReply(events=self._play())

    async def _play(self) -> AsyncGenerator[list[Event], None]:
        yield [Started(id="gen", model="m"), PartStarted(index=0, part=Text(text=""))]
        yield [PartEnded(index=0, part=Text(text=self.window)), Finished(choices=(Choice(reason="stop"),))]


class Process:
    def __init__(self, store: Store, secret: str = SECRET) -> None:
        config = ClusterConfig(secret=Secret(secret))
        self.runs, self.windows = Runs(), Windows()
        self.node = ClusterNode(config, bind_internal(config), 1 << 20)
        self.port = self.node.listener.getsockname()[1]
        self.backends = self.node.join(store, {"runs": self.runs, "windows": self.windows})
        self._connections = Connections(ServerConfig(), None)
        self._server: asyncio.Server | None = None

    async def listen(self) -> None:
        options = Options(ServerConfig(), self.node.endpoint)
        options.load()
        loop = asyncio.get_running_loop()

        def protocol() -> Protocol:
            return Protocol(config=options, server_state=self._connections, app_state={}, _loop=loop)

        self._server = await loop.create_server(protocol, sock=self.node.listener)

    def die(self) -> None:
        """Like kill -9: its connections break, and its records stay."""
        assert self._server is not None
        self._server.close()
        for connection in list(self._connections.connections):
            connection.transport.abort()

    async def close(self) -> None:
        self.die()
        await self.node.leave()
        await self.runs.close()


@asynccontextmanager
async def processes(store: Store, number: int = 2) -> AsyncIterator[list[Process]]:
    started = [Process(store) for _ in range(number)]
    try:
        for process in started:
            await process.listen()
        yield started
    finally:
        for process in started:
            await process.close()


def asking(text: str = "go", owner: str = "ann") -> Request:
    return Request(model="m", messages=(Message(role="user", parts=(Text(text=text),)),), owner=owner)


def continuing(request: Request, events: list[Event]) -> Request:
    """The next request of the client: with the answer, and a result for its call."""
    parts = tuple(event.part for event in events if isinstance(event, PartEnded))
    (call,) = (part for part in parts if isinstance(part, ToolCall))
    result = Message(role="tool", parts=(ToolResult(call_id=call.id, parts=(Text(text="done"),)),))
    messages = (*request.messages, Message(role="assistant", parts=parts), result)
    return Request(model="m", messages=messages, owner=request.owner)


async def answer(backend: Backend, request: Request) -> list[Event]:
    reply = await backend.open(request, is_verbatim=False)
    assert isinstance(reply, EventReply)
    events = [event async for batch in reply.events for event in batch]
    await reply.close()
    return events


def run_of(events: list[Event]) -> str:
    """The name of the run that answered."""
    return next(event.part.text for event in events if isinstance(event, PartEnded) and isinstance(event.part, Text))
