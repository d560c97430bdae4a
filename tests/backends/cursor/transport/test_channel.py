from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.backends.cursor.stage import TRANSPORTS, Stage, next_request, on_stage, request
from tests.telemetry.tracing import tracing
from toolwire.backends.cursor.simulator.script import MakeCall, Say, play
from toolwire.backends.cursor.simulator.settings import TOKEN
from toolwire.backends.cursor.transport.channel import RunChannel, as_json, read_message
from toolwire.backends.cursor.wire import agent
from toolwire.errors import UpstreamError
from toolwire.telemetry import wire_trace
from toolwire.wire.connect import ConnectEnd, ConnectFrame, end, frame


class ListChannel(RunChannel):
    """Its reply consists of these pieces."""

    def __init__(self, *pieces: bytes) -> None:
        super().__init__("cursor")
        self.pieces = [*pieces]
        self.errors: list[UpstreamError] = []

    async def write(self, message: bytes) -> None:
        raise NotImplementedError

    async def read(self) -> bytes:
        return self.pieces.pop(0)

    def fail(self, error: UpstreamError) -> None:
        self.errors.append(error)


def test_items_are_decoded_across_pieces_until_the_end() -> None:
    data = frame(b"one") + end()
    channel = ListChannel(data[:3], data[3:], b"")
    assert asyncio.run(channel.receive()) == [ConnectFrame(b"one"), ConnectEnd()]
    with pytest.raises(UpstreamError, match="has ended"):
        asyncio.run(channel.receive())


def test_a_reply_that_is_no_connect_stream_closes_the_channel() -> None:
    channel = ListChannel(b"\xff" * 20)
    with pytest.raises(UpstreamError) as caught:
        asyncio.run(channel.receive())
    assert (caught.value.code, [error.code for error in channel.errors]) == ("upstream_garbage", ["upstream_garbage"])


def test_a_reply_without_an_end_frame_ends_with_a_fault() -> None:
    (item,) = asyncio.run(ListChannel(b"").receive())
    assert isinstance(item, ConnectEnd)
    assert item.fault is not None


def test_abort_closes_with_an_error_for_the_client() -> None:
    channel = ListChannel()
    channel.abort()
    assert [error.code for error in channel.errors] == ["upstream_cut"]


MODEL = play([Say("SECRET WORDS. "), MakeCall("look", {"city": "SECRET CITY"})], [Say("Sunny.")])


@pytest.mark.slow
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_every_message_is_traced(transport: str, tmp_path: Path) -> None:
    async def ask(stage: Stage) -> None:
        wire_trace.enter("req_1")
        current = request("SECRET QUESTION")
        answer = await stage.ask(current)
        await stage.ask(next_request(current, answer))
        await stage.backend.models()

    async def main() -> None:
        async with on_stage(MODEL, transport=transport) as stage:
            await asyncio.create_task(ask(stage))

    with tracing(tmp_path / "trace") as traced:
        asyncio.run(main())
    runs = [(owner, words) for owner, words in traced.lines if words.startswith("wire ")]
    kinds = {" ".join(words.split(" ")[2:4]) for _, words in runs}
    assert {"-> run_request", "-> exec_client_message", "<- interaction_update", "<- exec_server_message"} <= kinds
    assert [words for _, words in runs if "GetUsableModels" in words]
    assert {owner for owner, _ in runs} == {"req_1"}
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
    stored = agent.KvServerMessage(id=3, set_blob_args=agent.SetBlobArgs(blob_id=b"id", blob_data=b"sk-1 \xff"))
    kind, value = read_message(
        agent.AgentServerMessage, agent.AgentServerMessage(kv_server_message=stored).SerializeToString()
    )
    assert kind == "kv_server_message"
    assert value == {"kv_server_message": {"id": 3, "set_blob_args": {"blob_id": "id", "blob_data": "sk-1 \ufffd"}}}


def test_what_is_no_message_is_said() -> None:
    assert read_message(agent.AgentClientMessage, b"") == ("an empty message", {})
    assert read_message(agent.AgentServerMessage, b"\xff") == ("an invalid message", None)
