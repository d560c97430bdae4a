"""`toolwire models`: what it lists, and how it says what it cannot."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.backends.vscode.stage import TOKEN, model, vscode_gateway, window
from tests.cli.listener import http, listening
from toolwire.catalog.discovery import VSCODE
from toolwire.cli.models import ask, listings_of, models, plain
from toolwire.config.file import BackendConfig, Config, ServerConfig, with_backends

CONFIG = """
[backends.listed]
kind = "openai-chat"
base_url = "http://127.0.0.1:9/v1"
models = ["gpt-5.5", "a\\u001b[31m"]
[backends.keyless]
kind = "anthropic"
key = "env:TOOLWIRE_TEST_NOT_SET"
[models]
"fast" = "gpt-5.5-high"
"nowhere" = "no such model"
"claude-*" = "fast"
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "toolwire.toml"
    path.write_text(CONFIG)
    return path


def test_models_are_listed_with_their_back_end(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert models(config=config) == 1  # one back end cannot be asked
    shown = capsys.readouterr()
    models_shown = ["listed/gpt-5.5", "listed/a\\u001b[31m", "demo/echo-tools"]
    assert shown.out.splitlines() == ["fast -> listed/gpt-5.5", *models_shown]
    assert shown.err == "keyless: TOOLWIRE_TEST_NOT_SET is not set.\n"


def test_models_of_vscode_come_from_the_running_gateway(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLWIRE_BRIDGE_TOKEN", TOKEN)
    path = tmp_path / "toolwire.toml"

    async def main() -> None:
        with vscode_gateway() as running:
            path.write_text(f'[server]\nport = {running.port}\n[backends.vscode]\nkind = "vscode"\n')
            assert await asyncio.to_thread(models, config=path) == 1
            shown = capsys.readouterr()
            assert shown.out.splitlines() == ["demo/echo-tools"]
            assert shown.err.startswith("vscode: no VS Code window offers a model;")
            async with window(running, None, model("copilot/gpt-4.1"), model("other/m")):
                assert await asyncio.to_thread(models, config=path) == 0
                assert capsys.readouterr().out.splitlines() == ["vscode/gpt-4.1", "vscode/m", "demo/echo-tools"]
        assert await asyncio.to_thread(models, config=path) == 1
        assert capsys.readouterr().err.startswith("vscode: the gateway is not running;")

    asyncio.run(main())


def test_without_a_file_connected_windows_are_found_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLWIRE_BRIDGE_TOKEN", TOKEN)

    async def main() -> None:
        with vscode_gateway() as running:
            config = with_backends(Config(server=ServerConfig(port=running.port)), (VSCODE,))
            assert [listing.backend for listing in await listings_of(config)] == ["demo"]
            async with window(running):
                found = {listing.backend: listing.models for listing in await listings_of(config)}
                assert found == {"vscode": ("gpt-4.1",), "demo": ("echo-tools",)}

    asyncio.run(main())


def test_programs_get_json(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert models(config=config, json=True) == 1
    shown = json.loads(capsys.readouterr().out)
    assert shown["models"][0] == {"id": "listed/gpt-5.5", "backend": "listed", "model": "gpt-5.5"}
    assert shown["aliases"] == [{"id": "fast", "backend": "listed", "model": "gpt-5.5"}]
    assert shown["failures"] == [{"backend": "keyless", "why": "TOOLWIRE_TEST_NOT_SET is not set."}]


def test_a_back_end_that_is_not_there() -> None:
    async def main() -> None:
        async with listening(None) as listener:
            url = f"http://127.0.0.1:{listener.port}/v1"
        answer = await ask(BackendConfig(name="gone", kind="openai-chat", base_url=url, retries=0))
        assert answer.models == ()
        assert answer.error is not None

    asyncio.run(main())


def test_a_back_end_that_does_not_answer() -> None:
    async def main() -> None:
        async with listening(None) as listener:
            url = f"http://127.0.0.1:{listener.port}/v1"
            answer = await ask(BackendConfig(name="slow", kind="openai-chat", base_url=url), 0.1)
        assert answer.error is not None
        assert answer.error.sentence() == "it did not answer within 0.1 seconds."

    asyncio.run(main())


def test_a_back_end_that_answers() -> None:
    async def main() -> None:
        async with listening(http(b'{"object": "list", "data": [{"id": "gpt-5.5", "object": "model"}]}')) as listener:
            url = f"http://127.0.0.1:{listener.port}/v1"
            answer = await ask(BackendConfig(name="here", kind="openai-chat", base_url=url))
        assert answer.models == ("gpt-5.5",)

    asyncio.run(main())


def test_a_script_that_is_not_there_is_a_failure_of_that_back_end(tmp_path: Path) -> None:
    backend = BackendConfig(name="play", kind="scripted", script=str(tmp_path / "none.json"))
    assert asyncio.run(ask(backend)).error is not None


def test_a_terminal_gets_plain_text() -> None:
    assert plain("a\x1b[2Jb") == "a\\u001b[2Jb"
    assert plain("x" * 1000) == "x" * 200
    assert plain("x" * 1000, 600) == "x" * 600
