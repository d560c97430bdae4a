"""Discovery: what is found without a file, with a probe that only remembers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.virtual_clock import run_virtually
from toolwire.catalog.discovery import LOCAL_PORTS, PROBE_SECONDS, VSCODE, discover
from toolwire.config.file import BackendConfig
from toolwire.errors import ConfigError

OLLAMA = "http://127.0.0.1:11434/v1/models"


def found(
    environ: Mapping[str, str], servers: Mapping[str, list[str]] | None = None, own_port: int = 18741
) -> dict[str, BackendConfig]:
    async def probe(url: str) -> list[str] | None:
        return (servers or {}).get(url)

    return {backend.name: backend for backend in asyncio.run(discover(environ, probe, own_port=own_port))}


def test_nothing_is_found_where_nothing_is() -> None:
    assert found({}) == {}
    assert found({"OPENAI_API_KEY": "", "ANTHROPIC_API_KEY": " "}) == {}


def test_keys_in_the_environment() -> None:
    names = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY")
    backends = found({name: f"key of {name}" for name in names})
    assert {name: (each.kind, each.base_url) for name, each in backends.items()} == {
        "openai": ("openai-chat", "https://api.openai.com/v1"),
        "anthropic": ("anthropic", "https://api.anthropic.com"),
        "gemini": ("gemini", "https://generativelanguage.googleapis.com"),
        "openrouter": ("openai-chat", "https://openrouter.ai/api/v1"),
    }
    assert [each.key.reveal() for each in backends.values()] == [f"key of {name}" for name in names]


def test_other_addresses_in_the_environment() -> None:
    environ = {
        "OPENAI_API_KEY": "k",
        "OPENAI_BASE_URL": "http://10.0.0.1:9/v1/",
        "ANTHROPIC_API_KEY": "k",
        "ANTHROPIC_BASE_URL": "http://10.0.0.2",
    }
    assert [each.base_url for each in found(environ).values()] == ["http://10.0.0.1:9/v1", "http://10.0.0.2"]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_the_gateway_does_not_find_itself(host: str) -> None:
    environ = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": f"http://{host}:18741"}
    assert found(environ)["anthropic"].base_url == "https://api.anthropic.com"
    assert found(environ, own_port=8080)["anthropic"].base_url == f"http://{host}:18741"


def test_its_own_port_is_skipped() -> None:
    servers = {"http://127.0.0.1:8080/v1/models": ["demo/echo-tools"]}
    assert list(found({}, servers)) == ["llamacpp"]
    assert found({}, servers, own_port=8080) == {}


@pytest.mark.parametrize(
    "environ",
    [
        {"OPENAI_API_KEY": "sk-secret\nx: y"},
        {"OPENAI_API_KEY": "sk-secret", "OPENAI_BASE_URL": "https://u:sk-secret@x"},
        {"OPENAI_API_KEY": "sk-secret", "OPENAI_BASE_URL": "sk-secret"},
    ],
)
def test_what_cannot_be_used_is_refused_without_a_secret(environ: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as caught:
        found(environ)
    assert caught.value.where in environ
    assert "sk-secret" not in caught.value.sentence()


def test_local_servers_that_answer() -> None:
    servers = {f"http://127.0.0.1:{port}/v1/models": [name] for name, port in LOCAL_PORTS.items()}
    backends = found({}, servers)
    assert list(backends) == ["ollama", "lmstudio", "llamacpp", "vllm"]
    assert backends["ollama"].base_url == "http://127.0.0.1:11434/v1"
    assert backends["ollama"].models == ("ollama",)


def test_a_local_server_without_models_is_still_one() -> None:
    assert found({}, {OLLAMA: []})["ollama"].models == ()


def test_servers_that_hang_or_fail_are_passed_over_together() -> None:
    async def probe(url: str) -> list[str] | None:
        if url == OLLAMA:
            return ["llama"]
        if ":8080/" in url:
            raise ConnectionRefusedError
        await asyncio.Event().wait()
        return []

    backends, seconds = run_virtually(discover({}, probe))
    assert [each.name for each in backends] == ["ollama"]
    assert seconds == PROBE_SECONDS


def test_windows_can_connect_to_a_gateway_on_a_machine_with_vs_code(tmp_path: Path) -> None:
    async def probe(url: str) -> list[str] | None:
        return None

    def served(environ: dict[str, str]) -> tuple[BackendConfig, ...]:
        return asyncio.run(discover(environ, probe, is_serving=True))

    home, programs = tmp_path / "home", tmp_path / "programs"
    environ = {"HOME": str(home), "PATH": str(programs)}
    assert served(environ) == ()
    (home / ".vscode-server").mkdir(parents=True)
    assert served(environ) == (VSCODE,)
    programs.mkdir()
    (programs / "code").write_text("#!/bin/sh\n")
    (programs / "code").chmod(0o755)
    assert served({"PATH": str(programs)}) == (VSCODE,)
    assert asyncio.run(discover(environ, probe)) == ()


def test_a_program_on_the_path(tmp_path: Path) -> None:
    program = tmp_path / "codex"
    program.write_text("#!/bin/sh\nexit 1\n")
    assert found({"PATH": str(tmp_path)}) == {}
    program.chmod(0o755)
    assert found({"PATH": str(tmp_path)})["codex"] == BackendConfig(name="codex", kind="codex")
