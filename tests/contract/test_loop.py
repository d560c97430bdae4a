"""The tool loop on every kind of back end: the same events, requests that strict providers accept, and conversations that continue anywhere."""

from __future__ import annotations

import asyncio
import gc
import resource
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import Any

import pytest

from tests.agent_harness import KINDS, Providers, Weather, calls, folded, kinds_of, pairs, providers, script
from tests.clients.gateway import scripted
from tests.contract.strict.proofs import signature_of
from tests.thorough import is_thorough, some
from toolwire import Agent, Conversation, Terms
from toolwire.agent.events import LoopEvent, StatusEvent, ToolResultEvent
from toolwire.config.file import BackendConfig, Config, with_backends
from toolwire.telemetry.prometheus import Prometheus
from toolwire.tools.functions import function_tool
from toolwire.types import Media

STRICT = tuple(kind for kind in KINDS if kind != "gemini")  # those whose refusals are written down


@pytest.fixture(scope="module")
def stage() -> Iterator[Providers]:
    with providers() as running:
        yield running


@pytest.fixture(autouse=True)
def _check_no_refusal(stage: Providers) -> Iterator[None]:
    stage.refused.clear()
    stage.seen.clear()
    yield
    assert stage.refused == []


def thinking(kind: str, text: str = "Where is it?") -> dict[str, Any]:
    """What a provider of this kind can prove to have thought, and takes back."""
    return {"reasoning": text, "signature": signature_of(text)} if kind == "anthropic" else {}


def task(kind: str) -> str:
    """Several rounds, with all that a loop can meet."""
    first = calls(
        ("weather", {"city": "Slow"}), ("weather", {"city": "Rome"}), text="I will look. ", chunk=4, **thinking(kind)
    )
    wrong = calls(("weather", {"town": "x"}), ("nothing", {"a": [1, "é"]}))
    again = calls(("weather", {"city": "Zürich", "days": 3}))
    return script(first, wrong, again, {"text": "It rains: {{result:4}}", "chunk": 5}, strict=False)


def events_of(
    agent: Agent, prompt: str, conversation: Conversation | None = None
) -> tuple[list[LoopEvent], Conversation]:
    kept: list[Conversation] = []

    async def main() -> list[LoopEvent]:
        return [event async for event in agent.stream(prompt, conversation, kept.append)]

    return asyncio.run(main()), kept[0]


def agent_of(stage: Providers, kind: str, **more: Any) -> Agent:
    return Agent(f"{kind}/scripted", Weather().tools, config=stage.config(), **more)


def without_usage(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """How many tokens a prompt has is each provider's own count."""
    return [event | {"usage": None} if event["type"] == "complete" else event for event in events]


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_script_gives_the_same_events_everywhere(stage: Providers, kind: str) -> None:
    prompt = task("")
    expected, _ = events_of(agent_of(stage, KINDS[0]), prompt)
    events, conversation = events_of(agent_of(stage, kind), prompt)
    assert without_usage(folded(events)) == without_usage(folded(expected))
    assert kinds_of(events)[:9] == [
        "status:asking",
        "text",
        "status:calling",
        "status:arguments",
        "status:calling",
        "status:arguments",
        "tool_call",
        "tool_call",
        "tool_result",
    ]
    assert events[-1].text == "It rains: Zürich: rain for 3 days"  # type: ignore[union-attr] # complete
    assert len(pairs(conversation.messages)) == 5


@pytest.mark.parametrize("kind", KINDS)
def test_reasoning_arrives_from_every_back_end_that_has_it(stage: Providers, kind: str) -> None:
    prompt = script(calls(("weather", {"city": "Rome"}), reasoning="Hm, where?"), {"text": "ok"}, strict=False)
    events, _ = events_of(agent_of(stage, kind), prompt)
    said = [event["text"] for event in folded(events) if event["type"] == "reasoning"]
    assert said == ["Hm, where?"]
    if kind == "openai-responses":
        stage.refused.clear()  # the proof of items is the strict provider's own, and no script can know it


@pytest.mark.parametrize("kind", STRICT)
@pytest.mark.parametrize("effort", [None, "high"])
def test_strict_providers_accept_every_request(stage: Providers, kind: str, effort: str | None) -> None:
    events, _ = events_of(agent_of(stage, kind, effort=effort, instructions="Be brief."), task(kind if effort else ""))
    assert len(stage.seen) == 4
    assert events[-1].reason == "done"  # type: ignore[union-attr] # complete


@pytest.mark.parametrize("kind", KINDS)
def test_strict_providers_accept_the_last_request(stage: Providers, kind: str) -> None:
    """It offers nothing to call, and the conversation is full of calls."""
    turns = [calls(("weather", {"city": f"C{number}"}), text="Well, ") for number in range(2)]
    agent = agent_of(stage, kind, terms=Terms(max_iterations=2))
    events, _ = events_of(agent, script(*turns, {"text": "That is all."}, strict=False))
    assert (events[-1].text, events[-1].reason) == ("That is all.", "max_iterations")  # type: ignore[union-attr] # complete
    assert len(stage.seen) == 3
    # Where a history with calls needs their tools, they stand there and may not be called.
    offered = [bool(body.get("tools")) and "none" not in str(body.get("tool_choice")) for _, body in stage.seen]
    assert offered == [True, True, False]


@pytest.mark.parametrize("kind", KINDS)
def test_H048_repeated_ids_are_distinguished(stage: Providers, kind: str) -> None:
    turns = [{"calls": [{"name": "weather", "arguments": {"city": city}, "id": "call_0"}]} for city in "ABC"]
    events, conversation = events_of(agent_of(stage, kind), script(*turns, {"text": "{{result:2}}"}, strict=False))
    assert events[-1].text == "C: rain for 1 days"  # type: ignore[union-attr] # complete
    assert len(pairs(conversation.messages)) == 3


def _giving(value: Any) -> Any:
    async def give() -> Any:
        return value

    return give


PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@pytest.mark.parametrize("kind", KINDS)
def test_any_calls_and_results_are_accepted(stage: Providers, kind: str) -> None:
    outputs: dict[str, Any] = {
        "half": "\ud800 \x00 é \u2028",
        "nothing": "",
        "blank": " \n",
        "picture": Media(kind="image", mime="image/png", data=PIXEL),
        "data": {"a": [1, 0.5, None]},
        "very.odd/name with spaces": "odd",
        "n" * 80: "long",
    }
    tools = [function_tool(_giving(value), name=name) for name, value in outputs.items()]
    agent = Agent(f"{kind}/scripted", tools, config=stage.config())
    events, conversation = events_of(
        agent, script(calls(*((name, {}) for name in outputs)), {"text": "ok"}, strict=False)
    )
    assert [event.name for event in events if isinstance(event, ToolResultEvent)] == list(outputs)
    assert events[-1].text == "ok"  # type: ignore[union-attr] # complete
    assert len(pairs(conversation.messages)) == len(outputs)
    events_of(agent, scripted({"text": "ok"}), Conversation.from_data(conversation.to_data()))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_task_interrupted_at_any_event_continues_at_the_same_provider(stage: Providers, kind: str) -> None:
    asyncio.run(_interrupted(stage, kind, (kind,)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_task_interrupted_at_any_event_continues_at_every_provider(stage: Providers, kind: str) -> None:
    asyncio.run(_interrupted(stage, kind, KINDS))


async def _interrupted(stage: Providers, kind: str, others: tuple[str, ...]) -> None:
    """After each event it continues at one of the others, by turns."""
    config = stage.config()
    async with AsyncExitStack() as stack:
        agents = {
            other: await stack.enter_async_context(Agent(f"{other}/scripted", Weather().tools, config=config))
            for other in {kind, *others}
        }
        whole = [event async for event in agents[kind].stream(task(kind))]
        assert len(whole) > 20  # texts that arrive together are one event
        for count in range(1, len(whole) + 1):
            kept: list[Conversation] = []
            async with aclosing(agents[kind].stream(task(kind), None, kept.append)) as events:
                for _ in range(count):
                    await anext(events)
            pairs(kept[0].messages)
            saved = Conversation.from_data(kept[0].to_data())
            for other in others if is_thorough() else (others[count % len(others)],):
                result = await agents[other].run(scripted({"text": "And now?"}), saved)
                assert result.text == "And now?"
    assert stage.refused == []


@pytest.mark.parametrize("other", KINDS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_conversation_continues_with_another_model(
    stage: Providers, kind: str, other: str, tmp_path: Path
) -> None:
    """Also of the same kind: the thoughts of one model are nothing for another."""
    prompt = script(
        calls(
            ("weather", {"city": "Rome"}), text="Look.", reasoning="Hm, where?", signature=signature_of("Hm, where?")
        ),
        {"text": "It rains.", "reasoning": "So.", "signature": signature_of("So.")},
        strict=False,
    )
    _, conversation = events_of(agent_of(stage, kind), prompt)
    conversation.save(tmp_path / "talk.json")
    stage.refused.clear()  # another test checks the reasoning that the first model gets
    stage.seen.clear()
    backend = stage.backend(other, "second")
    agent = Agent("second/scripted", Weather().tools, config=with_backends(Config(), (backend,)))
    loaded = Conversation.load(tmp_path / "talk.json")
    assert loaded == conversation
    events, resumed = events_of(agent, scripted({"echo": True}), loaded)
    said = events[-1].text  # type: ignore[union-attr] # complete
    assert "Hm, where?" not in said
    assert "So." not in said
    assert "Rome: rain for 1 days" in said
    assert "It rains." in said
    assert resumed.model == "second/scripted"
    assert resumed.messages[: len(conversation.messages)] == conversation.messages
    assert len(stage.seen) == 1


def test_reasoning_returns_to_the_model_that_created_it(stage: Providers) -> None:
    prompt = script(calls(("weather", {"city": "Rome"}), **thinking("anthropic")), {"text": "It rains."}, strict=False)
    agent = agent_of(stage, "anthropic", effort="high")
    _, conversation = events_of(agent, prompt)
    events_of(agent, scripted({"text": "ok"}), Conversation.from_data(conversation.to_data()))
    _, body = stage.seen[-1]
    assert body["messages"][1]["content"][0]["signature"] == signature_of("Where is it?")


def test_an_agent_with_a_gateway_url(stage: Providers) -> None:
    """The agent asks a gateway that runs elsewhere; which models there are is that one's matter."""
    weather = Weather()
    agent = Agent("s/scripted", weather.tools, url=f"{stage.url}/v1", key="unused")
    events, conversation = events_of(agent, task("anthropic"))
    inside, _ = events_of(
        Agent(
            "s/scripted", Weather().tools, config=with_backends(Config(), (BackendConfig(name="s", kind="scripted"),))
        ),
        task("anthropic"),
    )
    assert without_usage(folded(events)) == without_usage(folded(inside))
    assert weather.asked == ["Slow", "Rome", "Zürich"]
    assert [dialect for dialect, _ in stage.seen] == ["messages"] * 4
    assert len(pairs(conversation.messages)) == 5


@pytest.mark.parametrize("is_by_url", [True, False])
def test_a_task_that_reaches_its_limit_is_counted_once(stage: Providers, is_by_url: bool) -> None:
    own = Prometheus()
    where: dict[str, Any] = {"url": f"{stage.url}/v1"} if is_by_url else {"config": stage.config()}
    model = "s/scripted" if is_by_url else "openai-chat/scripted"
    agent = Agent(model, Weather().tools, terms=Terms(max_iterations=2), telemetry=own, **where)
    before = bounds_in(stage.metrics())
    turns = [calls(("weather", {"city": f"C{number}"})) for number in range(9)]
    assert events_of(agent, script(*turns, strict=False))[0][-1].reason == "max_iterations"  # type: ignore[union-attr] # complete
    assert events_of(agent, script({"text": "ok"}))[0][-1].reason == "done"  # type: ignore[union-attr] # complete
    grown = bounds_in(stage.metrics()) - before
    assert grown == Counter({'{backend="s",model="scripted"}': 1} if is_by_url else {})
    named = "gateway" if is_by_url else "openai-chat"
    name = "s/scripted" if is_by_url else "scripted"
    assert bounds_in(own.render().decode()) == {f'{{backend="{named}",model="{name}"}}': 1}


def bounds_in(page: str) -> Counter[str]:
    name = "toolwire_tool_loop_max_iterations_total"
    found = [line.removeprefix(name).split(" ") for line in page.splitlines() if line.startswith(name)]
    return Counter({labels: int(float(value)) for labels, value in found})


def _memory() -> int:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


async def _many(agent: Agent, loops: int, at_once: int) -> None:
    gate = asyncio.Semaphore(at_once)

    async def one(number: int) -> None:
        async with gate:
            cities = [f"City {number}-{place}" for place in range(5)]
            prompt = script(calls(*(("weather", {"city": city}) for city in cities)), {"text": "{{result:4}}"})
            result = await agent.run(prompt)
            assert result.text == f"{cities[4]}: rain for 1 days"
            told = pairs(result.conversation.messages)
            assert [text for _, text in told] == [f"{city}: rain for 1 days" for city in cities]

    async with agent:
        await asyncio.gather(*(one(number) for number in range(loops)))


@pytest.mark.slow
def test_many_loops_at_once_pair_every_id(stage: Providers) -> None:
    asyncio.run(_many(agent_of(stage, "openai-chat"), 200, 20))


@pytest.mark.slow
@pytest.mark.parametrize("kind", some(KINDS, ["openai-responses", "anthropic"]))
def test_a_thousand_loops_at_fifty_keep_memory_flat(stage: Providers, kind: str) -> None:
    asyncio.run(_many(agent_of(stage, kind), 200, 50))
    stage.seen.clear()
    before = _memory()
    for _ in range(4):
        asyncio.run(_many(agent_of(stage, kind), 250, 50))
        stage.seen.clear()
    assert _memory() - before < 30 << 20


def test_stopping_the_iteration_cancels_requests_and_tools(stage: Providers) -> None:
    async def main() -> None:
        async with agent_of(stage, "openai-chat") as agent:
            async with aclosing(agent.stream(task(""))) as events:
                async for event in events:
                    if isinstance(event, ToolResultEvent):  # the slow one still runs
                        break
            assert len(asyncio.all_tasks()) == 1
            async with aclosing(agent.stream(script({"text": "x" * 500, "chunk": 1, "pace": 0.01}))) as events:
                async for event in events:
                    if not isinstance(event, StatusEvent):
                        break
            assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())
