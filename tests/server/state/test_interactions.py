"""Stored interactions over HTTP: who may read them, and how they are followed, cancelled and deleted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.harness import NAMES, Stage, UpstreamRequest, calls_play, on_stage, stream_steps, text_play
from tests.dialects.upstream_events import DONE, chunk
from tests.server.harness import HOLD, Answer, ask, stream_head, wait_until
from tests.server.harness import chunk as http_chunk

PATH = "/v1beta/interactions"
TOOLS = [{"type": "function", "name": "weather", "parameters": {"type": "object"}}]


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with on_stage() as running:
        yield running


def send(stage: Stage, method: str, path: str, body: Any = None, key: str = "") -> Answer:
    return ask(stage.server.port, method, path, body, {"x-goog-api-key": key} if key else {})


def create(stage: Stage, backend: str, *plays: Any, key: str = "", **members: Any) -> Any:
    stage.upstream.on("m", *(plays or (text_play(backend),)))
    answer = send(stage, "POST", PATH, {"model": f"{backend}/m", "input": "hi", **members}, key)
    assert answer.status == 200, answer.body
    return json.loads(answer.body)


@pytest.mark.parametrize("backend", NAMES)
def test_every_back_end_gets_the_stored_steps(stage: Stage, backend: str) -> None:
    first = create(stage, backend, calls_play(backend, ("c0", "weather", ["{}"])), tools=TOOLS)
    assert first["status"] == "requires_action"
    (call,) = [step for step in first["steps"] if step["type"] == "function_call"]
    result = {"type": "function_result", "call_id": call["id"], "result": {"degrees": 18}}
    last = create(stage, backend, previous_interaction_id=first["id"], input=[result], tools=TOOLS)
    assert last["status"] == "completed"
    sent = UpstreamRequest(backend, stage.received()[-1].json)
    assert [name for _, name, _ in sent.calls] == ["weather"]
    assert sent.results == [call_id for call_id, _, _ in sent.calls]


def test_only_the_owner_reads_and_deletes(stage: Stage) -> None:
    made = create(stage, "chat", key="mine")
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/cancel")):
        answer = send(stage, method, f"{PATH}/{made['id']}{path}", key="other")
        assert (answer.status, json.loads(answer.body)["error"]["code"]) == (404, "not_found")
    shown = json.loads(send(stage, "GET", f"{PATH}/{made['id']}", key="mine").body)
    assert shown["steps"] == made["steps"]
    assert "input" not in shown
    with_input = json.loads(send(stage, "GET", f"{PATH}/{made['id']}?include_input=true&key=mine").body)
    assert with_input["input"] == [{"type": "user_input", "content": [{"type": "text", "text": "hi"}]}]
    assert send(stage, "DELETE", f"{PATH}/{made['id']}", key="mine").body == b"{}"
    assert send(stage, "GET", f"{PATH}/{made['id']}", key="mine").status == 404
    lost = send(stage, "POST", PATH, {"model": "chat/m", "input": "x", "previous_interaction_id": made["id"]}, "mine")
    assert lost.status == 404


def test_what_is_not_stored_is_not_found(stage: Stage) -> None:
    made = create(stage, "chat", store=False)
    assert send(stage, "GET", f"{PATH}/{made['id']}").status == 404


def test_methods(stage: Stage) -> None:
    made = create(stage, "chat")
    assert send(stage, "POST", f"{PATH}/{made['id']}").headers["allow"] == "GET, DELETE"
    assert send(stage, "GET", f"{PATH}/{made['id']}/cancel").headers["allow"] == "POST"
    assert send(stage, "GET", PATH).status == 405
    refused = send(stage, "POST", f"{PATH}/{made['id']}/cancel")
    assert refused.status == 400


def test_the_background_is_followed_from_an_event_on(stage: Stage) -> None:
    frames = [chunk({"role": "assistant", "content": "one"}), chunk({"content": " two"}), chunk(finish="stop"), DONE]
    made = create(stage, "chat", stream_steps(*frames), background=True)
    assert made["status"] in ("queued", "in_progress")

    def current() -> Any:
        return json.loads(send(stage, "GET", f"{PATH}/{made['id']}").body)

    wait_until(lambda: current()["status"] == "completed")
    assert current()["steps"][0]["content"][0]["text"] == "one two"
    whole = send(stage, "GET", f"{PATH}/{made['id']}?stream=true").body
    rest = send(stage, "GET", f"{PATH}/{made['id']}?stream=true&last_event_id=2").body
    assert whole.endswith(rest)
    assert b'"event_id":"3"' in rest
    assert b'"event_id":"2"' not in rest


def test_a_stream_of_the_background_can_be_read_again(stage: Stage) -> None:
    stage.upstream.on("m", text_play("messages"))
    body = {"model": "messages/m", "input": "hi", "background": True, "stream": True}
    streamed = send(stage, "POST", PATH, body)
    assert streamed.headers["content-type"].startswith("text/event-stream")
    (name,) = {
        line.split(b'"id":"')[1].split(b'"')[0].decode() for line in streamed.body.splitlines() if b'"id":"int_' in line
    }
    assert send(stage, "GET", f"{PATH}/{name}?stream=true").body == streamed.body
    body |= {"background": False, "stream": False, "previous_interaction_id": name}
    assert send(stage, "POST", PATH, body).status == 200
    assert [message["role"] for message in stage.received()[-1].json["messages"]] == ["user", "assistant", "user"]


def test_a_running_interaction_is_cancelled_with_its_back_end(stage: Stage) -> None:
    start = http_chunk(chunk({"role": "assistant", "content": "one"}))
    count = len(stage.received())
    made = create(stage, "chat", [stream_head(), start, HOLD], background=True)
    running = stage.upstream.wait_request("m", count + 1)
    cancelled = json.loads(send(stage, "POST", f"{PATH}/{made['id']}/cancel").body)
    assert cancelled["status"] == "cancelled"
    assert running.left.wait(10)
    assert json.loads(send(stage, "GET", f"{PATH}/{made['id']}").body)["status"] == "cancelled"


def test_losses_are_reported(stage: Stage) -> None:
    stage.upstream.on("m", text_play("chat"))
    body = {"model": "chat/m", "input": "hi", "safety_settings": [{"a": 1}], "response_modalities": ["text"]}
    answer = send(stage, "POST", PATH, body)
    assert answer.headers["x-toolwire-loss"].split(", ")[0] == "request.safety_settings"
    assert "response_modalities" not in answer.headers["x-toolwire-loss"]
