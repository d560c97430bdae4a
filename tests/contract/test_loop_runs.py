"""The tool loop on back ends that run a model's turn themselves, Cursor (the simulator) and Codex (an app-server of ours).

A turn there does not end with a request: it waits for results, and a model that has nothing to call may go on calling inside one answer.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.agent_harness import asked, kinds_of, pairs
from tests.backends.codex.processes import all_gone
from tests.backends.codex.starting import environment
from tests.server.harness import ask, gateway, server_config
from toolwire import Agent
from toolwire.agent.events import CompleteEvent, ErrorEvent, LoopEvent, ToolCallEvent, ToolErrorEvent, ToolResultEvent
from toolwire.agent.host import Host
from toolwire.agent.loop import Hooks, Loop, Terms
from toolwire.backends.codex.backend import CodexBackend
from toolwire.backends.cursor.simulator.script import MakeCall, Say, Seen
from toolwire.backends.cursor.simulator.server import Simulator
from toolwire.backends.cursor.simulator.settings import TOKEN, Settings
from toolwire.config.file import BackendConfig, Config, with_backends
from toolwire.config.secret import Secret
from toolwire.telemetry.prometheus import Prometheus
from toolwire.tools import Runnable
from toolwire.tools.functions import function_tool

BOUND = 3
SERVER = Path(__file__).with_name("held_app_server.py")
# By tier and version of Codex, and by transport of Cursor.
STUBBORN = ["cursor-run", "cursor-sse", "codex-held-166", "codex-replay-166", "codex-held-137"]


class Look:
    """A tool that records its arguments."""

    def __init__(self) -> None:
        self.cities: list[str] = []

    @property
    def tools(self) -> list[Runnable]:
        return [function_tool(self.look)]

    async def look(self, city: str) -> str:
        """What can be seen there."""
        self.cities.append(city)
        return f"rain in {city}"


class Stubborn:
    """A Cursor model that never stops calling tools, with optional text before."""

    def __init__(self, text: str = "") -> None:
        self._text = text
        self._calls = 0

    def start(self, seen: Seen) -> Any:
        if self._text and not seen.results:
            yield Say(self._text)
        while True:
            self._calls += 1
            yield MakeCall("look", {"city": f"C{self._calls}"})


class Learning:
    """A Cursor model that makes an invalid call, then a valid one, and answers."""

    def start(self, seen: Seen) -> Any:
        yield MakeCall("look", {"town": "Rome"})
        yield Say("Again. ")
        [result] = yield MakeCall("look", {"city": "Rome"})
        yield Say(f"It says: {result.text}")


class Obedient:
    """A model of Cursor's that calls for as long as it has tools, and answers when it has none."""

    def start(self, seen: Seen) -> Any:
        number = len(seen.results)
        while seen.tools:
            number += 1
            yield MakeCall("look", {"city": f"C{number}"})
        yield Say("That is all.")


Stage = Callable[[Path], AbstractAsyncContextManager[tuple[Host, str]]]


@asynccontextmanager
async def cursor(transport: str, model: Any) -> AsyncIterator[tuple[BackendConfig, Simulator]]:
    simulator = Simulator(model=model, settings=Settings(heartbeat=0.5))
    await simulator.start()
    yield (
        BackendConfig(
            name="cursor",
            kind="cursor",
            base_url=simulator.url,
            token=Secret(TOKEN),
            client_version="cli-2026.01.09",
            retries=0,
            transport=transport,  # type: ignore[arg-type] # one of its values
            models=("default",),
        ),
        simulator,
    )
    await simulator.close()


@asynccontextmanager
async def host_of(kind: str, folder: Path, model: Any) -> AsyncIterator[Host]:
    name, way, *version = kind.split("-")
    if name == "cursor":
        async with cursor(way, model) as (config, _):
            host = Host(with_backends(Config(), (config,)))
            yield host
            await host.close()
        return
    environ, mark = environment()
    command = (sys.executable, "-S", "-E", str(SERVER), "--minor", version[0], "--journal", str(folder / "journal"))
    tier: Any = way if int(version[0]) >= 145 else "auto"
    config = BackendConfig(
        name="codex", kind="codex", command=(*command, "--stubborn"), tier=tier, workers=1, models=("default",)
    )
    host = Host(with_backends(Config(), (config,)))
    host.runtime.backends["codex"] = CodexBackend(config, environ | {"HOME": str(folder)}, folder / "cache")
    yield host
    await host.close()
    assert all_gone(mark)


def run_loop(
    kind: str, folder: Path, tools: Sequence[Runnable], model: Any, telemetry: Prometheus | None = None
) -> tuple[list[LoopEvent], Loop]:
    async def main() -> tuple[list[LoopEvent], Loop]:
        async with asyncio.timeout(60), host_of(kind, folder, model) as host:
            loop = Loop(
                host.runtime,
                asked("Look around. ROUNDS=9", model=f"{kind.partition('-')[0]}/default"),
                tools,
                Terms(max_iterations=BOUND),
                hooks=Hooks(telemetry=telemetry or Prometheus()),
            )
            return [event async for event in loop.events()], loop

    return asyncio.run(main())


def ending(events: Sequence[LoopEvent]) -> CompleteEvent:
    assert isinstance(events[-1], CompleteEvent)
    return events[-1]


@pytest.mark.slow
@pytest.mark.parametrize("kind", STUBBORN)
def test_a_model_that_never_stops_calling_ends_with_its_text(kind: str, tmp_path: Path) -> None:
    look, counted = Look(), Prometheus()
    events, loop = run_loop(kind, tmp_path, look.tools, Stubborn("Let me see. "), counted)
    assert not [event for event in events if isinstance(event, ErrorEvent)]
    assert (ending(events).reason, loop.failure) == ("max_iterations", None)
    assert ending(events).text.strip() == "Let me see."
    assert loop.iterations == BOUND + 1
    assert len(look.cities) == len(pairs(loop.messages)) >= BOUND
    page = counted.render().decode()
    name = kind.partition("-")[0]
    assert f'toolwire_tool_loop_max_iterations_total{{backend="{name}",model="default"}} 1.0' in page


@pytest.mark.parametrize("transport", ["run", "sse"])
def test_without_text_the_last_call_is_the_text(transport: str, tmp_path: Path) -> None:
    look = Look()
    events, _ = run_loop(f"cursor-{transport}", tmp_path, look.tools, Stubborn())
    assert ending(events).reason == "max_iterations"
    assert ending(events).text == '[call of look: {"city":"C8"}]'
    assert look.cities == ["C1", "C2", "C3"]


@pytest.mark.parametrize("transport", ["run", "sse"])
def test_a_model_that_answers_when_it_has_no_tools(transport: str, tmp_path: Path) -> None:
    events, _ = run_loop(f"cursor-{transport}", tmp_path, Look().tools, Obedient())
    assert (ending(events).text, ending(events).reason) == ("That is all.", "max_iterations")


@pytest.mark.parametrize("transport", ["run", "sse"])
def test_a_task_from_a_wrong_call_to_the_answer(transport: str, tmp_path: Path) -> None:
    look = Look()
    events, loop = run_loop(f"cursor-{transport}", tmp_path, look.tools, Learning())
    assert [tag for tag in kinds_of(events) if not tag.startswith("status")] == [
        "tool_error",
        "text",
        "tool_call",
        "tool_result",
        "text",
        "complete",
    ]
    [error] = [event for event in events if isinstance(event, ToolErrorEvent)]
    assert (error.kind, error.missing, error.received) == ("invalid", ("city",), {"town": "Rome"})
    [call] = [event for event in events if isinstance(event, ToolCallEvent)]
    [result] = [event for event in events if isinstance(event, ToolResultEvent)]
    assert (call.arguments, call.id) == ({"city": "Rome"}, result.id)
    assert (ending(events).text, ending(events).reason) == ("It says: rain in Rome", "done")
    assert look.cities == ["Rome"]
    assert len(pairs(loop.messages)) == 2


@pytest.mark.slow
@pytest.mark.parametrize("text", ["Let me see. ", ""])
@pytest.mark.parametrize("transport", ["run", "sse"])
def test_an_agent_with_a_gateway_url(transport: str, text: str) -> None:
    """The agent knows nothing of Cursor: the mark of the error crosses the wire, and the gateway counts the task."""

    async def main() -> None:
        async with asyncio.timeout(60), cursor(transport, Stubborn(text)) as (config, _):
            with gateway(with_backends(Config(server=server_config()), (config,))) as running:
                url = f"http://127.0.0.1:{running.port}"
                agent = Agent("cursor/default", Look().tools, url=url, terms=Terms(max_iterations=BOUND))
                result = await agent.run("Look around.")
                page = (await asyncio.to_thread(ask, running.port, "GET", "/metrics")).body.decode()
        assert (result.reason, result.iterations) == ("max_iterations", BOUND + 1)
        assert result.text.strip() == (text.strip() or '[call of look: {"city":"C8"}]')
        assert 'toolwire_tool_loop_max_iterations_total{backend="cursor",model="default"} 1.0' in page

    asyncio.run(main())
