"""One request as each client sends it, against a real gateway and against answers that are wrong."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest

from tests.cli.listener import http, listening
from tests.free_port import free_port
from tests.server.harness import Gateway, Upstream, gateway, server_config
from toolwire.cli.clients.client import ConnectTarget
from toolwire.cli.clients.table import clients
from toolwire.cli.clients.trial import (
    SHAPE_PARTS,
    TOOL,
    RequestShape,
    TrialOutcome,
    attempt,
    body_of,
    path_of,
    shape_of,
)
from toolwire.config.file import Config, with_backends
from toolwire.config.secret import Secret
from toolwire.dialects import FRONTS

CASES = [(client.name, dialect) for client in clients().values() for dialect in client.dialects]
WHOLE = RequestShape(is_streaming=False)


def recorded(name: str, dialect: str) -> RequestShape:
    return shape_of(clients()[name].way(dialect))


@pytest.fixture(scope="module")
def running() -> Iterator[Gateway]:
    config = Config(server=server_config(keys=(Secret("k-1"),)))
    with gateway(with_backends(config, ())) as started:
        yield started


def target(port: int, model: str = "demo/echo-tools") -> ConnectTarget:
    return ConnectTarget(address=f"http://127.0.0.1:{port}", model=model, has_key=True)


@pytest.mark.parametrize(("name", "dialect"), CASES)
def test_every_client_gets_its_call_whole(running: Gateway, name: str, dialect: str) -> None:
    shape = recorded(name, dialect)
    outcome = attempt(target(running.port), dialect, shape, "k-1")
    assert outcome.is_good, outcome.lines
    expected = "called get_weather with {" if shape.has_tools else "answered with text: "
    assert f"demo/echo-tools {expected}" in outcome.lines[0]
    assert "first byte after " in outcome.lines[0]
    if shape.has_tools:
        assert 'given its result, it answered: "get_weather said: 18 degrees and rain."' in outcome.lines[-1]


def test_a_wrong_key(running: Gateway) -> None:
    outcome = attempt(target(running.port), "chat", RequestShape(), "wrong")
    assert not outcome.is_good
    assert outcome.lines[0].startswith("status 401: ")
    assert "export TOOLWIRE_KEY=" in outcome.lines[1]
    assert not any("wrong" in line for line in outcome.lines)


def test_a_model_that_is_not_there_comes_with_near_names(running: Gateway) -> None:
    outcome = attempt(target(running.port, "echo-tool"), "messages", recorded("claude-code", "messages"), "k-1")
    assert not outcome.is_good
    assert outcome.lines[0].startswith("status 404: ")
    assert "demo/echo-tools" in outcome.lines[0]
    assert "--model" in outcome.lines[1]


def test_a_gateway_that_does_not_run() -> None:
    outcome = attempt(target(free_port()), "chat", RequestShape(), "k")
    assert not outcome.is_good
    assert "nothing answers" in outcome.lines[0]
    assert outcome.lines[1] == "Start the gateway with: toolwire serve"


def tried(answer: bytes, shape: RequestShape = WHOLE, dialect: str = "chat") -> TrialOutcome:
    async def main() -> TrialOutcome:
        async with listening(answer) as listener:
            return await asyncio.to_thread(attempt, target(listener.port), dialect, shape, "k")

    return asyncio.run(main())


def answered(message: object) -> bytes:
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return http(json.dumps({"id": "1", "object": "chat.completion", "model": "m", "choices": [choice]}).encode())


def test_text_without_a_call_is_reported() -> None:
    outcome = tried(answered({"role": "assistant", "content": "It rains.\x1b[31m"}))
    assert outcome.is_good
    assert "answered with text and did not call the tool" in outcome.lines[0]
    assert "\x1b" not in outcome.lines[0]


CALL = {"id": "c", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Rome"}'}}


@pytest.mark.parametrize(
    ("second", "is_good", "words"),
    [
        ({"content": "It rains."}, True, 'given its result, it answered: "It rains."'),
        ({"content": None, "tool_calls": [CALL]}, True, "it called get_weather again"),
        ({"content": ""}, False, "it answered with neither text nor a call"),
    ],
)
def test_the_answer_to_the_result_is_judged(second: dict[str, object], is_good: bool, words: str) -> None:
    upstream = Upstream()
    try:
        calling, last = ({"role": "assistant", **said} for said in ({"content": None, "tool_calls": [CALL]}, second))
        upstream.on("m", [answered(calling)], [answered(last)])
        outcome = attempt(target(upstream.port, "m"), "chat", WHOLE, "k")
        sent = upstream.requests("m")[1].json["messages"]
    finally:
        upstream.close()
    assert (outcome.is_good, words in outcome.lines[-1]) == (is_good, True)
    assert sent[-2]["tool_calls"][0]["function"]["name"] == "get_weather"
    assert (sent[-1]["role"], sent[-1]["tool_call_id"], sent[-1]["content"]) == ("tool", "c", "18 degrees and rain")


def test_a_result_that_is_refused_is_wrong() -> None:
    upstream = Upstream()
    try:
        calling = answered({"role": "assistant", "content": None, "tool_calls": [CALL]})
        upstream.on("m", [calling], [http(b'{"error": {"message": "no results here"}}', "400 Bad Request")])
        outcome = attempt(target(upstream.port, "m"), "chat", WHOLE, "k")
    finally:
        upstream.close()
    assert not outcome.is_good
    assert outcome.lines[-1].startswith("status 400: ")
    assert "no results here" in outcome.lines[-1]
    assert "The call is complete; this is the answer to its result:" in outcome.lines


def test_arguments_that_are_broken_are_wrong() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": '}}
    outcome = tried(answered({"role": "assistant", "content": None, "tool_calls": [call]}))
    assert not outcome.is_good
    assert "no JSON object" in outcome.lines[0]


def test_an_empty_answer_is_wrong() -> None:
    assert not tried(answered({"role": "assistant", "content": ""})).is_good


def test_losses_are_shown() -> None:
    whole = answered({"role": "assistant", "content": "hi"}).replace(
        b"\r\n\r\n", b"\r\nx-toolwire-loss: tools\r\n\r\n", 1
    )
    assert tried(whole).lines[1] == "Lost on the way: tools"


@pytest.mark.parametrize(
    "answer",
    [
        b"not http\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
        http(b"<html>hello</html>"),
        http(b"<html>oh</html>", "502 Bad Gateway"),
        http(b"{}", "500 Oh"),
        b"",
    ],
)
def test_any_other_answer_is_wrong_and_no_crash(answer: bytes) -> None:
    for shape in (WHOLE, RequestShape()):
        outcome = tried(answer, shape)
        assert not outcome.is_good
        assert outcome.lines[0]


def test_a_stream_that_is_cut_is_wrong() -> None:
    event = b'data: {"id":"1","choices":[{"index":0,"delta":{"content":"h"}}]}\n\n'
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
    outcome = tried(head + event, RequestShape())
    assert not outcome.is_good
    assert "broke off" in outcome.lines[0]


@pytest.mark.parametrize(("name", "dialect"), CASES)
def test_the_request_is_one_of_its_dialect(name: str, dialect: str) -> None:
    shape = recorded(name, dialect)
    body = body_of(shape, dialect, "m")
    request = FRONTS[dialect].decode_request(json.dumps(body).encode(), shape.headers)
    assert request.model == "m"
    assert request.stream == shape.is_streaming
    assert [tool.name for tool in request.tools] == ([TOOL] if shape.has_tools else [])
    assert request.messages


def test_every_part_of_a_shape_is_of_a_client_there_is() -> None:
    used = {part for client in clients().values() for way in client.ways for part in way.check if isinstance(part, str)}
    assert used == set(SHAPE_PARTS)


def test_peculiarities() -> None:
    assert path_of(recorded("claude-code", "messages"), "messages") == "/v1/messages?beta=true"
    codex = body_of(recorded("codex", "responses"), "responses", "m")
    assert [item["role"] for item in codex["input"]] == ["developer", "user"]
    assert codex["tools"][0]["strict"] is False
    strict = body_of(recorded("pydantic-ai", "chat"), "chat", "m")["tools"][0]
    assert strict["function"]["strict"] is True
    assert strict["function"]["name"] == TOOL
    assert "tools" not in body_of(recorded("aider", "chat"), "chat", "m")
