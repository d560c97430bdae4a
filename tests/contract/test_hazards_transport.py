"""Hazards of the transport: silence, broken connections, retries, rejections and timeouts; through a running gateway."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.server.answers import ARGUMENTS, arguments_of, error_in, failure_in, frames, is_ended, streamed, text_of
from tests.server.harness import CLOSE, HOLD, LAST_CHUNK, RESET, Step, chunk, reply, stream_head

from .harness import NAMES, PAIRS, Stage, on_stage, stream_steps, talk

each_client = pytest.mark.parametrize("client", NAMES)
each_pair = pytest.mark.parametrize(("client", "backend"), PAIRS)
STARTS = {"chat": "", "responses": "response.created", "messages": "message_start"}


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """A heartbeat every twentieth of a second, and back ends that are tried three times or wait only a moment."""
    hasty = {"idle_timeout": 0.25, "first_byte_timeout": 0.25}
    with on_stage(("-eager", {"retries": 2}), ("-hasty", hasty), keep_alive=0.05) as running:
        yield running


def starts_in(client: str, events: list[tuple[str, Any]]) -> int:
    if client == "chat":
        chunks = [data for event, data in events if event != ":" and isinstance(data, dict) and "choices" in data]
        return sum(choice["delta"].get("role") == "assistant" for data in chunks for choice in data["choices"])
    return sum(event == STARTS[client] for event, _ in events)


def without_beats(events: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    return [(event, data) for event, data in events if event not in (":", "ping")]


@pytest.mark.parametrize(("client", "backend"), [("chat", "messages"), ("responses", "chat"), ("messages", "messages")])
def test_H152_heartbeats_end_with_the_idle_timeout(stage: Stage, client: str, backend: str) -> None:
    """It falls silent after its first words: heartbeats come, and then the end that says so."""
    answer = stage.ask(client, f"{backend}-hasty", talk(client), [stream_head(), chunk(frames(backend)[0]), HOLD])
    events = answer.events
    assert sum(event in (":", "ping") for event, _ in events) >= 1
    assert "sent nothing for 0.25 s" in failure_in(client, events)
    assert stage.received()[-1].left.wait(2)


@each_pair
def test_H153_no_heartbeat_is_sent_inside_an_event(stage: Stage, client: str, backend: str) -> None:
    """The back end pauses in the middle of each frame, for longer than a heartbeat."""
    wire = b"".join(frames(backend, call=ARGUMENTS))
    third = len(wire) // 3
    pieces = [wire[:third], wire[third : 2 * third], wire[2 * third :]]
    steps: list[Step] = [stream_head()]
    for piece in pieces:
        steps += [chunk(piece), 0.2]
    answer = stage.ask(client, backend, talk(client), [*steps, LAST_CHUNK])
    events = answer.events
    assert sum(event in (":", "ping") for event, _ in events) >= 1
    rest = without_beats(events)
    assert (text_of(client, rest), arguments_of(client, rest)) == ("Hello there", ARGUMENTS)
    assert is_ended(client, rest)


@each_pair
def test_H160_a_retry_before_the_answer_starts_it_once(stage: Stage, client: str, backend: str) -> None:
    refusal: list[Step] = [reply(503, b"{}", retry_after="0.01")]
    before = len(stage.received())
    answer = stage.ask(client, f"{backend}-eager", talk(client), refusal, refusal, streamed(backend, call=ARGUMENTS))
    events = without_beats(answer.events)
    assert starts_in(client, events) == 1
    assert (text_of(client, events), arguments_of(client, events)) == ("Hello there", ARGUMENTS)
    assert len(stage.received()) == before + 3


def mid_stream(backend: str, how: str) -> list[Step]:
    """A few words, and then something that would have been tried again before them."""
    kept = frames(backend, call=ARGUMENTS)
    last = next(place for place, one in enumerate(kept) if b"there" in one)
    opening: list[Step] = [stream_head(), *(chunk(one) for one in kept[: last + 1]), 0.01]
    error = {"type": "overloaded_error", "message": "busy", "code": 503}
    event = {"type": "error", "error": error} if backend == "messages" else {"error": error}
    if backend == "responses":
        event = {"type": "response.failed", "response": {"id": "r", "status": "failed", "error": error, "output": []}}
    name = f"event: {event['type']}\n" if "type" in event else ""
    told = f"{name}data: {json.dumps(event)}\n\n".encode()
    endings: dict[str, list[Step]] = {
        "closed": [CLOSE],
        "reset": [RESET],
        "ended": [LAST_CHUNK],
        "told": [chunk(told), LAST_CHUNK],
    }
    return opening + endings[how]


@pytest.mark.parametrize("how", ["closed", "reset", "ended", "told"])
@each_pair
def test_H159_H161_after_the_first_text_no_fault_is_retried(stage: Stage, client: str, backend: str, how: str) -> None:
    before = len(stage.received())
    play = mid_stream(backend, how)
    answer = stage.ask(client, f"{backend}-eager", talk(client), play, streamed(backend))
    events = without_beats(answer.events)
    assert text_of(client, events) == "Hello there"
    assert failure_in(client, events)
    assert starts_in(client, events) == 1
    assert len(stage.received()) == before + 1


@each_client
def test_H164_a_timeout_does_not_affect_the_next_request(stage: Stage, client: str) -> None:
    """Silence is a time-out of its own kind, never a quota; and the next request goes there as if nothing had been."""
    body = talk(client, stream=False)
    answer = stage.ask(client, f"{client}-hasty", body, [HOLD])
    assert answer.status == 504
    assert "retry-after" not in answer.headers
    assert "did not answer in 0.25 s" in error_in(client, answer.json)["message"]
    before = len(stage.received())
    assert stage.ask(client, f"{client}-hasty", body, stream_steps(*frames(client))).status == 200
    assert len(stage.received()) == before + 1
