"""`POST /reload`: who may use it, and what it answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.server.harness import Gateway, ask, gateway, wait_until
from tests.server.named_keys import create
from toolwire.config.file import BackendConfig, Config, ServerConfig, StoreConfig, with_backends
from toolwire.config.secret import Secret
from toolwire.errors import ConfigError
from toolwire.server.assembly.reload import Reload

OWNER = "owner-key-0123456789"


class Source:
    """Where the configuration is read."""

    error = ""

    def __init__(self, config: Config) -> None:
        self.config = config

    def read(self) -> Config:
        if self.error:
            raise ConfigError(self.error)
        return self.config


@pytest.fixture
def source(tmp_path: Path) -> Source:
    store = StoreConfig(path=str(tmp_path / "store.db"))
    config = Config(server=ServerConfig(keys=(Secret(OWNER),)), store=store)
    return Source(with_backends(config, (BackendConfig(name="one", kind="demo"),)))


@pytest.fixture
def server(source: Source) -> Iterator[Gateway]:
    with gateway(source.config, reload=Reload(source.read)) as running:
        yield running


def headers(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def test_the_owner_replaces_the_configuration(server: Gateway, source: Source) -> None:
    added = BackendConfig(name="two", kind="demo")
    keys = (Secret("a-new-key-0123456789"),)
    source.config = replace(
        source.config,
        backends=(*source.config.backends, added),
        server=replace(source.config.server, keys=keys),
    )
    answer = ask(server.port, "POST", "/reload", None, headers(OWNER))
    assert answer.json == {"changes": "added: two; also changed: server.keys"}
    assert ask(server.port, "GET", "/v1/models", None, headers(OWNER)).status == 401
    listed = ask(server.port, "GET", "/v1/models", None, headers("a-new-key-0123456789"))
    assert "two/echo-tools" in {line["id"] for line in listed.json["data"]}


def test_an_error_changes_nothing(server: Gateway, source: Source) -> None:
    source.error = "found 7; expected a table."
    answer = ask(server.port, "POST", "/reload", None, headers(OWNER))
    assert answer.status == 400
    assert "the configuration is not used: found 7" in answer.json["error"]["message"]
    assert ask(server.port, "GET", "/v1/models", None, headers(OWNER)).status == 200


def test_only_the_owner_may(server: Gateway, tmp_path: Path) -> None:
    secret = create(tmp_path / "store.db", "ann")
    wait_until(lambda: ask(server.port, "GET", "/v1/models", None, headers(secret)).status == 200)
    assert ask(server.port, "POST", "/reload", None, headers(secret)).status == 403
    assert ask(server.port, "POST", "/reload").status == 401
    assert ask(server.port, "GET", "/reload", None, headers(OWNER)).status == 405


def test_without_a_source_nothing_can_be_read() -> None:
    said: list[str] = []

    async def main() -> None:
        reload = Reload()
        reload.use, reload.say = lambda config: "", lambda *words: said.append(words[1])
        reload.start()
        await asyncio.sleep(0)

    asyncio.run(main())
    assert said == []
