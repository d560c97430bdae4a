"""Threads that stay for the next request of their conversation, and those that must not be shared."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.backends.codex.asking import Stage, answered, calls_of, played, read, request, text_of, user, with_results
from tests.backends.event_contract import check_events
from toolwire.events import Event, PartEnded
from toolwire.types import Message, Request, Text, Tool

pytestmark = pytest.mark.slow


def extended(asked: Request, events: list[Event], text: str) -> Request:
    """The same conversation with its last answer, and another question."""
    parts = tuple(event.part for event in events if isinstance(event, PartEnded))
    return replace(asked, messages=(*asked.messages, Message(role="assistant", parts=parts), user(text)))


def threads(stage: Stage) -> list[str]:
    """The thread of each turn, in order."""
    return [params["threadId"] for params in stage.sent("turn/start")]


def items(stage: Stage) -> list[list[str]]:
    return [[item["type"] for item in params["items"]] for params in stage.sent("thread/inject_items")]


@pytest.mark.parametrize("tier", ["replay", "held", "sentinel"])
def test_a_conversation_has_one_thread(tmp_path: Path, tier: str) -> None:
    async def play(stage: Stage) -> None:
        asked = request("calls", has_tools=tier != "sentinel")
        events = await answered(stage, asked)
        if tier != "sentinel":
            assert len(calls_of(events)) == 2
            asked = with_results(asked, events)
            if tier == "replay":  # where the last question decides what the fake says, also after results
                asked = replace(asked, messages=(*asked.messages, user("DO=plain")))
            events = await answered(stage, asked)
        for number in range(2):
            asked = extended(asked, events, f"question {number} DO=plain")
            events = await answered(stage, asked)
            check_events(events)
            assert text_of(events).startswith("Hello thread-")

    stage = Stage(tmp_path, tier=tier, workers=2)
    played(stage, play)
    assert len(set(threads(stage))) == 1
    assert len(stage.sent("thread/start")) == 1
    assert len(stage.sent("thread/revert")) == len(threads(stage)) - 1 == (3 if tier == "replay" else 2)
    assert items(stage)[-1] == ["message", "message"]  # only what is new


def test_the_turn_is_dropped_and_what_stood_before_it_stays(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        asked = request("plain")
        for number in range(3):
            asked = extended(asked, await answered(stage, asked), f"more {number}")

    stage = Stage(tmp_path)
    played(stage, play)
    told = [params["beforeTurnId"] for params in stage.sent("thread/revert")]
    assert len(set(told)) == 2
    assert [len(given) for given in items(stage)] == [1, 2, 2]


def test_the_same_request_again_needs_nothing_put_in(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        for _ in range(2):
            assert text_of(await answered(stage, request("plain"))).startswith("Hello")

    stage = Stage(tmp_path)
    played(stage, play)
    assert (len(set(threads(stage))), len(items(stage))) == (1, 1)


def _edited(asked: Request) -> Request:
    return replace(asked, messages=(user("DO=plain something else"), *asked.messages[1:]))


def _with_another_tool(asked: Request) -> Request:
    return replace(asked, tools=(Tool(name="another"),))


def _instructed(asked: Request) -> Request:
    return replace(asked, messages=(Message(role="system", parts=(Text(text="Be brief."),)), *asked.messages))


@pytest.mark.parametrize(
    "change",
    [
        _edited,
        _with_another_tool,
        _instructed,
        partial(replace, model="another"),
        partial(replace, owner="somebody"),
        partial(replace, extra={"chat": {"prompt_cache_key": "mine"}}),
    ],
)
def test_a_thread_is_for_its_own_conversation_alone(tmp_path: Path, change: Any) -> None:
    async def play(stage: Stage) -> None:
        asked = request("plain")
        events = await answered(stage, asked)
        await answered(stage, change(extended(asked, events, "DO=plain")))

    stage = Stage(tmp_path)
    played(stage, play)
    assert len(set(threads(stage))) == 2
    assert stage.sent("thread/revert") == []


def test_a_thread_serves_one_request_at_a_time(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        asked = request("plain")
        events = await answered(stage, asked)
        more = [extended(asked, events, f"{number} DO=plain") for number in range(2)]
        await asyncio.gather(*(answered(stage, one) for one in more))

    stage = Stage(tmp_path)
    played(stage, play)
    assert len(stage.sent("thread/start")) == 2
    assert len(stage.sent("thread/revert")) == 1


@pytest.mark.parametrize(("option", "deleted"), [("--rigid", 0), ("--stiff", 2)])
def test_a_version_that_has_no_such_threads_gets_one_for_each_request(
    tmp_path: Path, option: str, deleted: int
) -> None:
    async def play(stage: Stage) -> None:
        asked = request("plain")
        for number in range(3):
            asked = extended(asked, await answered(stage, asked), f"more {number} DO=plain")
        await stage.until_idle()
        assert stage.methods.count("thread/delete") == deleted

    stage = Stage(tmp_path, option, workers=1)
    played(stage, play)
    assert len(set(threads(stage))) == 3
    assert len([params for params in stage.sent("thread/start") if "historyMode" in params]) == (
        1 if not deleted else 3
    )


def test_an_unclaimed_thread_is_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolwire.backends.codex.backend.STORED_SECONDS", 0.05)

    async def play(stage: Stage) -> None:
        await answered(stage, request("plain"))
        await stage.until_heard("thread/delete")

    stage = Stage(tmp_path)
    played(stage, play)
    assert [params["threadId"] for params in stage.sent("thread/delete")] == threads(stage)


def test_a_client_that_leaves_keeps_no_thread(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        reply = await stage.backend.open(request("slow"), is_verbatim=False)
        async for _ in reply.events:
            break
        await reply.close()
        await stage.until_heard("thread/delete")

    played(Stage(tmp_path), play)


def test_a_thread_whose_process_has_died_is_begun_again(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        asked = request("plain")
        events = await answered(stage, asked)
        [worker] = stage.backend.host.pool.workers
        os.kill(worker.channel.pid, signal.SIGKILL)
        async with asyncio.timeout(5):
            while worker.is_alive:
                await asyncio.sleep(0.01)
        events = await answered(stage, extended(asked, events, "DO=plain"))
        assert text_of(events).startswith("Hello")

    stage = Stage(tmp_path, workers=1)
    played(stage, play)
    assert len(set(threads(stage))) == 2


def test_the_owner_can_have_nothing_kept(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        asked = request("plain")
        await answered(stage, extended(asked, await answered(stage, asked), "DO=plain"))
        await stage.until_heard("thread/unsubscribe", 2)

    stage = Stage(tmp_path, keep_threads=False)
    played(stage, play)
    assert [params["ephemeral"] for params in stage.sent("thread/start")] == [True, True]


def test_an_app_server_that_is_not_ours_keeps_nothing(tmp_path: Path) -> None:
    """Its files are not ours to delete."""
    stage = Stage(tmp_path, command=("ws://127.0.0.1:1",))
    assert not stage.backend.host.stores_threads


def test_a_turn_that_is_still_running_is_stopped_before_its_thread_is_used_again(tmp_path: Path) -> None:
    """A stop sequence ends the answer; the turn goes on until it is interrupted."""

    async def play(stage: Stage) -> None:
        asked = request("slow", stop=("w3",))
        reply = await stage.backend.open(asked, is_verbatim=False)
        events = await read(reply)
        assert text_of(events) == "w0 w1 w2 "
        await answered(stage, extended(request("slow"), events, "DO=plain"))

    stage = Stage(tmp_path)
    played(stage, play)
    assert len(set(threads(stage))) == 1
    assert stage.methods.index("turn/interrupt") < stage.methods.index("thread/revert")


def test_a_thread_is_used_for_so_many_requests_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Codex takes the longer the more often it was taken back."""
    monkeypatch.setattr("toolwire.backends.codex.turn.MAX_USES", 2)

    async def play(stage: Stage) -> None:
        asked = request("plain")
        for number in range(5):
            asked = extended(asked, await answered(stage, asked), f"more {number} DO=plain")
        await stage.until_heard("thread/delete", 2)

    stage = Stage(tmp_path)
    played(stage, play)
    told = threads(stage)
    assert [told.count(thread) for thread in dict.fromkeys(told)] == [2, 2, 1]


@pytest.mark.parametrize("dialect", ["chat", "responses"])
def test_the_clients_own_key_is_reported(tmp_path: Path, dialect: str) -> None:
    async def play(stage: Stage) -> None:
        asked = replace(request("plain"), extra={dialect: {"prompt_cache_key": "mine"}})
        reply = await stage.backend.open(asked, is_verbatim=False)
        await read(reply)
        assert [loss.feature for loss in reply.losses] == ["request.prompt_cache_key"]

    played(Stage(tmp_path), play)


def _with_key(asked: Request, key: str = "mine") -> Request:
    return replace(asked, extra={"chat": {"prompt_cache_key": key}})


def test_the_clients_own_key_becomes_the_session_of_its_threads(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        sessions = []
        for key in ("mine", "mine", "other", "01a1e07f-b731-7943-b42c-dd7468e6fddf"):
            asked = _with_key(request("plain", user(f"DO=plain {len(sessions)}")), key)
            for _ in range(2):  # the second one takes the stored thread
                reply = await stage.backend.open(asked, is_verbatim=False)
                assert reply.losses == ()
                asked = extended(asked, await read(reply), "DO=plain again")
            home = stage.backend.host.home
            assert home is not None
            newest = max(home.home.rglob("rollout-*"), key=lambda path: path.stat().st_mtime_ns)
            sessions.append(json.loads(newest.read_text())["session_id"])
        assert sessions[0] == sessions[1]
        assert len(set(sessions)) == 3
        assert sessions[3] == "01a1e07f-b731-7943-b42c-dd7468e6fddf"

    stage = Stage(tmp_path, "--sessions", "reload")
    played(stage, play)
    assert len(stage.sent("thread/start")) == 4


@pytest.mark.parametrize(
    ("how", "started", "read_back"),
    [
        ("lost", 3, 1),  # once the worker has lost a thread, it is not tried again
        ("ignored", 2, 2),
    ],
)
def test_a_key_that_codex_does_not_take_is_reported(tmp_path: Path, how: str, started: int, read_back: int) -> None:
    async def play(stage: Stage) -> None:
        for number in range(2):
            reply = await stage.backend.open(_with_key(request("plain"), f"key {number}"), is_verbatim=False)
            assert text_of(await read(reply)).startswith("Hello thread-")
            assert [loss.feature for loss in reply.losses] == ["request.prompt_cache_key"]

    stage = Stage(tmp_path, "--sessions", how)
    played(stage, play)
    assert len(stage.sent("thread/start")) == started
    assert len(stage.sent("thread/read")) == read_back
