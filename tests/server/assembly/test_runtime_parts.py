"""What a new configuration replaces in a running gateway, and what it leaves alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest
from msgspec.structs import replace

from toolwire.config.file import BackendConfig, Config, FlowsConfig, McpServerConfig, ServerConfig, StoreConfig
from toolwire.config.secret import Secret
from toolwire.config.values import ModelGroup
from toolwire.errors import BadRequest, ConfigError, UpstreamError
from toolwire.memory.store.memory import MemoryStore
from toolwire.server.assembly.retirement import Retirement
from toolwire.server.assembly.runtime_parts import RuntimeParts
from toolwire.telemetry.prices import Price
from toolwire.types import Message, Request, Text

ONE = BackendConfig(name="one", kind="demo")
TWO = BackendConfig(name="two", kind="scripted")
CONFIG = Config(server=ServerConfig(keys=(Secret("a key"),)), backends=(ONE, TWO))


@asynccontextmanager
async def parts_of(config: Config) -> AsyncIterator[RuntimeParts]:
    store = MemoryStore(max_bytes=1 << 20, max_age=1e9)
    parts = RuntimeParts(config, store, None, Retirement())
    try:
        yield parts
    finally:
        await parts.stop()
        await store.close()


def with_parts(test: Callable[[RuntimeParts], Awaitable[None]], config: Config = CONFIG) -> None:
    async def main() -> None:
        async with parts_of(config) as parts:
            await test(parts)

    asyncio.run(main())


def test_unchanged_back_ends_stay_and_others_are_replaced() -> None:
    async def test(parts: RuntimeParts) -> None:
        one, two = parts.backends["one"], parts.backends["two"]
        changed = replace(TWO, guard="check")
        changes = parts.replace(replace(CONFIG, backends=(ONE, changed, BackendConfig(name="new", kind="demo"))))
        assert (changes.added, changes.changed, changes.removed) == (["new"], ["two"], [])
        assert parts.backends["one"] is one
        assert parts.backends["two"] is not two
        assert parts.runtime.backends["new"] is parts.backends["new"]
        assert parts.replace(parts.config).describe() == "nothing changed"
        removed = parts.replace(replace(CONFIG, backends=(ONE,)))
        assert removed.removed == ["two", "new"]
        with pytest.raises(BadRequest):
            await parts.runtime.catalog.route("new/m")

    with_parts(test)


def test_aliases_groups_prices_and_keys_are_replaced() -> None:
    async def test(parts: RuntimeParts) -> None:
        config = replace(
            CONFIG,
            aliases={"fast": "one/echo-tools"},
            groups={"fast": ModelGroup(models=("one/echo-tools", "two/x"))},
            prices={"one/echo-tools": Price(input=1, output=1)},
            server=replace(CONFIG.server, keys=(Secret("another key"),), default="two", max_streams=7),
        )
        changes = parts.replace(config)
        assert changes.others == ["aliases", "groups", "prices", "server.keys", "server.default", "server.max_streams"]
        assert changes.restart == []
        assert parts.config == config
        assert parts.runtime.models_of("fast") == ("one/echo-tools", "two/x")
        assert (await parts.runtime.catalog.route("unknown")).backend == "two"

    with_parts(test)


def test_what_needs_a_restart_is_named_and_stays() -> None:
    async def test(parts: RuntimeParts) -> None:
        window = BackendConfig(name="window", kind="vscode")
        config = replace(
            CONFIG,
            backends=(ONE, TWO, window),
            store=StoreConfig(path="/another"),
            flows=FlowsConfig(enabled=False),
            server=ServerConfig(port=1),
        )
        changes = parts.replace(config)
        assert sorted(changes.restart) == ["backends.window", "flows", "server.keys", "server.port", "store"]
        assert parts.config == CONFIG  # a gateway never loses its last key while it runs
        assert "window" not in parts.backends
        assert "only used after a restart: store" in changes.describe()

    with_parts(test)


def test_an_error_changes_nothing() -> None:
    async def test(parts: RuntimeParts) -> None:
        before = parts.backends
        box = McpServerConfig(name="box", command=("no-such-program",))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("toolwire.pipeline.mounted.servers.find_spec", lambda name: None)
            with pytest.raises(ConfigError):
                parts.replace(replace(CONFIG, backends=(ONE,), mcp_servers=(box,)))
        assert parts.backends is before
        assert parts.config == CONFIG
        assert set(parts.runtime.backends) == {"one", "two"}

    with_parts(test)


def test_groups_remember_conversations_and_circuits() -> None:
    async def test(parts: RuntimeParts) -> None:
        group = ModelGroup(models=("one/echo-tools", "two/x"))
        config = replace(CONFIG, aliases={"fast": "one/echo-tools"}, groups={"fast": group})
        parts.replace(config)
        request = Request(model="fast", messages=(Message(role="user", parts=(Text(text="Hi"),)),))
        parts._groups.succeeded("two/x", request, "")
        for _ in range(3):
            with suppress(UpstreamError), parts._groups.attempt(group, "one/echo-tools"):
                raise UpstreamError("busy", status=503)
        parts.replace(replace(config, prices={"two/x": Price(input=1, output=1)}))
        other = Request(model="fast", messages=(Message(role="user", parts=(Text(text="Other"),)),))
        for one in (request, other):
            assert parts._groups.candidates(group, one, "")[0] == "two/x"

    with_parts(test)
