"""Compaction through whole gateways: passed through where the back end has it, and the same secret on every node."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.server.answers import body
from tests.server.harness import Gateway, Upstream, ask, gateway, reply, server_config
from toolwire.config.file import BackendConfig, Config, with_backends
from toolwire.config.secret import Secret

SECRET, OTHER = Secret("a-secret-of-several-gateways"), Secret("a-secret-of-another-gateway")
WINDOW = {
    "id": "resp_9",
    "object": "response.compaction",
    "created_at": 1,
    "output": [{"type": "compaction", "id": "cmp_1", "encrypted_content": "of-the-provider", "odd": 1.50}],
    "usage": {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5},
}


def node(upstream: Upstream, *secrets: Secret) -> Any:
    backends = (
        BackendConfig(name="chat", kind="openai-chat", base_url=f"{upstream.url}/v1", retries=0),
        BackendConfig(
            name="native", kind="openai-responses", base_url=f"{upstream.url}/v1", profile="openai-responses", retries=0
        ),
    )
    return gateway(with_backends(Config(server=server_config(secrets=secrets)), backends))


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    running = Upstream()
    yield running
    running.close()


@pytest.fixture(scope="module")
def nodes(upstream: Upstream) -> Iterator[tuple[Gateway, Gateway, Gateway]]:
    """Two gateways with the same secret, of which the second has rotated it, and one with another."""
    with ExitStack() as stack:
        first = stack.enter_context(node(upstream, SECRET))
        second = stack.enter_context(node(upstream, OTHER, SECRET))
        third = stack.enter_context(node(upstream, OTHER))
        yield first, second, third


def post(running: Gateway, path: str, value: Any, key: str = "sk-mine") -> Any:
    return ask(running.port, "POST", path, value, {"authorization": f"Bearer {key}"})


def test_a_summary_opens_on_every_node_with_its_secret_and_for_its_key_only(
    nodes: tuple[Gateway, Gateway, Gateway], upstream: Upstream
) -> None:
    first, second, third = nodes
    upstream.on("summed", [reply(200, json.dumps(body("chat", "The word is tulip.")).encode())])
    made = post(first, "/v1/responses/compact", {"model": "chat/summed", "input": "the word is tulip"}).json
    asked = {"model": "chat/summed", "input": [made["output"][-1], {"role": "user", "content": "the word?"}]}
    for running in (first, second):
        assert post(running, "/v1/responses", asked).status == 200
        assert b"The word is tulip." in upstream.requests("summed")[-1].body
    for running, key in ((third, "sk-mine"), (first, "sk-other")):
        refused = post(running, "/v1/responses", asked, key)
        assert (refused.status, refused.json["error"]["code"]) == (400, "compaction_unreadable")
        assert refused.json["error"]["param"] == "input[0]"


def test_a_provider_that_compacts_does_it_itself(nodes: tuple[Gateway, Gateway, Gateway], upstream: Upstream) -> None:
    upstream.on("native", [reply(200, json.dumps(WINDOW).encode())])
    answer = post(nodes[0], "/v1/responses/compact", {"model": "native/native", "input": "hello", "odd": 1.50})
    assert json.dumps(WINDOW).encode() == answer.body
    sent = upstream.wait_request("native")
    assert (sent.path, sent.json) == ("/v1/responses/compact", {"model": "native", "input": "hello", "odd": 1.5})


def test_an_item_of_the_provider_goes_back_to_it_and_nowhere_else(
    nodes: tuple[Gateway, Gateway, Gateway], upstream: Upstream
) -> None:
    upstream.on("own-item", [reply(200, json.dumps(body("responses")).encode())])
    window = [*WINDOW["output"], {"role": "user", "content": "hi"}]  # type: ignore[misc] # a list
    assert post(nodes[0], "/v1/responses", {"model": "native/own-item", "input": window}).status == 200
    assert upstream.wait_request("own-item").json["input"] == window
    refused = post(nodes[0], "/v1/responses", {"model": "chat/own-item", "input": window})
    assert (refused.status, refused.json["error"]["code"]) == (400, "compaction_unreadable")
    assert len(upstream.requests("own-item")) == 1


def test_a_failed_summary_is_an_error_of_the_request(
    nodes: tuple[Gateway, Gateway, Gateway], upstream: Upstream
) -> None:
    upstream.on("failing", [reply(503, b'{"error":{"message":"overloaded"}}')])
    asked = {"model": "chat/failing", "input": [{"role": "user", "content": "x"}, {"type": "compaction_trigger"}]}
    answer = post(nodes[0], "/v1/responses", {**asked, "stream": True})
    assert answer.status == 503
    assert "overloaded" in answer.json["error"]["message"]
