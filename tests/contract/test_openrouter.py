"""OpenRouter: reasoning_details survive every client, routing members are forwarded unchanged, and a provider's error is an error."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.reasoning_requests import KINDS, PATHS, call_in, request
from tests.dialects.upstream_events import DONE, call, chunk
from tests.server.harness import Gateway, Step, Upstream, ask, gateway, reply, server_config
from toolwire.config.file import BackendConfig, Config, with_backends
from toolwire.config.secret import Secret

CLAUDE = {"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0}
GEMINI = {"type": "reasoning.encrypted", "format": "google-gemini-v1", "index": 0}
_numbers = itertools.count()


def proofs_of(maker: str, call_id: str) -> list[Any]:
    if maker == "claude":
        return [CLAUDE | {"text": "I should look.", "signature": "c2lnbmVk"}]
    return [GEMINI | {"data": "cHJvb2Y=", "id": call_id}]


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    playing = Upstream()
    yield playing
    playing.close()


@pytest.fixture(scope="module")
def server(upstream: Upstream) -> Iterator[Gateway]:
    def backend(name: str, **members: Any) -> BackendConfig:
        url = f"{upstream.url}/v1"
        return BackendConfig(
            name=name, kind="openai-chat", base_url=url, key=Secret("sk-up"), profile="openrouter", retries=0, **members
        )

    backends = (backend("router"), backend("router-retry", guard="retry"))
    with gateway(with_backends(Config(server=server_config()), backends)) as running:
        yield running


def body(maker: str, call_id: str) -> list[Step]:
    tool_call = {"id": call_id, "type": "function", "function": {"name": "look", "arguments": '{"q": "x"}'}}
    thought = {"reasoning": "I should look." if maker == "claude" else None}
    message = {"role": "assistant", "content": "One moment.", **thought, "tool_calls": [tool_call]}
    message["reasoning_details"] = proofs_of(maker, call_id)
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls", "native_finish_reason": "tool_use"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    top = {"id": "gen-1", "object": "chat.completion", "created": 1, "model": "m", "provider": "X"}
    return [reply(200, json.dumps({**top, "choices": [choice], "usage": usage}).encode())]


def stream(maker: str, call_id: str) -> list[Step]:
    """In pieces: the signature of Claude's thought has no words, the proof of Gemini's comes with the call."""
    first = {"role": "assistant", "content": ""}
    tool_call = call(0, call_id, "look", '{"q": "x"}')
    if maker == "claude":
        deltas: list[Any] = [
            first | {"reasoning": text, "reasoning_details": [CLAUDE | {"text": text}]}
            for text in ("I should", " look.")
        ]
        deltas.append(first | {"reasoning": None, "reasoning_details": [CLAUDE | {"signature": "c2lnbmVk"}]})
        deltas += [first | {"content": "One moment."}, first | tool_call]
    else:
        deltas = [
            first | {"content": "One moment.", "reasoning": None, "reasoning_details": []},
            first | tool_call | {"reasoning": None, "reasoning_details": proofs_of(maker, call_id)},
        ]
    wire = b"".join(chunk(delta, provider="X") for delta in deltas)
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    wire += chunk(first, "tool_calls", provider="X", native_finish_reason="tool_use") + chunk(first, usage=usage) + DONE
    return [reply(200, wire, content_type="text/event-stream")]


def second_turn(server: Gateway, upstream: Upstream, client: str, backend: str, maker: str, *, is_stream: bool) -> Any:
    """What the back end was sent after a client that keeps no reasoning had the first answer."""
    number = next(_numbers)
    model, call_id = f"or{number}", f"call_{number:024x}"
    upstream.on(model, stream(maker, call_id) if is_stream else body(maker, call_id))
    name = f"{backend}/{model}"
    answer = ask(server.port, "POST", PATHS[client], request(client, name) | {"stream": is_stream})
    assert answer.status == 200, answer.body
    found = (call_id, '{"q": "x"}') if is_stream else call_in(client, answer.json)
    assert ask(server.port, "POST", PATHS[client], request(client, name, *found)).status == 200
    turn = next(one for one in upstream.requests(model)[1].json["messages"] if one["role"] == "assistant")
    assert turn["tool_calls"][0]["function"]["name"] == "look"
    return turn.get("reasoning_details"), proofs_of(maker, call_id)


@pytest.mark.parametrize("is_stream", [True, False], ids=["stream", "body"])
@pytest.mark.parametrize("maker", ["claude", "gemini"])
@pytest.mark.parametrize("backend", ["router", "router-retry"])
@pytest.mark.parametrize("client", KINDS)
def test_H074_H075_H081_details_come_back_whole_for_clients_that_drop_them(
    server: Gateway, upstream: Upstream, client: str, backend: str, maker: str, is_stream: bool
) -> None:
    sent, made = second_turn(server, upstream, client, backend, maker, is_stream=is_stream)
    assert sent == made


@pytest.mark.parametrize("backend", ["router", "router-retry"])
@pytest.mark.parametrize("is_stream", [True, False], ids=["stream", "body"])
def test_a_chat_client_gets_all_of_them(server: Gateway, upstream: Upstream, backend: str, is_stream: bool) -> None:
    number = next(_numbers)
    model, call_id = f"or{number}", f"call_{number:024x}"
    upstream.on(model, stream("claude", call_id) if is_stream else body("claude", call_id))
    asked = request("chat", f"{backend}/{model}") | {"stream": is_stream}
    answer = ask(server.port, "POST", PATHS["chat"], asked)
    if not is_stream:
        assert answer.json["choices"][0]["message"]["reasoning_details"] == proofs_of("claude", call_id)
        return
    values = [json.loads(line[6:]) for line in answer.body.splitlines() if line.startswith(b"data: {")]
    deltas = [choice["delta"] for value in values for choice in value["choices"]]
    pieces = [piece for delta in deltas for piece in delta.get("reasoning_details") or ()]
    assert "".join(piece.get("text", "") for piece in pieces) == "I should look."
    assert [piece["signature"] for piece in pieces if "signature" in piece] == ["c2lnbmVk"]


@pytest.mark.parametrize("backend", ["router", "router-retry"])
def test_H081_a_client_may_return_the_fragments(server: Gateway, upstream: Upstream, backend: str) -> None:
    """Libraries that collect what they are sent and join nothing; what they hand back would be refused as it is."""
    number = next(_numbers)
    model, call_id = f"or{number}", f"call_{number:024x}"
    upstream.on(model, stream("claude", call_id))
    name = f"{backend}/{model}"
    assert ask(server.port, "POST", PATHS["chat"], request("chat", name) | {"stream": True}).status == 200
    second = request("chat", name, call_id, '{"q": "x"}')
    pieces = [CLAUDE | {"text": "I should"}, CLAUDE | {"text": " look."}, CLAUDE | {"signature": "c2lnbmVk"}]
    second["messages"][1] |= {"reasoning": "I should look.", "reasoning_details": pieces}
    assert ask(server.port, "POST", PATHS["chat"], second).status == 200
    turn = upstream.requests(model)[1].json["messages"][1]
    assert turn["reasoning_details"] == proofs_of("claude", call_id)
    assert turn["reasoning"] == "I should look."


@pytest.mark.parametrize("backend", ["router", "router-retry"])
def test_routing_members_pass_untouched(server: Gateway, upstream: Upstream, backend: str) -> None:
    number = next(_numbers)
    model = f"or{number}"
    members = {
        "provider": {"order": ["anthropic", "google-vertex"], "allow_fallbacks": False, "max_price": {"prompt": 1.5}},
        "models": ["a/b", "c/d"],
        "transforms": ["middle-out"],
        "reasoning": {"effort": "high", "exclude": False},
        "usage": {"include": True},
        "plugins": [{"id": "web"}],
    }
    upstream.on(model, body("claude", f"call_{number:024x}"))
    assert ask(server.port, "POST", PATHS["chat"], request("chat", f"{backend}/{model}") | members).status == 200
    sent = upstream.requests(model)[0].json
    assert {name: sent[name] for name in members} == members


@pytest.mark.parametrize("client", KINDS)
@pytest.mark.parametrize("is_stream", [True, False], ids=["stream", "body"])
def test_H154_a_provider_error_in_a_200_is_an_error(
    server: Gateway, upstream: Upstream, client: str, is_stream: bool
) -> None:
    model = f"or{next(_numbers)}"
    error = {"code": 502, "message": "Provider returned error", "metadata": {"provider_name": "X", "raw": "overloaded"}}
    ending = {"finish_reason": "error", "native_finish_reason": "error", "error": error}
    if is_stream:
        wire = chunk({"role": "assistant", "content": "One mo"}, provider="X")
        last = {"id": "gen-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        failed = {**last, "choices": [{"index": 0, "delta": {"content": ""}, **ending}]}
        upstream.on(
            model, [reply(200, wire + f"data: {json.dumps(failed)}\n\n".encode(), content_type="text/event-stream")]
        )
    else:
        top = {"id": "gen-1", "object": "chat.completion", "created": 1, "model": "m"}
        choice = {"index": 0, "message": {"role": "assistant", "content": "One mo"}, **ending}
        upstream.on(model, [reply(200, json.dumps({**top, "choices": [choice]}).encode())])
    answer = ask(server.port, "POST", PATHS[client], request(client, f"router/{model}") | {"stream": is_stream})
    assert answer.status == (200 if is_stream else 502)
    assert b"Provider returned error" in answer.body
    for word in (b'"finish_reason":"stop"', b'"stop_reason":"end_turn"', b"response.completed"):
        assert word not in answer.body
