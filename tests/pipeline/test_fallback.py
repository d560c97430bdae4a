"""Groups of models: order, circuits and stickiness, and whole requests over HTTP to back ends that fail in every way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from tests.server.harness import (
    CLOSE,
    HOLD,
    LONG,
    RESET,
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
from toolwire.config.values import ModelGroup
from toolwire.errors import BadRequest, UpstreamError
from toolwire.pipeline.fallback import hop_of, reason_of


@pytest.mark.parametrize(
    ("error", "reason", "hop"),
    [
        (UpstreamError("no", status=429), "429", "a/x:429"),
        (UpstreamError("no", status=503), "5xx", "a/x:503"),
        (UpstreamError("no", status=529), "5xx", "a/x:529"),
        (UpstreamError("no", code="upstream_unreachable"), "connect", "a/x:connect"),
        (UpstreamError("no", status=504, code="upstream_timeout"), "stall", "a/x:stall"),
        (UpstreamError("no", code="upstream_cut"), "empty", "a/x:empty"),
        (UpstreamError("no", status=401), "401", "a/x:401"),
    ],
)
def test_each_failure_has_a_reason(error: UpstreamError, reason: str, hop: str) -> None:
    assert reason_of(error) == reason
    assert hop_of("a/x", error) == hop


def test_errors_of_the_gateway_are_no_reason() -> None:
    assert reason_of(BadRequest("no", status=429)) == ""


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
    "closed without an answer": [CLOSE],
    "reset": [RESET],
    "cut after the role": [stream_head(), chunk(event(ROLE)), CLOSE],
    "no JSON": [reply(200, b"<html>", "text/html")],
    "no JSON in the stream": [reply(200, b"data: {nonsense\n\n", "text/event-stream")],
    "408": [reply(408, b"{}")],
    "502 in HTML": [reply(502, b"<html>Bad Gateway</html>", "text/html")],
    "503": [reply(503, b'{"error": {"message": "loading"}}', retry_after="5")],
    "529": [reply(529, b'{"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}')],
}


STALLS: dict[str, list[Any]] = {
    "no answer at all": [HOLD],
    "a head and then nothing": [stream_head(), HOLD],
    "a role and then nothing more": [stream_head(), chunk(event(ROLE)), HOLD],
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
    members = ("one/one", "two/two")
    groups = {
        "fast": ModelGroup(models=members),
        "impatient": ModelGroup(models=members, stall_seconds=3.0),
        "strict": ModelGroup(models=members, fallback_on=("429",)),
        "wide": ModelGroup(models=members, fallback_on=("401",)),
    }
    with gateway(replace(config, aliases=dict.fromkeys(groups, "one/one"), groups=groups)) as running:
        yield running


def send(server: Gateway, dialect: str = "chat", *, stream: bool, model: str = "fast", text: str = "Hi") -> Answer:
    body: dict[str, Any] = {"model": model, "stream": stream, "messages": [{"role": "user", "content": text}]}
    path = "/v1/messages" if dialect == "messages" else "/v1/chat/completions"
    headers = {"x-toolwire-debug": "1"}
    return ask(server.port, "POST", path, body | ({"max_tokens": 50} if dialect == "messages" else {}), headers)


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


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("stall", STALLS)
def test_a_request_falls_over_if_no_answer_begins_in_time(
    server: Gateway, upstream: Upstream, stall: str, stream: bool
) -> None:
    upstream.on("one", STALLS[stall])
    upstream.on("two", good("Hello from two", stream=stream))
    answer = send(server, stream=stream, model="impatient")
    assert answer.body.count(b"Hello from two") == 1
    assert upstream.requests("one")[0].left.wait(LONG)  # the stalled request was ended


NAMED = {**CALL, "function": {"name": "f", "arguments": ""}}


@pytest.mark.parametrize("call", [CALL, NAMED])
def test_nothing_is_retried_after_a_call_has_begun(server: Gateway, upstream: Upstream, call: Any) -> None:
    begun = event(ROLE) + event({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]})
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


def test_the_reasons_are_configurable(server: Gateway, upstream: Upstream) -> None:
    upstream.on("one", FAILURES["500"], FAILURES["429"], [reply(401, b'{"error": {"message": "who?"}}')])
    upstream.on("two", good("Hello from two", stream=False))
    assert send(server, stream=False, model="strict").status == 500
    assert b"Hello from two" in send(server, stream=False, model="strict").body
    assert b"Hello from two" in send(server, stream=False, model="wide", text="Another conversation").body


def test_each_hop_is_reported(server: Gateway, upstream: Upstream) -> None:
    upstream.on("one", FAILURES["429"])
    upstream.on("two", good("Hello", stream=False))
    answer = send(server, stream=False)
    assert json.loads(answer.headers["x-toolwire-debug"])["fallback"] == ["one/one:429"]
    metrics = ask(server.port, "GET", "/metrics").body.decode()
    assert 'toolwire_fallbacks_total{model="one/one",reason="429"} 1.0' in metrics
    (flow,) = ask(server.port, "GET", "/ui/api/flows").json["flows"]
    reports = ask(server.port, "GET", f"/ui/api/flows/{flow['id']}").json["reports"]
    assert (reports[0]["kind"], reports[0]["code"], reports[0]["where"]) == ("fallback", "429", "one/one")


def test_a_stored_conversation_stays_with_its_model(server: Gateway, upstream: Upstream) -> None:
    """Also if the request has only its last message, because the gateway has the others."""
    upstream.on("one", FAILURES["500"], good("one", stream=False))
    upstream.on("two", good("two", stream=False))
    previous = None
    for number in range(3):
        body = {"model": "fast", "input": f"Question {number}", "previous_response_id": previous}
        answer = ask(server.port, "POST", "/v1/responses", body)
        assert answer.status == 200, answer.body
        previous = answer.json["id"]
    assert (len(upstream.requests("one")), len(upstream.requests("two"))) == (1, 3)


def test_a_sticky_conversation_hits_the_prompt_cache_as_without_the_gateway(
    server: Gateway, upstream: Upstream
) -> None:
    """The back end caches the prefix of a conversation. So the tokens that it has cached are those of the messages before."""
    upstream.on("one", FAILURES["500"], good("one", stream=False))
    upstream.on("two", good("two", stream=False))
    messages: list[Any] = [{"role": "system", "content": "Be brief."}]
    for number in range(6):
        messages.append({"role": "user", "content": f"Question {number}"})
        body = {"model": "fast", "messages": messages}
        answer = ask(server.port, "POST", "/v1/chat/completions", body)
        messages.append(answer.json["choices"][0]["message"])
    received = [json.loads(one.body)["messages"] for one in upstream.requests("two")]
    assert len(received) == 6
    assert received == [messages[: 2 * number] for number in range(1, 7)]  # each begins with the one before, unchanged
