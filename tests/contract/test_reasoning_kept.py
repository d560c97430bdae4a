"""Reasoning that clients drop is restored for its back end, for the same owner, and only if nothing was edited."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.reasoning_requests import KINDS, PATHS, call_in, request
from tests.server.harness import Gateway, Step, Upstream, ask, gateway, reply, server_config
from toolwire.config.file import BackendConfig, Config, StoreConfig, with_backends
from toolwire.config.secret import Secret

_numbers = itertools.count()


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    playing = Upstream()
    yield playing
    playing.close()


def backends(upstream: Upstream) -> tuple[BackendConfig, ...]:
    made = []
    for dialect, kind in KINDS.items():
        url = upstream.url + ("" if dialect == "messages" else "/v1")
        profile = "deepseek" if dialect == "chat" else ""
        made.append(
            BackendConfig(name=dialect, kind=kind, base_url=url, key=Secret("sk-up"), profile=profile, retries=0)
        )
        made.append(
            BackendConfig(
                name=f"{dialect}-retry", kind=kind, base_url=url, key=Secret("sk-up"), profile=profile, guard="retry"
            )
        )
    return tuple(made)


@pytest.fixture(scope="module")
def server(upstream: Upstream) -> Iterator[Gateway]:
    with gateway(with_backends(Config(server=server_config()), backends(upstream))) as running:
        yield running


def thinking_answer(dialect: str, call_id: str, arguments: str = '{"q": "x"}') -> list[Step]:
    """A thought with its proof, and a call."""
    if dialect == "messages":
        content = [
            {"type": "thinking", "thinking": "I should look.", "signature": "c2lnbmVk"},
            {"type": "redacted_thinking", "data": "aGlkZGVu"},
            {"type": "text", "text": "One moment."},
            {"type": "tool_use", "id": call_id, "name": "look", "input": json.loads(arguments)},
        ]
        value: Any = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": content,
            "stop_reason": "tool_use",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
    elif dialect == "responses":
        thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "ZW5jcnlwdGVk"}
        call = {"type": "function_call", "id": "fc_1", "call_id": call_id, "name": "look", "arguments": arguments}
        value = {
            "id": "resp_1",
            "object": "response",
            "created_at": 1,
            "status": "completed",
            "model": "m",
            "output": [thought, call | {"status": "completed"}],
            "error": None,
            "incomplete_details": None,
            "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
        }
    else:
        call = {"id": call_id, "type": "function", "function": {"name": "look", "arguments": arguments}}
        message = {"role": "assistant", "content": "One moment.", "reasoning_content": "I should look."}
        choice = {"index": 0, "message": message | {"tool_calls": [call]}, "finish_reason": "tool_calls"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        value = {
            "id": "c",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [choice],
            "usage": usage,
        }
    return [reply(200, json.dumps(value).encode())]


def proof_in(dialect: str, body: Any) -> list[Any]:
    """The reasoning of the past turn, as the back end was sent it."""
    if dialect == "messages":
        turn = next(message for message in body["messages"] if message["role"] == "assistant")
        return [block for block in turn["content"] if "thinking" in block["type"]]
    if dialect == "responses":
        return [item["encrypted_content"] for item in body["input"] if item.get("type") == "reasoning"]
    turn = next(message for message in body["messages"] if message["role"] == "assistant")
    return [turn["reasoning_content"]] if "reasoning_content" in turn else []


PROOFS: dict[str, list[Any]] = {
    "messages": [
        {"type": "thinking", "thinking": "I should look.", "signature": "c2lnbmVk"},
        {"type": "redacted_thinking", "data": "aGlkZGVu"},
    ],
    "responses": ["ZW5jcnlwdGVk"],
    "chat": ["I should look."],
}


def converse(
    server: Gateway,
    upstream: Upstream,
    client: str,
    dialect: str,
    *,
    backend: str = "",
    key: str = "k",
    edit: bool = False,
) -> Any:
    """Two turns; what the back end was sent in the second."""
    number = next(_numbers)
    model, call_id = f"m{number}", f"call_{number:024x}"
    upstream.on(model, thinking_answer(dialect, call_id))
    name = f"{backend or dialect}/{model}"
    answer = ask(server.port, "POST", PATHS[client], request(client, name), headers={"authorization": "Bearer k"})
    assert answer.status == 200, answer.body
    found_id, arguments = call_in(client, answer.json)
    if edit:
        arguments = '{"q": "edited"}'
    second = request(client, name, found_id, arguments)
    assert ask(server.port, "POST", PATHS[client], second, headers={"authorization": f"Bearer {key}"}).status == 200
    return upstream.requests(model)[1].json


@pytest.mark.parametrize("dialect", KINDS)
@pytest.mark.parametrize("client", KINDS)
def test_H074_H075_H082_H083_dropped_reasoning_is_restored(
    server: Gateway, upstream: Upstream, client: str, dialect: str
) -> None:
    assert proof_in(dialect, converse(server, upstream, client, dialect)) == PROOFS[dialect]
    assert proof_in(dialect, converse(server, upstream, client, dialect, backend=f"{dialect}-retry")) == PROOFS[dialect]


@pytest.mark.parametrize("dialect", KINDS)
def test_H079_an_edited_call_gets_no_reasoning(server: Gateway, upstream: Upstream, dialect: str) -> None:
    assert proof_in(dialect, converse(server, upstream, "chat", dialect, edit=True)) == []


@pytest.mark.parametrize("dialect", KINDS)
def test_another_key_gets_no_reasoning(server: Gateway, upstream: Upstream, dialect: str) -> None:
    assert proof_in(dialect, converse(server, upstream, "chat", dialect, key="another")) == []


def test_disabled_reasoning_is_not_restored(upstream: Upstream) -> None:
    config = Config(server=server_config(), store=StoreConfig(kind="memory", reasoning=False))
    with gateway(with_backends(config, backends(upstream))) as running:
        assert proof_in("messages", converse(running, upstream, "chat", "messages")) == []


@pytest.mark.parametrize("dialect", KINDS)
def test_a_corrected_answer_stores_its_last_reasoning(server: Gateway, upstream: Upstream, dialect: str) -> None:
    """The wrong call's thoughts led to nothing that the client has."""
    number = next(_numbers)
    model, call_id = f"m{number}", f"call_{number:024x}"
    wrong = thinking_answer(dialect, f"{call_id[:-1]}f", "{}")
    wrong = [
        step.replace(b"c2lnbmVk", b"d3JvbmcX").replace(b"ZW5jcnlwdGVk", b"d3JvbmcXYWJj")
        for step in wrong
        if isinstance(step, bytes)
    ]
    upstream.on(model, wrong, thinking_answer(dialect, call_id))
    name = f"{dialect}-retry/{model}"
    answer = ask(server.port, "POST", PATHS["chat"], request("chat", name))
    second = request("chat", name, *call_in("chat", answer.json))
    assert ask(server.port, "POST", PATHS["chat"], second).status == 200
    assert proof_in(dialect, upstream.requests(model)[2].json) == PROOFS[dialect]
