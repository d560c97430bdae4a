"""A simulator and a client on it, for one run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from tests.backends.cursor.simulator.client import Client, opening, tool
from toolwire.backends.cursor.simulator.journal import Journal
from toolwire.backends.cursor.simulator.script import MakeCall, Say, play
from toolwire.backends.cursor.simulator.server import Simulator
from toolwire.backends.cursor.simulator.settings import Settings, SimulatorFaults

TRANSPORTS = ("run", "run_sse")
QUICK = Settings(heartbeat=0.05, append_wait=0.1)


def call_and_report(**call: Any) -> Any:
    """Text, a call, and then the result of the tool."""
    return play([Say("One moment."), MakeCall("look", {"path": "a", "n": 3}, **call)], Say("It said {{result:0}}."))


def run_once(
    transport: str = "run",
    *,
    model: Any = None,
    faults: SimulatorFaults | Sequence[SimulatorFaults] = (),
    settings: Settings = QUICK,
    first: Any = None,
    prepare: Callable[[Client], None] = lambda client: None,
    tools: Sequence[Any] | None = None,
    **headers: Any,
) -> tuple[Client, Journal]:
    """One run to its end, by a client that offers `look` and answers everything."""
    offered = [tool()] if tools is None else list(tools)

    async def main() -> tuple[Client, Journal]:
        async with Simulator(model=model or call_and_report(), faults=faults, settings=settings) as simulator:
            client = Client(simulator.url)
            client.tools = offered
            prepare(client)
            await getattr(client, transport)(opening(tools=offered) if first is None else first, **headers)
            return client, simulator.journal

    return asyncio.run(main())
