"""Cursor's simulator behind a running gateway: each in its own thread, on real sockets."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tests.contract.harness import HistoryEntry, answered, talk
from tests.server.answers import PATHS
from tests.server.harness import LONG, Answer, Gateway, ask, gateway, server_config
from toolwire.backends.cursor.simulator.journal import Run
from toolwire.backends.cursor.simulator.server import Simulator
from toolwire.backends.cursor.simulator.settings import TOKEN, Settings, SimulatorFaults
from toolwire.config.file import BackendConfig, Config, with_backends
from toolwire.config.secret import Secret
from toolwire.types import Text, ToolCall

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
VERSION = "cli-2026.08.11-e8db854"


class CursorStage:
    """simulator belongs to another thread and must only be read here."""

    def __init__(self, simulator: Simulator, server: Gateway) -> None:
        self.simulator = simulator
        self.server = server

    @property
    def runs(self) -> list[Run]:
        return self.simulator.journal.runs

    def ask(
        self, *steps: HistoryEntry, dialect: str = "chat", stream: bool = True, has_tools: bool = True, **more: Any
    ) -> Answer:
        """The answer that a client of this dialect gets for a conversation."""
        tools = {"look": SCHEMA} if has_tools else {}
        body = {"model": "cursor/default", **talk(dialect, *steps, tools=tools, stream=stream, **more)}
        return ask(self.server.port, "POST", PATHS[dialect], body)

    def chat(self, text: str) -> list[Any]:
        """The parts of the answer to one message of a client without tools."""
        return answered("chat", self.ask(HistoryEntry("user", text), has_tools=False))

    @staticmethod
    def text(parts: Sequence[Any]) -> str:
        return "".join(part.text for part in parts if isinstance(part, Text))

    @staticmethod
    def calls(parts: Sequence[Any]) -> list[ToolCall]:
        return [part for part in parts if isinstance(part, ToolCall)]

    def metric(self, name: str, **labels: str) -> float:
        lines = ask(self.server.port, "GET", "/metrics").body.decode().splitlines()
        wanted = [f'{key}="{value}"' for key, value in labels.items()]
        found = [line for line in lines if line.startswith(f"{name}{{") and all(label in line for label in wanted)]
        return sum(float(line.rsplit(" ", 1)[1]) for line in found)


@contextmanager
def running(
    model: Any = None,
    *,
    faults: SimulatorFaults | Sequence[SimulatorFaults] = (),
    settings: Settings | None = None,
    **config: Any,
) -> Iterator[CursorStage]:
    """config: keys of the back end, which is named cursor."""
    with simulating(Simulator(model=model, faults=faults, settings=settings or Settings())) as simulator:
        fields: dict[str, Any] = {"token": Secret(TOKEN), "client_version": VERSION, "retries": 0} | config
        backend = BackendConfig(name="cursor", kind="cursor", **{"base_url": simulator.url} | fields)
        with gateway(with_backends(Config(server=server_config()), (backend,))) as server:
            yield CursorStage(simulator, server)


@contextmanager
def simulating(simulator: Simulator) -> Iterator[Simulator]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(simulator.start(), loop).result(LONG)
        yield simulator
        asyncio.run_coroutine_threadsafe(simulator.close(), loop).result(LONG)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(LONG)
        loop.close()


def after(steps: tuple[HistoryEntry, ...], calls: Sequence[ToolCall], text: str) -> tuple[HistoryEntry, ...]:
    """The conversation with these calls and a result for each."""
    made = [HistoryEntry("call", call.raw, call.id, call.name) for call in calls]
    return (*steps, *made, *(HistoryEntry("result", text, call.id) for call in calls))
