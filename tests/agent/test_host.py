"""A runtime for a program of one's own: by configuration, by what the machine offers, or by the address of a gateway."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.server.harness import Upstream, reply
from toolwire.agent.host import Host, host_at, host_of
from toolwire.catalog import discovery
from toolwire.config.file import BackendConfig, Config, with_backends
from toolwire.config.values import ModelGroup
from toolwire.errors import ConfigError
from toolwire.telemetry import Record
from toolwire.types import Message, Request, Text


def of(config: Config | Path | str | None) -> Host:
    async def main() -> Host:
        host = await host_of(config)
        await host.close()
        return host

    return asyncio.run(main())


@pytest.fixture(autouse=True)
def _nothing_of_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for account in discovery.ACCOUNTS:
        monkeypatch.delenv(account.key, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(discovery, "LOCAL_PORTS", {})


def test_a_configuration_is_taken_as_it_is() -> None:
    host = of(with_backends(Config(), (BackendConfig(name="s", kind="scripted"),)))
    assert set(host.runtime.backends) == {"s", "demo"}
    assert host.model("s/scripted") == "s/scripted"


def test_models_of_a_group_fall_over() -> None:
    upstream = Upstream()
    upstream.on("bad", [reply(503, b'{"error": {"message": "busy"}}')])
    bad = BackendConfig(name="bad", kind="openai-chat", base_url=f"{upstream.url}/v1", models=("bad",), retries=0)
    demo = BackendConfig(name="demo", kind="demo")
    groups = {"fast": ModelGroup(models=("bad/bad", "demo/echo-tools"))}
    config = with_backends(Config(aliases={"fast": "bad/bad"}, groups=groups), (bad, demo))
    request = Request(model="fast", messages=(Message(role="user", parts=(Text(text="Hi"),)),))

    async def main() -> Record:
        host, record = Host(config), Record()
        answer = await host.runtime.answer(request, record)
        await answer.release()
        await host.close()
        return record

    try:
        record = asyncio.run(main())
    finally:
        upstream.close()
    assert (record.backend, record.hops) == ("demo", ["bad/bad:503"])


def test_a_file_by_its_path_or_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "toolwire.toml"
    path.write_text('[backends.mine]\nkind = "scripted"\n')
    assert "mine" in of(path).runtime.backends
    assert "mine" in of(None).runtime.backends
    assert "mine" in of(str(path)).runtime.backends


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        of(tmp_path / "none.toml")


def test_without_a_file_keys_and_local_servers_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    upstream = Upstream()
    upstream.on("/v1/models", [reply(200, b'{"object":"list","data":[{"id":"llama"}]}')])
    monkeypatch.setattr(discovery, "LOCAL_PORTS", {"ollama": upstream.port, "vllm": 9})
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")
    try:
        host = of(None)
    finally:
        upstream.close()
    assert set(host.runtime.backends) == {"anthropic", "ollama", "demo"}


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1", "http://127.0.0.1:1/", "http://127.0.0.1:1/v1", "https://g.example/x/v1/"]
)
def test_a_gateway_by_its_address(url: str) -> None:
    host = host_at(url, "key")
    assert host.model("a/b") == "gateway/a/b"


@pytest.mark.parametrize("url", ["127.0.0.1:1", "ftp://x", "x" * 10_000])
def test_an_invalid_url(url: str) -> None:
    with pytest.raises(ConfigError, match="expected one such as") as raised:
        host_at(url)
    assert len(raised.value.message) < 300
