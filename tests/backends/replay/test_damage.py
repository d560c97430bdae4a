from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from toolwire.backends.replay.damage import STALL_SECONDS, InjectedDamage, damaged, parse_damage, refusal
from toolwire.errors import ConfigError
from toolwire.events import Event, Finished, PartDelta, PartEnded, PartStarted
from toolwire.types import Choice, ToolCall

CALL = ToolCall(id="c", name="f", raw='{"a": 1}', args={"a": 1})
EVENTS: list[list[Event]] = [
    [PartStarted(index=0, part=ToolCall(id="c", name="f", raw=""))],
    [PartDelta(0, '{"a"')],
    [PartDelta(0, ": 1}")],
    [PartEnded(index=0, part=CALL)],
    [Finished(choices=(Choice(reason="tool_calls"),))],
]


def play(*kinds: str) -> tuple[list[Event], list[float]]:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async def source() -> AsyncIterator[list[Event]]:
        for batch in EVENTS:
            yield batch

    async def run() -> list[Event]:
        return [event async for batch in damaged(source(), set(kinds), sleep) for event in batch]

    return asyncio.run(run()), slept


def test_without_damage_every_event_passes() -> None:
    assert play() == ([event for batch in EVENTS for event in batch], [])


def test_a_cut_ends_the_answer_in_the_middle() -> None:
    events, slept = play("cut")
    assert events == [*EVENTS[0], *EVENTS[1]]
    assert not slept


def test_a_stall_waits_there() -> None:
    assert play("stall") == ([*EVENTS[0], *EVENTS[1]], [STALL_SECONDS])


def test_broken_arguments_lose_their_last_brace() -> None:
    events, _ = play("arguments")
    assert "".join(event.text for event in events if isinstance(event, PartDelta)) == '{"a": 1'
    ended = next(event for event in events if isinstance(event, PartEnded))
    assert isinstance(ended.part, ToolCall)
    assert (ended.part.raw, ended.part.args) == ('{"a": 1', None)


@pytest.mark.parametrize(("kind", "status"), [("429", 429), ("500", 500)])
def test_a_refusal_has_its_status(kind: str, status: int) -> None:
    error = refusal({kind})
    assert error is not None
    assert error.status == status


@pytest.mark.parametrize(("text", "expected"), [("cut", InjectedDamage("cut")), ("429@3", InjectedDamage("429", 3))])
def test_damage_is_written_as_a_kind_and_a_number(text: str, expected: InjectedDamage) -> None:
    assert parse_damage(text) == expected


@pytest.mark.parametrize("text", ["", "cut@", "explode", "cut@x"])
def test_other_damage_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="expected cut, 429"):
        parse_damage(text)
