from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from toolwire.backends.replay.backend import ReplayBackend
from toolwire.backends.replay.cassette import CassetteEntry, TimedEvents
from toolwire.backends.replay.damage import parse_damage
from toolwire.dialects import DIALECTS
from toolwire.errors import BadRequest, UpstreamError
from toolwire.events import Event, Finished, Started
from toolwire.types import Choice, Request


def request(text: str) -> Request:
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    return DIALECTS["chat"].decode_request(json.dumps(body).encode(), {})


def entry(number: int, text: str, answer_id: str) -> CassetteEntry:
    steps = (
        TimedEvents(0.0, [Started(id=answer_id, model="m")]),
        TimedEvents(1.5, [Finished(choices=(Choice(reason="stop"),))]),
    )
    return CassetteEntry(number=number, dialect="chat", model="m", request=request(text), answer=steps)


def play(backend: ReplayBackend, text: str) -> str:
    """The id of the answer."""

    async def run() -> list[Event]:
        reply = await backend.open(request(text), is_verbatim=False)
        return [event async for batch in reply.events for event in batch]

    started = asyncio.run(run())[0]
    assert isinstance(started, Started)
    return started.id


def test_equal_requests_are_answered_in_order_and_the_last_again() -> None:
    backend = ReplayBackend("r", [entry(1, "Hi", "a"), entry(2, "Hi", "b"), entry(3, "Ho", "c")])
    assert [play(backend, "Hi") for _ in range(3)] == ["a", "b", "b"]
    assert backend.unused == [3]


def test_a_miss_names_the_nearest_entry() -> None:
    backend = ReplayBackend("r", [entry(4, "Hello there", "a"), entry(7, "Nothing", "b")])
    with pytest.raises(BadRequest, match="nearest is line 4: message 1 differs") as caught:
        play(backend, "Hello you")
    assert caught.value.code == "cassette_miss"
    assert len(backend.misses) == 1
    with pytest.raises(BadRequest, match="has no entries"):
        play(ReplayBackend("r", []), "Hi")


def test_pauses_are_kept_on_request() -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    play(ReplayBackend("r", [entry(1, "Hi", "a")], has_pauses=True, sleep=sleep), "Hi")
    play(ReplayBackend("r", [entry(1, "Hi", "a")], sleep=sleep), "Hi")
    assert slept == [1.5]


def test_damage_is_for_one_answer_or_for_all() -> None:
    backend = ReplayBackend("r", [entry(1, "Hi", "a")], damage=(parse_damage("429@2"),))
    assert play(backend, "Hi") == "a"
    with pytest.raises(UpstreamError) as caught:
        play(backend, "Hi")
    assert caught.value.status == 429
    assert play(backend, "Hi") == "a"


def test_models_are_those_of_the_cassette() -> None:
    async def names() -> list[Any]:
        return [model.id for model in await ReplayBackend("r", [entry(1, "a", "a"), entry(2, "b", "b")]).models()]

    assert asyncio.run(names()) == ["m"]
