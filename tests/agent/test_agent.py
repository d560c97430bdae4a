"""The agent as programs use it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import toolwire
from tests.agent_harness import IN_PROCESS, MODEL, Weather, calls, kinds_of, pairs, script
from toolwire import Agent, Context, Conversation, Decision, Terms, tool
from toolwire.agent.events import CompleteEvent, ToolCallEvent
from toolwire.config.prices import Price
from toolwire.errors import BadRequest, ConfigError, UpstreamError
from toolwire.tools import Runnable
from toolwire.tools.functions import function_tool

PROMPT = script(calls(("weather", {"city": "Rome"}), text="I will look."), {"text": "So: {{result:0}}", "chunk": 3})


def agent(tools: Iterable[Any] | None = None, **more: Any) -> Agent:
    return Agent(MODEL, Weather().tools if tools is None else tools, config=IN_PROCESS, **more)


class Source:
    """Tools that come and go together."""

    def __init__(self, problem: str = "") -> None:
        self.told: list[str] = []
        self._problem = problem

    async def open(self) -> None:
        self.told.append("open")
        await asyncio.sleep(0.01)
        if self._problem:
            raise ConfigError(self._problem)

    async def tools(self) -> Sequence[Runnable]:
        assert self.told[-1] == "open"
        return Weather().tools

    async def close(self) -> None:
        self.told.append("close")


def test_a_task() -> None:
    result = asyncio.run(agent().run(PROMPT))
    assert (result.text, result.reason, result.iterations) == ("So: Rome: rain for 1 days", "done", 2)
    assert result.usage.output > 0
    assert [message.role for message in result.conversation.messages] == ["user", "assistant", "tool", "assistant"]
    assert result.conversation.model == MODEL


def test_events_and_the_conversation_at_the_end() -> None:
    kept: list[Conversation] = []

    async def main() -> list[Any]:
        return [event async for event in agent().stream(PROMPT, None, kept.append)]

    events = asyncio.run(main())
    assert isinstance(events[-1], CompleteEvent)
    assert len(pairs(kept[0].messages)) == 1


def test_without_an_event_loop() -> None:
    events = list(agent().stream_sync(PROMPT))
    assert kinds_of(events)[-2:] == ["text", "complete"]
    assert agent().run_sync(PROMPT).text == "So: Rome: rain for 1 days"


def test_without_an_event_loop_a_reader_may_stop() -> None:
    kept: list[Conversation] = []
    source = Source()
    for event in agent([source]).stream_sync(PROMPT, None, kept.append):
        if isinstance(event, ToolCallEvent):
            break
    (conversation,) = kept
    ((_, text),) = pairs(conversation.messages)
    assert text.startswith("Interrupted")
    assert source.told == ["open", "close"]
    assert not [thread for thread in threading.enumerate() if thread.name == "toolwire-agent"]


def test_a_conversation_continues() -> None:
    one = agent(instructions="Be brief.")
    first = one.run_sync(PROMPT)
    second = one.run_sync(script({"text": "Again."}), first.conversation)
    assert second.conversation.messages[:4] == first.conversation.messages
    assert [message.role for message in second.conversation.messages[4:]] == ["user", "assistant"]


def test_instructions_are_not_part_of_the_conversation() -> None:
    result = agent(instructions="Be brief.").run_sync(script({"echo": True}))
    assert "Be brief." in result.text
    assert "system" not in {message.role for message in result.conversation.messages}


def test_a_failure_is_raised_as_it_was_and_the_conversation_kept() -> None:
    kept: list[Conversation] = []
    prompt = script(
        calls(("weather", {"city": "Rome"})), {"error": {"status": 429, "message": "Slowly.", "code": "busy"}}
    )
    with pytest.raises(UpstreamError, match="Slowly") as raised:
        agent().run_sync(prompt, None, kept.append)
    assert (raised.value.status, raised.value.code) == (429, "busy")
    assert len(pairs(kept[0].messages)) == 1


def test_an_unknown_model() -> None:
    with pytest.raises(BadRequest, match="nobody/m"):
        Agent("nobody/m", config=IN_PROCESS).run_sync("hi")


@pytest.mark.parametrize("is_kept", [True, False], ids=["async with", "without"])
def test_twice_at_once_and_one_after_the_other(is_kept: bool) -> None:
    source = Source()
    one = agent([source])

    async def tasks() -> None:
        results = await asyncio.gather(*(one.run(PROMPT) for _ in range(3)))
        assert {result.text for result in results} == {"So: Rome: rain for 1 days"}
        assert (await one.run(PROMPT)).text == "So: Rome: rain for 1 days"

    async def main() -> None:
        if not is_kept:
            await tasks()
            return
        async with one as entered:
            assert entered is one
            await tasks()
            assert source.told[-1] == "open"

    for run in (1, 2):
        asyncio.run(main())
        assert source.told == ["open", "close"] * run * (1 if is_kept else 2)


def test_a_task_that_ends_does_not_close_the_tools_of_another() -> None:
    source = Source()
    one = agent([source])
    slow = script(
        calls(("weather", {"city": "Slow"}), delay=0.05), calls(("weather", {"city": "Slow"})), {"text": "late"}
    )

    async def main() -> None:
        late = asyncio.create_task(one.run(slow))
        await asyncio.sleep(0.02)
        assert (await one.run(script({"text": "early"}))).text == "early"
        assert source.told == ["open"]
        assert (await late).text == "late"

    asyncio.run(main())
    assert source.told == ["open", "close"]


def test_in_several_threads_at_once() -> None:
    one = agent()
    texts: list[str] = []
    threads = [threading.Thread(target=lambda: texts.append(one.run_sync(PROMPT).text)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == ["So: Rome: rain for 1 days"] * 4


def test_a_source_that_does_not_open_is_reported_and_closed() -> None:
    first, second = Source(), Source("The server did not start.")
    with pytest.raises(ConfigError, match="did not start"):
        agent([first, second]).run_sync(PROMPT)
    assert (first.told, second.told) == (["open", "close"], ["open", "close"])


def _double(number: int) -> int:
    """Twice."""
    return 2 * number


@pytest.mark.parametrize(
    "tools",
    [
        [_double],
        [tool(_double)],
        [function_tool(_double)],
        [[_double]],
        ([function_tool(_double)],),
        [(one for one in [_double])],
    ],
)
def test_tools_in_every_form(tools: Iterable[Any]) -> None:
    one = agent([function_tool(given, name="_double") if given is _double else given for given in tools])
    assert one.run_sync(script(calls(("_double", {"number": 4})), {"text": "{{result:0}}"})).text == "8"


def test_a_function_may_use_names_of_where_it_stands() -> None:
    @dataclass
    class Place:
        city: str

    def where(place: Place) -> str:
        return place.city

    prompt = script(calls(("where", {"place": {"city": "Rome"}})), {"text": "{{result:0}}"})
    one = Agent(MODEL, (given for given in [where]), config=IN_PROCESS)
    assert [one.run_sync(prompt).text for _ in range(2)] == ["Rome", "Rome"]


@pytest.mark.parametrize("wrong", ["weather", 7, b"x", None])
def test_an_object_that_is_not_a_tool_is_refused(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="expected a function"):
        agent([wrong])


def test_two_tools_with_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="several tools of one name: weather"):
        agent([*Weather().tools, *Weather().tools]).run_sync("hi")


def test_approvals_and_terms() -> None:
    asked: list[str] = []

    def approve(event: ToolCallEvent, runnable: Runnable) -> Decision:
        asked.append(event.name)
        return Decision(is_allowed=False, reason="Not today.")

    turns = [calls(("weather", {"city": f"C{number}"})) for number in range(5)]
    one = agent(approve=approve, terms=Terms(max_iterations=2))
    result = one.run_sync(script(*turns[:2], {"text": "{{result:1}}"}))
    assert asked == ["weather"] * 2
    assert result.reason == "max_iterations"
    assert result.text.endswith("Not today.")


def test_a_stream_that_is_closed_at_once() -> None:
    async def main() -> None:
        async with aclosing(agent().stream(PROMPT)) as events:
            await anext(events)
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


def test_the_package_offers_it_and_stays_light() -> None:
    for name in toolwire.__all__:
        assert getattr(toolwire, name) is not None
        assert name in dir(toolwire)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        toolwire.Nothing  # noqa: B018 # it is looked up
    program = "import sys, toolwire; print(sorted(name for name in sys.modules if name.startswith('toolwire.')), 'asyncio' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=20)
    assert found.stdout == "[] False\n"


INTERRUPTED = """
import os, signal, time
from toolwire import Agent

signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent that runs us in the background may ignore it

def work() -> str:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.3)
    return "done"

kept = []
agent = Agent("demo/echo-tools", [work])
try:
    {how}
except KeyboardInterrupt:
    (conversation,) = kept
    print([message.role for message in conversation.messages], conversation.messages[-1].parts[0].parts[0].text[:11])
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "how", ['agent.run_sync("work", None, kept.append)', 'list(agent.stream_sync("work", None, kept.append))']
)
def test_control_c_leaves_a_valid_conversation(how: str, tmp_path: Path) -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "PYTHONPATH": str(Path(toolwire.__file__).parents[1]),
    }
    command = [sys.executable, "-W", "error", "-c", INTERRUPTED.format(how=how)]
    found = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=20)
    assert (found.stdout, found.stderr) == ("['user', 'assistant', 'tool'] Interrupted\n", "")


def test_run_sync_inside_an_event_loop_runs_in_a_thread() -> None:
    async def run() -> tuple[str, list[Any]]:
        broken = script({"error": {"status": 429, "message": "Slowly."}})
        with pytest.raises(UpstreamError, match="Slowly"):
            agent().run_sync(broken)
        return agent().run_sync(PROMPT).text, list(agent().stream_sync(PROMPT))

    text, events = asyncio.run(run())
    assert text == "So: Rome: rain for 1 days"
    assert isinstance(events[-1], CompleteEvent)


@dataclass
class Shop:
    stock: dict[str, int]


def count(item: str, context: Context[Shop]) -> int:
    return context.deps.stock[item]


def test_tools_get_the_dependencies_of_the_task() -> None:
    one = agent([count])
    prompt = script(calls(("count", {"item": "lamp"})), {"text": "{{result:0}}"})
    assert one.run_sync(prompt, deps=Shop({"lamp": 7})).text == "7"
    assert one.run_sync(prompt, deps=Shop({"lamp": 8})).text == "8"


def test_dependencies_of_another_type_are_refused_before_the_first_request() -> None:
    with pytest.raises(ConfigError, match="needs deps of type Shop; found NoneType"):
        agent([count]).run_sync(PROMPT)


def test_the_cost_by_the_prices() -> None:
    assert agent().run_sync(PROMPT).cost is None
    result = agent(terms=Terms(prices=(1.0, 2.0))).run_sync(PROMPT)
    assert result.cost == pytest.approx((result.usage.input + 2 * result.usage.output) / 1e6)


def test_the_cost_by_the_prices_of_the_configuration() -> None:
    priced = replace(IN_PROCESS, prices={"s/*": Price(input=3.0, output=5.0)})
    priced_agent = Agent(MODEL, Weather().tools, config=priced)
    result = priced_agent.run_sync(PROMPT)
    assert result.iterations == 2
    assert result.cost == pytest.approx((3 * result.usage.input + 5 * result.usage.output) / 1e6, rel=1e-3)
    limited = Agent(MODEL, Weather().tools, config=priced, terms=Terms(max_cost=1e-9)).run_sync(PROMPT)
    assert (limited.reason, limited.iterations) == ("budget", 1)
    own = Agent(MODEL, Weather().tools, config=priced, terms=Terms(prices=(1.0, 1.0))).run_sync(PROMPT)
    assert own.cost == pytest.approx((own.usage.input + own.usage.output) / 1e6)


def test_a_missing_configuration_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"missing\.toml"):
        Agent("demo/echo-tools", config=tmp_path / "missing.toml").run_sync("Hello.")
