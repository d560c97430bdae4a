"""Named keys on a running gateway, through HTTP."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.clients.gateway import scripted
from tests.server.harness import Answer, Gateway, ask, gateway, wait_until
from tests.server.named_keys import create, in_store
from tests.server.socket.client import SocketClient
from tests.tools.mcp.servers import bare
from toolwire.config.file import BackendConfig, Config, McpServerConfig, ServerConfig, StoreConfig, with_backends
from toolwire.config.secret import Secret
from toolwire.config.values import ModelGroup
from toolwire.errors import UpstreamError
from toolwire.memory.keys import KeyDirectory
from toolwire.memory.store import SharedRecord, store_for
from toolwire.memory.store.memory import MemoryStore
from toolwire.telemetry.prices import DOLLAR, Price

pytestmark = pytest.mark.slow

OWNER = "owner-key-0123456789"
BODY = {"model": "demo/echo-tools", "messages": [{"role": "user", "content": "Hello."}]}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def server(path: Path) -> Iterator[Gateway]:
    config = Config(server=ServerConfig(keys=(Secret(OWNER),), default="demo"), store=StoreConfig(path=str(path)))
    create(path, "first")
    with gateway(with_backends(config, (BackendConfig(name="demo", kind="demo"),))) as running:
        yield running


def post(server: Gateway, key: str, body: dict[str, Any] = BODY, path: str = "/v1/chat/completions") -> Answer:
    return ask(server.port, "POST", path, body, {"authorization": f"Bearer {key}"})


def test_a_new_key_works_and_a_revoked_one_does_not_without_a_restart(server: Gateway, path: Path) -> None:
    assert post(server, "tw-wrong").status == 401
    assert post(server, OWNER).status == 200
    secret = create(path, "ann")
    wait_until(lambda: post(server, secret).status == 200)
    with SocketClient(server.port, authorization=f"Bearer {secret}") as client:
        assert client.answer("demo/echo-tools", input="Hello.")["type"] == "response.completed"
        in_store(path, lambda directory: directory.revoke("ann"))
        wait_until(lambda: post(server, secret).status == 401)
        assert client.answer("demo/echo-tools", input="Hello.")["status"] == 401  # also on an open connection


def test_a_key_may_use_its_models_and_routes_alone(server: Gateway, path: Path) -> None:
    secret = create(path, "ann", models=("demo/*",), routes=("/chat/*",))
    wait_until(lambda: post(server, secret).status == 200)
    refused = post(server, secret, BODY | {"model": "other"})
    assert refused.status == 403
    assert b"the key ann may not use the model" in refused.body
    assert post(server, secret, BODY | {"max_tokens": 5}, "/v1/messages").status == 403


def test_mounted_tools_are_run_for_the_keys_of_their_server_alone(path: Path) -> None:
    box = McpServerConfig(name="box", command=tuple(bare()), keys=("ann",), calls_per_minute=1, max_calls=5)
    config = Config(server=ServerConfig(keys=(Secret(OWNER),)), store=StoreConfig(path=str(path)), mcp_servers=(box,))
    ann, bob = create(path, "ann"), create(path, "bob")
    call = {"calls": [{"name": "box__echo", "arguments": {"a": 1}}]}
    prompt = scripted(call, {"text": "It echoed {{result:0}}"})
    body = {"model": "model/m", "messages": [{"role": "user", "content": prompt}]}
    asked = {"name": "ask_model", "arguments": {"model": "model/m", "prompt": prompt}}
    rpc = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": asked}
    with gateway(with_backends(config, (BackendConfig(name="model", kind="scripted"),))) as server:
        assert b'It echoed {\\"a\\": 1}' in post(server, ann, body).body
        assert b"in one minute" in post(server, ann, body).body  # for this key alone
        assert b'It echoed {\\"a\\": 1}' in post(server, OWNER, rpc, "/mcp").body
        for refused in (post(server, bob, body), post(server, bob, rpc, "/mcp")):
            assert refused.status == 200
            assert b"echoed" not in refused.body


def test_a_limit_is_exact_under_concurrency_and_refused_in_the_dialect(server: Gateway, path: Path) -> None:
    secret = create(path, "ann", budget=100_000, requests_per_minute=5)
    wait_until(lambda: post(server, secret, BODY | {"model": "demo/echo-tools"}).status != 401)
    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(lambda _: post(server, secret, BODY | {"max_tokens": 5}, "/v1/messages"), range(20)))
    statuses = [answer.status for answer in answers]
    assert statuses.count(200) <= 5
    assert set(statuses) <= {200, 429}
    refused = next(answer for answer in answers if answer.status == 429)
    assert b'"type":"error"' in refused.body
    assert b"rate_limit_error" in refused.body
    assert 1 <= int(refused.headers["retry-after"]) <= 61


def test_the_tokens_of_a_key_equal_those_of_its_answers(server: Gateway, path: Path) -> None:
    from toolwire.memory.reservations import KeyLimits

    secret = create(path, "ann", budget=1_000_000)
    wait_until(lambda: ask(server.port, "GET", "/v1/models", None, {"authorization": f"Bearer {secret}"}).status == 200)

    async def total() -> int:
        store = store_for(StoreConfig(path=str(path))).store
        try:
            (key,) = [one for one in await KeyDirectory(store, time.time).all() if one.name == "ann"]
            return (await KeyLimits(store).used(key))[0]
        finally:
            await store.close()

    used = 0
    for number in range(6):
        stream = {"stream": True, "stream_options": {"include_usage": True}} if number % 2 else {}
        answer = post(server, secret, BODY | stream)
        text = answer.body.decode()
        used += int(text.rpartition('"total_tokens":')[2].partition(",")[0].strip("}]\n dat[DONE:"))
        assert asyncio.run(total()) == used, "it is counted before the client has the end of the answer"


def test_models_that_a_key_may_not_use_are_not_listed(server: Gateway, path: Path) -> None:
    def listed(key: str) -> list[str]:
        answer = ask(server.port, "GET", "/v1/models", headers={"authorization": f"Bearer {key}"})
        return [line["id"] for line in answer.json["data"]] if answer.status == 200 else []

    none, some = create(path, "none", models=("other/*",)), create(path, "some", models=("demo/echo*",))
    wait_until(lambda: listed(some) == ["demo/echo-tools"])
    assert "demo/echo-tools" in listed(OWNER)
    assert listed(none) == []


def test_a_budget_of_money_ends_and_needs_a_known_price(path: Path) -> None:
    config = Config(
        server=ServerConfig(keys=(Secret(OWNER),), default="demo"),
        store=StoreConfig(path=str(path)),
        prices={"demo/echo-tools": Price(input=1000, output=1000)},
    )
    secret = create(path, "rich", max_cost=4 * DOLLAR)
    backends = (BackendConfig(name="demo", kind="demo"), BackendConfig(name="free", kind="demo"))
    with gateway(with_backends(config, backends)) as running:
        first, second = (post(running, secret, {**BODY, "max_tokens": 3000}) for _ in range(2))
        assert (first.status, second.status) == (200, 200)  # the first one settled what it really cost
        refused = post(running, secret, {**BODY, "max_tokens": 4000})
        assert (refused.status, refused.json["error"]["code"]) == (429, "rate_limit_exceeded")
        unknown = post(running, secret, {**BODY, "model": "free/echo-tools"})
        assert unknown.status == 403
        assert "[prices]" in unknown.body.decode()
        metrics = ask(running.port, "GET", "/metrics", headers={"authorization": f"Bearer {OWNER}"}).body.decode()
    (cost,) = [line for line in metrics.splitlines() if line.startswith('toolwire_key_cost_dollars_total{key="rich"}')]
    assert 0 < float(cost.split()[-1]) < 1


class LateStore(MemoryStore):
    """A store that is down when the gateway starts."""

    is_up = False

    async def records(self, space: str) -> list[SharedRecord]:
        if not self.is_up:
            raise UpstreamError("the store is not available.", status=503)
        return await super().records(space)


def test_a_key_that_cannot_be_checked_is_not_called_wrong() -> None:
    store = LateStore(max_bytes=1 << 20, max_age=1e9)
    config = Config(server=ServerConfig(keys=(Secret(OWNER),), default="demo"))
    with gateway(with_backends(config, (BackendConfig(name="demo", kind="demo"),)), store) as running:
        refused = post(running, "tw-some-key")
        assert (refused.status, refused.json["error"]["code"]) == (503, "store_unavailable")
        assert post(running, OWNER).status == 200
        store.is_up = True
        wait_until(lambda: post(running, "tw-some-key").status == 401)


def test_a_budget_of_money_needs_the_prices_of_all_models_of_a_group(path: Path) -> None:
    def served(prices: dict[str, Price]) -> Config:
        config = Config(
            server=ServerConfig(keys=(Secret(OWNER),)),
            store=StoreConfig(path=str(path)),
            aliases={"fast": "one/echo-tools"},
            groups={"fast": ModelGroup(models=("one/echo-tools", "two/echo-tools"))},
            prices=prices,
        )
        return with_backends(config, tuple(BackendConfig(name=name, kind="demo") for name in ("one", "two")))

    secret, cheap = create(path, "rich", max_cost=4 * DOLLAR), {"one/echo-tools": Price(input=1, output=1)}
    body = {**BODY, "model": "fast", "max_tokens": 3000}
    with gateway(served(cheap)) as running:
        assert post(running, secret, body).status == 403
    with gateway(served({**cheap, "two/echo-tools": Price(input=1, output=2000)})) as running:
        assert post(running, secret, body).status == 429  # the second model could cost 6 dollars
        assert post(running, secret, {**body, "max_tokens": 1000}).status == 200
