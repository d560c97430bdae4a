"""Groups of models: order, circuits and stickiness, and whole requests over HTTP to back ends that fail in every way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from tests.server.harness import (
    CLOSE,
    Answer,
    Gateway,
    Upstream,
    ask,
    chunk,
    gateway,
    reply,
    server_config,
    stream_head,
)
from toolwire.config.file import BackendConfig, Config, with_backends
from toolwire.errors import BadRequest, UpstreamError
from toolwire.pipeline.fallback import ModelGroups, is_fallback_reason
from toolwire.types import Message, Request, Text


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def request(text: str) -> Request:
    return Request(model="fast", messages=(Message(role="user", parts=(Text(text=text),)),))


def test_a_conversation_stays_with_the_model_that_answered_it() -> None:
    groups = ModelGroups({"fast": ("a/x", "b/y", "c/z")}, Clock())
    assert groups.candidates(request("one"), "") == ["a/x", "b/y", "c/z"]
    groups.succeeded("b/y", request("one"), "")
    assert groups.candidates(request("one"), "") == ["b/y", "a/x", "c/z"]
    assert groups.candidates(request("two"), "") == ["a/x", "b/y", "c/z"]
    assert groups.candidates(request("one"), "another key") == ["a/x", "b/y", "c/z"]


def test_a_model_that_keeps_failing_is_tried_last_until_it_is_probed() -> None:
    clock = Clock()
    groups = ModelGroups({"fast": ("a/x", "b/y")}, clock)
    for _ in range(2):
        groups.failed("a/x")
    assert groups.candidates(request("one"), "")[0] == "a/x"
    groups.failed("a/x")
    assert groups.candidates(request("one"), "") == ["b/y", "a/x"]
    clock.now += 31
    assert groups.candidates(request("one"), "")[0] == "a/x"
    groups.failed("a/x")
    assert groups.candidates(request("one"), "")[0] == "b/y"
    clock.now += 31
    groups.succeeded("a/x", request("one"), "")
    groups.failed("a/x")
    assert groups.candidates(request("two"), "")[0] == "a/x"


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 529])
def test_errors_of_the_back_end_lead_to_the_next(status: int) -> None:
    assert is_fallback_reason(UpstreamError("no", status=status))


@pytest.mark.parametrize(
    "error", [UpstreamError("no", status=400), UpstreamError("no", status=401), BadRequest("no", status=429)]
)
def test_refusals_of_the_request_are_final(error: Any) -> None:
    assert not is_fallback_reason(error)


ROLE = {"choices": [{"index": 0, "delta": {"role": "assistant"}}]}
CALL = {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": "{"}}


def event(value: Any) -> bytes:
    base = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return b"data: " + json.dumps(base | value).encode() + b"\n\n"


def good(text: str, *, stream: bool) -> list[Any]:
    if stream:
        body = event({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]})
        body += event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}) + b"data: [DONE]\n\n"
        return [reply(200, body, "text/event-stream")]
    message = {"role": "assistant", "content": text}
    body = {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
    }
    return [reply(200, json.dumps(body).encode())]


FAILURES: dict[str, list[Any]] = {
    "429": [reply(429, b'{"error": {"message": "slow down"}}', retry_after="60")],
    "500": [reply(500, b'{"error": {"message": "broken"}}')],
    "empty stream": [reply(200, b"", "text/event-stream")],
    "role and then nothing": [reply(200, event(ROLE), "text/event-stream")],
    "role and then an error": [
        reply(200, event(ROLE) + b'data: {"error": {"message": "overloaded", "code": 529}}\n\n', "text/event-stream")
    ],
    "cut after the head": [stream_head(), CLOSE],
}


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    running = Upstream()
    yield running
    running.close()


@pytest.fixture
def server(upstream: Upstream) -> Iterator[Gateway]:
    backends = tuple(
        BackendConfig(name=name, kind="openai-chat", base_url=f"{upstream.url}/v1", models=(name,), retries=0)
        for name in ("one", "two")
    )
    config = with_backends(Config(server=server_config()), backends)
    groups = {"fast": ("one/one", "two/two")}
    with gateway(replace(config, aliases={"fast": "one/one"}, groups=groups)) as running:
        yield running


def send(server: Gateway, dialect: str = "chat", *, stream: bool) -> Answer:
    body: dict[str, Any] = {"model": "fast", "stream": stream, "messages": [{"role": "user", "content": "Hi"}]}
    path = "/v1/messages" if dialect == "messages" else "/v1/chat/completions"
    return ask(server.port, "POST", path, body | ({"max_tokens": 50} if dialect == "messages" else {}))


@pytest.mark.parametrize("dialect", ["chat", "messages"])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("failure", FAILURES)
def test_a_request_falls_over_until_an_answer_begins(
    server: Gateway, upstream: Upstream, failure: str, stream: bool, dialect: str
) -> None:
    upstream.on("one", FAILURES[failure])
    upstream.on("two", good("Hello from two", stream=stream))
    answer = send(server, dialect, stream=stream)
    assert answer.status == 200
    assert answer.body.count(b"Hello from two") == 1
    assert len(upstream.requests("one")) == len(upstream.requests("two")) == 1


def test_nothing_is_retried_after_a_call_has_begun(server: Gateway, upstream: Upstream) -> None:
    begun = event(ROLE) + event({"choices": [{"index": 0, "delta": {"tool_calls": [CALL]}}]})
    upstream.on("one", [stream_head(), chunk(begun), CLOSE])
    upstream.on("two", good("Hello", stream=True))
    answer = send(server, stream=True)
    assert b"Hello" not in answer.body
    assert b"upstream_cut" in answer.body
    assert upstream.requests("two") == []


def test_the_last_error_is_reported_if_every_model_fails(server: Gateway, upstream: Upstream) -> None:
    upstream.on("one", FAILURES["500"])
    upstream.on("two", FAILURES["429"])
    answer = send(server, stream=False)
    assert answer.status == 429
    assert b"slow down" in answer.body


def test_a_refused_request_is_not_sent_again(server: Gateway, upstream: Upstream) -> None:
    upstream.on("one", [reply(400, b'{"error": {"message": "bad request"}}')])
    upstream.on("two", good("Hello", stream=False))
    assert send(server, stream=False).status == 400
    assert upstream.requests("two") == []


def test_the_next_turn_goes_to_the_model_that_answered(server: Gateway, upstream: Upstream) -> None:
    upstream.on("one", FAILURES["500"], good("one", stream=False))
    upstream.on("two", good("two", stream=False))
    assert [b"two" in send(server, stream=False).body for _ in range(3)] == [True] * 3
    assert len(upstream.requests("one")) == 1
