"""Responses over WebSocket through a gateway whose back end speaks Chat Completions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, MutableMapping
from typing import Any

import pytest

from tests.server.answers import ARGUMENTS, streamed, whole
from tests.server.harness import HOLD, Gateway, Upstream, reply, stream_head, wait_until
from tests.server.socket.client import SocketClient
from tests.virtual_clock import run_virtually
from toolwire.errors import BadRequest
from toolwire.memory.answers import AnswerMemory
from toolwire.memory.store import open_store
from toolwire.server.socket.connection import ResponsesConnection, SocketSettings

TOOL = {"type": "function", "name": "weather", "parameters": {"type": "object"}}


def test_an_answer_is_the_events_of_a_stream_one_message_each(server: Gateway, upstream: Upstream) -> None:
    upstream.on("socket-plain", streamed("chat"))
    with SocketClient(server.port) as client:
        client.create("chat/socket-plain", input="hi", stream=True, store=False, client_metadata={"a": "b"})
        events = client.turn()
    assert [event["type"] for event in events[:2]] == ["response.created", "response.in_progress"]
    events = [event for event in events if event["type"] != "toolwire.report"]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert events[-1]["response"]["output"][0]["content"][0]["text"] == "Hello there"
    assert events[-1]["response"]["store"] is False
    assert "type" not in upstream.wait_request("socket-plain").json


def test_a_chain_without_a_store_holds_the_whole_history(server: Gateway, upstream: Upstream) -> None:
    upstream.on("socket-chain", streamed("chat", call=ARGUMENTS), streamed("chat", "It rains."))
    common = {"store": False, "tools": [TOOL]}
    with SocketClient(server.port) as client:
        warm = client.answer("chat/socket-chain", input="weather?", generate=False, **common)
        assert warm["type"] == "response.completed"
        assert warm["response"]["output"] == []
        assert not upstream.requests("socket-chain")
        first = client.answer("chat/socket-chain", input=[], previous_response_id=warm["response"]["id"], **common)
        assert first["response"]["previous_response_id"] == warm["response"]["id"]
        call = first["response"]["output"][-1]
        result = {"type": "function_call_output", "call_id": call["call_id"], "output": "rain"}
        second = client.answer(
            "chat/socket-chain", input=[result], previous_response_id=first["response"]["id"], **common
        )
    assert second["response"]["output"][0]["content"][0]["text"] == "It rains."
    sent = upstream.wait_request("socket-chain", 2).json["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "tool"]


def test_an_answer_of_a_connection_is_unknown_to_another_one(server: Gateway, upstream: Upstream) -> None:
    upstream.on("socket-alone", streamed("chat"))
    with SocketClient(server.port) as client:
        first = client.answer("chat/socket-alone", input="one", store=False)["response"]["id"]
    with SocketClient(server.port) as client:
        error = client.answer("chat/socket-alone", input="two", store=False, previous_response_id=first)
        assert (error["type"], error["status"]) == ("error", 400)
        assert error["error"]["code"] == "previous_response_not_found"
        assert error["error"]["type"] == "invalid_request_error"
        assert client.answer("chat/socket-alone", input="three", store=False)["type"] == "response.completed"


def test_a_stored_answer_is_known_to_every_connection(server: Gateway, upstream: Upstream) -> None:
    upstream.on("socket-stored", streamed("chat"))
    with SocketClient(server.port) as client:
        warm = client.answer("chat/socket-stored", input="zero", store=False, generate=False)["response"]["id"]
        first = client.answer("chat/socket-stored", input="one", previous_response_id=warm)["response"]["id"]
    with SocketClient(server.port) as client:
        second = client.answer("chat/socket-stored", input="two", previous_response_id=first)
    assert second["type"] == "response.completed"
    sent = upstream.wait_request("socket-stored", 2).json["messages"]
    assert [message["content"] for message in sent] == ["zero", "one", "Hello there", "two"]


def test_a_chain_is_short_after_a_compaction(server: Gateway, upstream: Upstream) -> None:
    upstream.on("socket-short", streamed("chat", "a long answer"), whole("chat", "the summary"), streamed("chat"))
    with SocketClient(server.port) as client:
        first = client.answer("chat/socket-short", input="one", store=False)["response"]["id"]
        trigger = [{"type": "compaction_trigger"}]
        made = client.answer("chat/socket-short", input=trigger, store=False, previous_response_id=first)["response"]
        assert [item["type"] for item in made["output"]] == ["compaction"]
        client.answer("chat/socket-short", input="two", store=False, previous_response_id=made["id"])
    sent = str(upstream.wait_request("socket-short", 3).json["messages"])
    assert [text in sent for text in ("one", "the summary", "two", "a long answer")] == [True, True, True, False]


def test_a_result_without_its_call_fails_and_evicts_the_parent(server: Gateway, upstream: Upstream) -> None:
    upstream.on("socket-evict", streamed("chat"))
    wrong = {"type": "function_call_output", "call_id": "call_unknown", "output": "x"}
    with SocketClient(server.port) as client:
        first = client.answer("chat/socket-evict", input="one", store=False)["response"]["id"]
        failed = client.answer("chat/socket-evict", input=[wrong], store=False, previous_response_id=first)
        assert (failed["status"], failed["error"]["code"]) == (400, "tool_call_not_found")
        again = client.answer("chat/socket-evict", input="two", store=False, previous_response_id=first)
        assert again["error"]["code"] == "previous_response_not_found"


def test_a_failed_fork_on_another_lane_leaves_the_parent(server: Gateway, upstream: Upstream) -> None:
    upstream.on("socket-fork", streamed("chat"))
    wrong = {"type": "function_call_output", "call_id": "call_unknown", "output": "x"}
    with SocketClient(server.port) as client:
        first = client.answer("chat/socket-fork", input="one", store=False)["response"]["id"]
        forked = {"store": False, "previous_response_id": first}
        assert client.answer("chat/socket-fork", input=[wrong], stream_id="b", **forked)["type"] == "error"
        assert client.answer("chat/socket-fork", input="two", **forked)["type"] == "response.completed"


def test_lanes_are_answered_at_the_same_time_and_each_in_order(server: Gateway, upstream: Upstream) -> None:
    upstream.on("socket-slow", [stream_head(), HOLD])
    upstream.on("socket-fast", streamed("chat", "first"), streamed("chat", "second"))
    with SocketClient(server.port) as client:
        client.create("chat/socket-slow", input="a", store=False, stream_id="slow")
        upstream.wait_request("socket-slow")
        client.create("chat/socket-fast", input="b", store=False, stream_id="fast.1")
        client.create("chat/socket-fast", input="c", store=False, stream_id="fast.1")
        first, second = client.turn(), client.turn()
    assert {event["stream_id"] for event in first + second} == {"fast.1"}
    texts = [turn[-1]["response"]["output"][0]["content"][0]["text"] for turn in (first, second)]
    assert texts == ["first", "second"]


def test_a_client_that_closes_the_connection_cancels_the_back_end(server: Gateway, upstream: Upstream) -> None:
    upstream.on("socket-left", [stream_head(), HOLD])
    with SocketClient(server.port) as client:
        client.create("chat/socket-left", input="a", store=False)
        received = upstream.wait_request("socket-left")
    wait_until(received.left.is_set)


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("{", "invalid_json"),
        ("[]", "invalid_json"),
        ({"type": "response.sing"}, "unknown_event"),
        ({"type": "response.create", "model": "m", "input": "x", "stream_id": "no spaces"}, "invalid_stream_id"),
        ({"type": "response.create", "model": "m", "input": "x", "background": True}, "invalid_request"),
        ({"type": "response.create", "model": "chat/m", "input": 7}, "invalid_request"),
    ],
)
def test_an_error_has_all_members_that_clients_need_and_the_connection_goes_on(
    server: Gateway, message: Any, code: str
) -> None:
    with SocketClient(server.port) as client:
        client.send(message)
        error = client.event()
        assert (error["type"], error["status"], error["sequence_number"]) == ("error", 400, 0)
        assert set(error["error"]) >= {"type", "code", "message", "param"}
        assert error["error"]["code"] == code
        assert client.answer("demo/echo-tools", input="hi")["type"] == "response.completed"


def test_an_error_of_the_back_end_has_its_status_and_headers(server: Gateway, upstream: Upstream) -> None:
    upstream.on("socket-limit", [reply(429, b'{"error":{"message":"slow down"}}', retry_after="77")])
    with SocketClient(server.port) as client:
        error = client.answer("chat/socket-limit", input="hi", store=False, stream_id="x")
    assert (error["status"], error["headers"]["retry-after"], error["stream_id"]) == (429, "77", "x")


def test_losses_are_reported_before_the_last_event(server: Gateway, upstream: Upstream) -> None:
    upstream.on("socket-loss", streamed("chat"))
    with SocketClient(server.port) as client:
        client.create("chat/socket-loss", input="hi", max_tool_calls=3, truncation="auto")
        events = client.turn()
    assert events[-2]["type"] == "toolwire.report"
    assert events[-2]["losses"]


def test_steering_is_refused_with_the_input(server: Gateway) -> None:
    with SocketClient(server.port) as client:
        client.send({"type": "response.steer", "previous_response_id": "resp_1", "input": [{"a": 1}]})
        assert client.event() == {
            "type": "response.steer.failed",
            "error": {
                "code": "steering_not_supported",
                "message": "this gateway does not steer running responses.",
            },
            "steer": {"input": [{"a": 1}]},
        }


class Stage:
    """A connection without a network: messages in, messages out. answering: what a request does."""

    def __init__(self, answering: Callable[..., Any], **settings: Any) -> None:
        self.sent: list[MutableMapping[str, Any]] = []
        self.incoming: asyncio.Queue[MutableMapping[str, Any]] = asyncio.Queue()
        self.leaving = asyncio.Event()
        store = open_store(kind="memory", path="", default_path="", max_age_days=1, max_mb=1).store
        answers = AnswerMemory(store, (), is_shared=False)
        given: dict[str, Any] = {"respond": answering, "decode": _undecoded, "answers": answers, "max_bytes": 1000}
        connection = ResponsesConnection(SocketSettings(**{**given, **settings}), {}, self.incoming.get, self.send)
        self.running = asyncio.create_task(connection.run(self.leaving))

    async def send(self, message: MutableMapping[str, Any]) -> None:
        self.sent.append(message)
        if message["type"] == "websocket.close":
            self.incoming.put_nowait({"type": "websocket.disconnect"})

    def create(self, **members: Any) -> None:
        text = json.dumps({"type": "response.create", "model": "m", **members})
        self.incoming.put_nowait({"type": "websocket.receive", "text": text})

    def errors(self) -> list[dict[str, Any]]:
        texts = [json.loads(message["text"]) for message in self.sent if message["type"] == "websocket.send"]
        return [value for value in texts if value["type"] == "error"]

    @property
    def closing(self) -> int:
        return next((message["code"] for message in self.sent if message["type"] == "websocket.close"), 0)


async def _undecoded(*_: object) -> Any:
    raise BadRequest("not read here.")


async def never(*_: object) -> None:
    await asyncio.Event().wait()


async def at_once(*_: object) -> None:
    pass


async def until_disconnected(decode: Any, headers: Any, receive: Any, *_: object) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def test_an_old_connection_ends_with_the_error_that_makes_clients_reconnect() -> None:
    async def main() -> None:
        stage = Stage(at_once)
        await asyncio.wait_for(stage.running, 3601)
        assert [error["error"]["code"] for error in stage.errors()] == ["websocket_connection_limit_reached"]
        assert stage.closing == 1000
        pings = [message for message in stage.sent if message["type"] == "websocket.ping"]
        assert len(pings) >= 119

    run_virtually(main())


def test_the_running_answer_of_an_old_connection_is_completed_and_no_new_one_begun() -> None:
    async def slow(*_: object) -> None:
        await asyncio.sleep(4000)

    async def main() -> None:
        stage = Stage(slow)
        stage.create()
        await asyncio.sleep(3700)
        assert stage.closing == 0
        stage.create(stream_id="b")
        await asyncio.sleep(1)
        assert [error["error"]["code"] for error in stage.errors()] == ["websocket_connection_limit_reached"]
        await stage.running
        assert stage.closing == 1000

    run_virtually(main())


def test_a_server_that_shuts_down_closes_idle_connections_so_that_clients_reconnect() -> None:
    async def main() -> None:
        stage = Stage(at_once)
        await asyncio.sleep(1)
        stage.leaving.set()
        await asyncio.wait_for(stage.running, 1)
        assert stage.closing == 1001

    run_virtually(main())


def test_lanes_and_waiting_requests_are_bounded() -> None:
    async def main() -> None:
        stage = Stage(until_disconnected)
        for number in range(17):
            stage.create(stream_id=f"lane{number}")
        stage.create(stream_id="lane0", input="x" * 600)
        stage.create(stream_id="lane0", input="x" * 600)
        await asyncio.sleep(1)
        assert [(error["status"], error["stream_id"]) for error in stage.errors()] == [(429, "lane16"), (429, "lane0")]
        stage.incoming.put_nowait({"type": "websocket.disconnect"})
        await stage.running

    run_virtually(main())


def test_a_connection_has_at_most_32_named_lanes() -> None:
    async def main() -> None:
        stage = Stage(at_once)
        for number in range(33):
            stage.create(stream_id=f"lane{number}")
            await asyncio.sleep(1)
        assert [error["error"]["code"] for error in stage.errors()] == ["invalid_stream_id"]
        stage.incoming.put_nowait({"type": "websocket.disconnect"})
        await stage.running

    run_virtually(main())
