from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.backends.cursor.simulator.client import RUN, Client, Link, blobs_of, framed, headers, opening, tool
from tests.backends.cursor.simulator.single_run import QUICK, TRANSPORTS, call_and_report, run_once
from toolwire.backends.cursor.simulator.journal import Journal
from toolwire.backends.cursor.simulator.script import MakeCall, Say, Think, play
from toolwire.backends.cursor.simulator.server import Simulator
from toolwire.backends.cursor.wire import agent

pytestmark = pytest.mark.slow  # starts a server

HISTORY = [
    {"role": "system", "content": "You are dropped."},
    {"role": "user", "content": [{"type": "text", "text": "first"}]},
    {"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "c1", "toolName": "look", "args": {}}]},
    {
        "role": "tool",
        "id": "c1",
        "content": [{"type": "tool-result", "toolCallId": "c1", "toolName": "look", "result": "r"}],
    },
]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_turn_has_every_step_in_order(transport: str) -> None:
    blobs = blobs_of(HISTORY)
    model = play([], [Think("hm"), Say("Wait.", 1), MakeCall("look", {"n": 3})], Say("{{result:1}}!", 1))
    client, journal = run_once(
        transport,
        model=model,
        first=opening(roots=blobs, tools=[tool()]),
        prepare=lambda client: client.blobs.update(blobs),
    )
    order = [kind for kind in dict.fromkeys(client.kinds) if kind != "heartbeat"]
    assert order == [
        "get_blob_args",
        "request_context_args",
        "thinking_delta",
        "thinking_completed",
        "text_delta",
        "token_delta",
        "mcp_allowlist_precheck_args",
        "tool_call_started",
        "partial_tool_call",
        "mcp_args",
        "tool_call_completed",
        "set_blob_args",
        "conversation_checkpoint_update",
        "turn_ended",
    ]
    assert client.kinds.count("get_blob_args") == len(HISTORY)
    assert client.end == {}
    assert (client.thought, client.text) == ("hm", "Wait.fine!")
    assert journal.offences == []
    (run,) = journal.runs
    assert (run.state, run.messages, run.user_text, list(run.results.values())) == ("ended", HISTORY, "hello", [1])


def test_the_checkpoint_has_the_users_entries_blanked_and_the_new_blob() -> None:
    blobs = blobs_of(HISTORY)
    client, _ = run_once(
        model=play(Say("done")), first=opening(roots=blobs), prepare=lambda c: c.blobs.update(blobs), tools=[]
    )
    (checkpoint,) = [m for m in client.messages if m.HasField("conversation_checkpoint_update")]
    roots = list(checkpoint.conversation_checkpoint_update.root_prompt_messages_json)
    ids = list(blobs)
    assert roots[:4] == [ids[0], b"", ids[2], ids[3]]
    assert json.loads(client.blobs[roots[4]]) == {"role": "assistant", "content": [{"type": "text", "text": "done"}]}


@pytest.mark.parametrize(
    "kind", ["request_context_args", "get_blob_args", "mcp_args", "set_blob_args", "mcp_allowlist_precheck_args"]
)
def test_what_is_not_answered_never_moves_on(kind: str) -> None:
    blobs = blobs_of(HISTORY[1:2])
    answer, journal = _stuck(kind, blobs)
    assert answer[-2:] == ["heartbeat", "heartbeat"]
    assert answer.count(kind) == 1
    assert journal.runs[0].state == "gone"


def _stuck(kind: str, blobs: dict[bytes, bytes]) -> tuple[list[str], Journal]:
    async def main() -> tuple[list[str], Journal]:
        async with Simulator(model=call_and_report(), settings=QUICK) as simulator:
            client = Client(simulator.url)
            client.tools, client.blobs, client.ignored = [tool()], dict(blobs), {kind}
            async with await Link.open(client) as link:
                link.begin(RUN, headers())
                link.send(framed(opening(roots=blobs, tools=[tool()]).SerializeToString()))
                beats = ["heartbeat", "heartbeat"]
                await link.until(lambda: kind in client.kinds and client.kinds[-2:] == beats)
            while simulator.journal.open_runs:
                await asyncio.sleep(0.01)
            return client.kinds, simulator.journal

    return asyncio.run(main())


def test_a_half_close_before_the_end_is_no_exec_result() -> None:
    async def main() -> Client:
        async with Simulator(model=call_and_report(), settings=QUICK) as simulator:
            return await Client(simulator.url).run(opening(), half_close=True)

    client = asyncio.run(main())
    assert client.error == {"code": "internal", "message": "No exec result"}


@pytest.mark.parametrize("first", [agent.AgentClientMessage(kv_client_message={"id": 1}), agent.AgentClientMessage()])
def test_the_first_message_must_open_the_run(first: Any) -> None:
    client, _ = run_once(first=first)
    assert (client.error["code"], client.messages) == ("invalid_argument", [])


def test_a_client_that_cancels_gets_a_cancelled_end() -> None:
    async def main() -> Client:
        async with Simulator(model=call_and_report(), settings=QUICK) as simulator:
            client = Client(simulator.url)
            client.tools = [tool()]
            client.on_call = lambda call: None
            async with await Link.open(client) as link:
                link.begin(RUN, headers())
                link.send(framed(opening(tools=[tool()]).SerializeToString()))
                await link.until(lambda: "mcp_args" in client.kinds)
                cancel: Any = {"cancel_action": {}}
                link.send(framed(agent.AgentClientMessage(conversation_action=cancel).SerializeToString()))
                await link.listen()
            return client

    assert asyncio.run(main()).error["code"] == "canceled"


def test_the_history_that_the_server_never_answers_stalls() -> None:
    action: Any = {"user_message_action": {"user_message": {"text": "x"}, "conversation_history": {}}}

    async def main() -> list[str]:
        async with Simulator(settings=QUICK) as simulator:
            client = Client(simulator.url)
            async with await Link.open(client) as link:
                link.begin(RUN, headers())
                link.send(framed(opening(action=action).SerializeToString()))
                await link.until(lambda: len(client.kinds) > 2)
            return client.kinds

    assert set(asyncio.run(main())) == {"heartbeat"}


def test_a_model_that_raises_ends_the_run_with_an_error() -> None:
    client, journal = run_once(model=play(Say("{{result:7}}")))
    assert client.error["code"] == "internal"
    assert "result 7 does not exist" in client.error["message"]
    assert journal.runs[0].state == "refused"
