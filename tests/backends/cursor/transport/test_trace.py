"""Runs that are traced: every message both ways, with the request that opened the run, and no content in the log."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.backends.cursor.stage import TRANSPORTS, Stage, next_request, on_stage, request
from tests.telemetry.tracing import tracing
from toolwire.backends.cursor.simulator.script import MakeCall, Say, play
from toolwire.backends.cursor.simulator.settings import TOKEN
from toolwire.backends.cursor.transport.trace import as_json, read_message
from toolwire.backends.cursor.wire import agent
from toolwire.telemetry import wire_trace

pytestmark = pytest.mark.slow

MODEL = play([Say("SECRET WORDS. "), MakeCall("look", {"city": "SECRET CITY"})], [Say("Sunny.")])


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_every_message_is_traced(transport: str, tmp_path: Path) -> None:
    async def ask(stage: Stage) -> None:
        wire_trace.enter("req_1")
        asked = request("SECRET QUESTION")
        answer = await stage.ask(asked)
        await stage.ask(next_request(asked, answer))
        await stage.backend.models()

    async def main() -> None:
        async with on_stage(MODEL, transport=transport) as stage:
            await asyncio.create_task(ask(stage))

    with tracing(tmp_path / "trace") as traced:
        asyncio.run(main())
    runs = [(asker, words) for asker, words in traced.lines if words.startswith("wire ")]
    kinds = {" ".join(words.split(" ")[2:4]) for _, words in runs}
    assert {"-> run_request", "-> exec_client_message", "<- interaction_update", "<- exec_server_message"} <= kinds
    assert [words for _, words in runs if "GetUsableModels" in words]
    assert {asker for asker, _ in runs} == {"req_1"}
    assert not [words for words in traced.words if "SECRET" in words]
    text = (tmp_path / "trace").read_text(encoding="utf-8")
    assert "SECRET QUESTION" in text
    assert "SECRET CITY" in text
    assert TOKEN not in text


def test_only_members_that_are_set_are_there() -> None:
    assert as_json(agent.AgentClientMessage()) == {}
    heartbeat = agent.AgentClientMessage(client_heartbeat=agent.ClientHeartbeat())
    assert read_message(agent.AgentClientMessage, heartbeat.SerializeToString()) == (
        "client_heartbeat",
        {"client_heartbeat": {}},
    )


def test_bytes_are_text() -> None:
    kept = agent.KvServerMessage(id=3, set_blob_args=agent.SetBlobArgs(blob_id=b"id", blob_data=b"sk-1 \xff"))
    kind, value = read_message(
        agent.AgentServerMessage, agent.AgentServerMessage(kv_server_message=kept).SerializeToString()
    )
    assert kind == "kv_server_message"
    assert value == {"kv_server_message": {"id": 3, "set_blob_args": {"blob_id": "id", "blob_data": "sk-1 \ufffd"}}}


def test_what_is_no_message_is_said() -> None:
    assert read_message(agent.AgentClientMessage, b"") == ("an empty message", {})
    assert read_message(agent.AgentServerMessage, b"\xff") == ("an invalid message", None)
