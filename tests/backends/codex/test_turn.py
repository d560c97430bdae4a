"""One turn: how it waits for calls in versions that do not tell the last, and how it is left."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.backends.codex.asking import Stage, answered, calls_of, played, read, request, text_of, with_results
from tests.backends.codex.starting import journal
from toolwire.backends.codex.turn import LONG_SILENCE, SILENCE, TOKEN_COUNT, AnswerEnd
from toolwire.backends.codex.wire.versions import Abilities, Version
from toolwire.errors import UpstreamError
from toolwire.events import Failed

pytestmark = pytest.mark.slow


def test_without_a_mark_of_the_last_call_a_pause_ends_the_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolwire.backends.codex.turn.LONG_SILENCE", 0.1)

    async def play(stage: Stage) -> None:
        asked = request("calls", has_tools=True)
        events = await answered(stage, asked)
        assert [call.name for call in calls_of(events)] == ["get_weather", "get_weather"]
        assert text_of(await answered(stage, with_results(asked, events))).startswith("Hello")

    stage = Stage(tmp_path, "--version", "0.100.0")
    played(stage, play)
    assert stage.methods.count("thread/start") == 1


def test_a_refusal_of_the_thread_is_reported_with_its_message_and_costs_no_worker(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        with pytest.raises(UpstreamError, match="no such model here"):
            await stage.backend.open(replace(request("plain"), model="refused"), is_verbatim=False)
        await stage.until_idle()
        assert text_of(await answered(stage, request("plain")))

    stage = Stage(tmp_path)
    played(stage, play)
    assert stage.methods.count("initialize") == 1


def test_an_answer_that_stalls_fails(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        reply = await stage.backend.open(request("stall"), is_verbatim=False)
        events = await read(reply)
        failed = events[-1]
        assert isinstance(failed, Failed)
        assert failed.error.status == 504
        await stage.until_heard("turn/interrupt")

    played(Stage(tmp_path, idle_timeout=0.1), play)


def test_one_that_does_not_stop_when_requested_gets_no_more_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolwire.backends.codex.turn._STOP_SECONDS", 0.1)

    async def play(stage: Stage) -> None:
        reply = await stage.backend.open(request("deaf"), is_verbatim=False)
        [first] = stage.backend.host.pool.workers
        await reply.close()
        await stage.until_idle()
        async with asyncio.timeout(5):
            while first.is_alive:
                await asyncio.sleep(0.01)
        assert text_of(await answered(stage, request("plain")))
        assert first not in stage.backend.host.pool.workers

    played(Stage(tmp_path, workers=1), play)


def test_talk_that_says_nothing_is_silence(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        async with asyncio.timeout(3):
            with pytest.raises(UpstreamError, match="sent nothing") as caught:
                await stage.backend.open(request("chatter"), is_verbatim=False)
        assert caught.value.status == 504

    played(Stage(tmp_path, first_byte_timeout=0.3), play)


def test_results_that_are_not_taken_end_the_turn_and_it_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolwire.backends.codex.backend._LIST_SECONDS", 0.05)

    async def play(stage: Stage) -> None:
        asked = request("calls", has_tools=True)
        events = await answered(stage, asked)
        [first] = stage.backend.host.pool.workers
        with pytest.raises(UpstreamError, match="no list of its models"):
            await stage.backend.models()  # from here on it does not read
        monkeypatch.setattr("toolwire.backends.codex.turn._START_SECONDS", 1.5)
        monkeypatch.setattr("toolwire.backends.codex.turn._STOP_SECONDS", 0.1)
        again = await answered(stage, with_results(asked, events, "x" * 1_000_000))
        assert len(calls_of(again)) == 2
        async with asyncio.timeout(5):
            while first.is_alive:
                await asyncio.sleep(0.01)

    stage = Stage(tmp_path, "--deaf", "model/list", tier="held", workers=1)
    played(stage, play)
    assert stage.methods.count("initialize") == 2


def test_an_unread_turn_is_stopped_when_there_is_no_more_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolwire.backends.codex.worker._MAX_BYTES", 6000)

    async def play(stage: Stage) -> None:
        reply = await stage.backend.open(request("slow"), is_verbatim=False)
        await asyncio.sleep(0.6)
        events = await read(reply)
        failed = events[-1]
        assert isinstance(failed, Failed)
        assert "faster than it was read" in failed.error.message
        await stage.until_heard("turn/interrupt")

    stage = Stage(tmp_path)
    played(stage, play)
    assert stage.methods.count("initialize") == 1


def test_a_call_of_another_turn_is_refused_and_not_reported(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        events = await answered(stage, request("stray", has_tools=True))
        assert text_of(events).startswith("Hello")
        assert calls_of(events) == []

    stage = Stage(tmp_path)
    played(stage, play)
    [said] = [message for message in journal(stage.journal) if "method" not in message]
    assert "the turn has ended" in said["error"]["message"]


def ending(minor: int) -> AnswerEnd:
    version = Version(0, minor)
    return AnswerEnd(version, Abilities(version))


def count(total: int) -> dict[str, object]:
    return {"tokenUsage": {"total": {"totalTokens": total}, "last": {"totalTokens": 120}}}


@pytest.mark.parametrize("minor", [89, 92, 98, 110, 120, 130])
def test_older_versions_tell_it_by_counting(minor: int) -> None:
    told = ending(minor)
    assert told.silence == LONG_SILENCE
    told.notify("item/completed", count(120))
    assert told.silence == LONG_SILENCE
    told.notify(TOKEN_COUNT, count(120))
    assert told.silence == 0


@pytest.mark.parametrize("minor", [89, 130])
def test_a_count_that_is_reported_again_begins_a_response(minor: int) -> None:
    told = ending(minor)
    told.notify(TOKEN_COUNT, count(120))
    told.begin()
    told.notify(TOKEN_COUNT, count(120))
    assert told.silence == LONG_SILENCE
    told.notify(TOKEN_COUNT, count(240))
    assert told.silence == 0


def test_where_a_count_comes_after_the_results_it_has_no_effect() -> None:
    for minor, silence in ((144, SILENCE), (131, SILENCE), (145, LONG_SILENCE), (166, LONG_SILENCE)):
        told = ending(minor)
        told.notify(TOKEN_COUNT, count(120))
        assert told.silence == silence


@pytest.mark.parametrize("params", [{}, {"tokenUsage": None}, {"tokenUsage": []}, {"tokenUsage": {"total": None}}])
def test_a_count_of_nothing_has_no_effect(params: dict[str, object]) -> None:
    told = ending(89)
    told.notify(TOKEN_COUNT, params)
    assert told.silence == LONG_SILENCE
