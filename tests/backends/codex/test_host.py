"""Codex made ready: which settings it is started with, and what is said where it does not start."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.backends.codex.processes import all_gone
from tests.backends.codex.starting import environment, fake
from toolwire.backends.codex.host import CodexHost, catalogue_of, plain_catalogue
from toolwire.config.file import BackendConfig
from toolwire.errors import ConfigError, GatewayError, UpstreamError

pytestmark = pytest.mark.slow

_PRINTING = """
import json, sys
if sys.argv[1:] == ["debug", "models"]:
    print(json.dumps({"models": [{"slug": "gpt", "tool_mode": "code_mode_only"}]}))
    sys.exit()
del sys.argv[1]
exec(compile(open(%r).read(), "fake", "exec"))
"""


def _started(folder: Path, **config: Any) -> tuple[dict[str, Any], Path]:
    """The settings of an app-server that was started, and its home (which is gone)."""

    async def main() -> tuple[dict[str, Any], Path]:
        made = CodexHost(
            BackendConfig(name="c", kind="codex", **{"command": fake(), **config}), environment()[0], folder
        )
        try:
            (await made.pool.lease()).release(is_good=True)
            assert made.home is not None
            settings = tomllib.loads((made.home.home / "config.toml").read_text())
            models = made.home.home / "models.json"
            return settings | {"_models": models.read_text() if models.exists() else ""}, made.home.home
        finally:
            await made.close()

    settings, home = asyncio.run(main())
    assert not home.exists()
    return settings, home


def test_tools_of_codex_are_off_until_the_owner_names_them(tmp_path: Path) -> None:
    settings, _ = _started(tmp_path)
    assert (settings["web_search"], settings["features"]["view_image"]) == ("disabled", False)
    settings, _ = _started(tmp_path, built_in_tools=("web_search", "view_image"))
    assert (settings["web_search"], settings["features"]["view_image"]) == ("live", True)
    settings, _ = _started(tmp_path, built_in_tools=("web_search",), config={"web_search": "cached"})
    assert (settings["web_search"], settings["features"]["view_image"]) == ("cached", False)


def test_a_login_is_used_with_a_provider_of_ours_that_does_not_retry(tmp_path: Path) -> None:
    settings, _ = _started(tmp_path, idle_timeout=60.0)
    provider = settings["model_providers"][settings["model_provider"]]
    assert provider["requires_openai_auth"] is True
    assert (provider["request_max_retries"], provider["stream_max_retries"]) == (0, 0)
    assert provider["stream_idle_timeout_ms"] == 60000
    assert settings["features"]["shell_tool"] is False
    assert settings["features"]["remote_models"] is False
    assert settings["include_environment_context"] is False
    assert "model_catalog_json" not in settings


def test_the_owners_own_provider_and_settings_win(tmp_path: Path) -> None:
    own = {"name": "gw", "base_url": "http://127.0.0.1:1/v1", "env_key": "GW_KEY", "stream_max_retries": 4}
    given = {"model_provider": "gw", "model_providers": {"gw": own}, "features": {"goals": True}}
    settings, _ = _started(tmp_path, config=given)
    assert settings["model_providers"] == {"gw": {**own, "request_max_retries": 0}}
    assert settings["features"]["goals"] is True
    assert settings["features"]["shell_tool"] is False


def test_a_provider_that_is_built_in_is_left_as_it_is(tmp_path: Path) -> None:
    settings, _ = _started(tmp_path, config={"model_provider": "ollama"})
    assert settings["model_provider"] == "ollama"
    assert "model_providers" not in settings


def test_models_that_bring_tools_along_come_without_them(tmp_path: Path) -> None:
    program = tmp_path / "codex.py"
    program.write_text(_PRINTING % fake()[3])
    command = (sys.executable, "-S", "-E", str(program), "app-server")
    settings, home = _started(tmp_path / "cache", command=command)
    assert settings["model_catalog_json"] == str(home / "models.json")
    assert settings["_models"] == '{"models":[{"slug":"gpt","tool_mode":null}]}'
    own, _ = _started(tmp_path / "cache", command=command, config={"model_catalog_json": "/mine.json"})
    assert own["model_catalog_json"] == "/mine.json"


def test_one_that_says_nothing_and_one_that_is_no_codex_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolwire.backends.codex.host._INITIALIZE_SECONDS", 0.2)

    async def error(*options: str) -> GatewayError:
        host = CodexHost(BackendConfig(name="c", kind="codex", command=fake(*options)), environment()[0], tmp_path)
        try:
            with pytest.raises(GatewayError) as caught:
                await host.pool.lease()
            return caught.value
        finally:
            await host.close()

    silent = asyncio.run(error("--mute"))
    assert isinstance(silent, UpstreamError)
    assert "did not answer initialize" in silent.message
    assert "toolwire doctor" in silent.hint
    monkeypatch.setattr("toolwire.backends.codex.host._INITIALIZE_SECONDS", 10)
    stranger = asyncio.run(error("--version", "something else"))
    assert isinstance(stranger, ConfigError)


def test_one_that_listens_elsewhere_has_no_folder(tmp_path: Path) -> None:
    async def main() -> None:
        config = BackendConfig(name="c", kind="codex", command=("ws://127.0.0.1:9",), config={"base_instructions": "x"})
        host = CodexHost(config, {}, tmp_path)
        with pytest.raises(UpstreamError, match="no app-server was reached"):
            await host.pool.lease()
        assert (host.home, host.work, host.base_instructions) == (None, "/", "x")
        await host.close()

    asyncio.run(main())
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_was_cleaned_away_is_made_again(tmp_path: Path) -> None:
    async def main() -> None:
        host = CodexHost(BackendConfig(name="c", kind="codex", command=fake(), workers=1), environment()[0], tmp_path)
        first = await host.pool.lease()
        assert host.home is not None
        shutil.rmtree(host.home.folder)
        first.distrust()
        first.release(is_good=True)
        (await host.pool.lease()).release(is_good=True)
        assert host.home.is_there
        await host.close()

    asyncio.run(main())
    assert list(tmp_path.iterdir()) == []


def test_where_the_list_of_models_finds_no_room_the_owner_gets_an_error_and_nothing_is_left(tmp_path: Path) -> None:
    program = tmp_path / "codex.py"
    clearing = "import os, shutil, sys\nif sys.argv[1:2] == ['debug']: shutil.rmtree(os.environ['CODEX_HOME'])\n"
    program.write_text(clearing + _PRINTING % fake()[3])
    command = (sys.executable, "-S", "-E", str(program), "app-server")

    async def main() -> None:
        host = CodexHost(BackendConfig(name="c", kind="codex", command=command), environment()[0], tmp_path / "cache")
        with pytest.raises(UpstreamError, match="no folder for Codex could be made"):
            await host.pool.lease()
        await host.close()

    asyncio.run(main())
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.parametrize("program", ["printing", "starting"])
def test_closing_does_not_wait_for_one_that_never_introduces_itself(tmp_path: Path, program: str) -> None:
    sleeping = tmp_path / "codex.py"
    sleeping.write_text("import time; time.sleep(60)")
    command = (sys.executable, "-S", str(sleeping), *(["app-server"] if program == "printing" else []))

    async def main() -> None:
        host = CodexHost(BackendConfig(name="c", kind="codex", command=command, workers=2), environ, tmp_path / "cache")
        waiting = [asyncio.create_task(host.pool.lease()) for _ in range(6)]
        await asyncio.sleep(0.2)
        async with asyncio.timeout(5):
            await host.close()
            for lease in waiting:
                with pytest.raises(UpstreamError, match="closed"):
                    await lease
        assert asyncio.all_tasks() == {asyncio.current_task()}

    environ, mark = environment()
    asyncio.run(main())
    assert all_gone(mark)
    assert list((tmp_path / "cache").iterdir()) == []


def test_what_the_settings_keep_secret_is_not_reported(tmp_path: Path) -> None:
    provider = {
        "env_key": "PLAIN",
        "experimental_bearer_token": "bearer-of-mine",
        "http_headers": {"X-Mine": "header-of-mine"},
        "env_http_headers": {"X-Other": "OTHER"},
        "query_params": {"v": "query-of-mine"},
    }
    config = {"model_provider": "mine", "model_providers": {"mine": provider}}
    environ = environment()[0] | {"PLAIN": "value-of-plain", "OTHER": "value-of-other", "NOT": "a-word-of-all"}
    program = tmp_path / "codex.py"
    words = "[line.split('= ')[1] for line in open(os.environ['CODEX_HOME'] + '/config.toml') if 'of-mine' in line]"
    names = "[os.environ[name] for name in ('PLAIN', 'OTHER', 'NOT')]"
    program.write_text(f"import os, sys; print({words}, {names}, file=sys.stderr); sys.exit(1)")

    async def main() -> str:
        command = (sys.executable, "-S", str(program))
        host = CodexHost(
            BackendConfig(name="c", kind="codex", command=command, config=config), environ, tmp_path / "cache"
        )
        with pytest.raises(UpstreamError) as caught:
            await host.pool.lease()
        await host.close()
        assert "a-word-of-all" not in caught.value.sentence()
        return host.with_details(caught.value).sentence()

    said = asyncio.run(main())
    assert "a-word-of-all" in said
    assert "of-mine" not in said
    assert "value-of" not in said


_KNOWN = {
    "slug": "gpt",
    "base_instructions": "You are",
    "context_window": 272000,
    "tool_mode": "code_mode_only",
    "multi_agent_version": "v2",
    "apply_patch_tool_type": "freeform",
    "use_responses_lite": True,
    "experimental_supported_tools": ["clock"],
}


def _program(folder: Path, body: str) -> str:
    path = folder / "codex"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def test_only_what_brings_tools_is_changed() -> None:
    changed = json.loads(plain_catalogue(json.dumps({"models": [_KNOWN, {"slug": "old"}], "etag": "x"}).encode()))
    assert changed["etag"] == "x"
    assert changed["models"][1] == {"slug": "old"}
    assert changed["models"][0] == {
        "slug": "gpt",
        "base_instructions": "You are",
        "context_window": 272000,
        "tool_mode": None,
        "multi_agent_version": None,
        "apply_patch_tool_type": None,
        "use_responses_lite": False,
        "experimental_supported_tools": [],
    }


@pytest.mark.parametrize(
    "printed", [b"", b"error: no such command", b"[]", b'{"models": []}', b'{"models": "x"}', b"\xff"]
)
def test_what_is_no_list_is_none(printed: bytes) -> None:
    assert plain_catalogue(printed) == b""


def test_the_program_is_asked_for_it_with_the_options_before_its_command(tmp_path: Path) -> None:
    program = _program(tmp_path, 'echo "{\\"models\\": [{\\"slug\\": \\"$*\\"}]}"')
    command = (program, "-c", "a=1", "app-server", "--listen", "stdio://")
    listed = asyncio.run(catalogue_of(command, tmp_path, dict(os.environ)))
    assert json.loads(listed) == {"models": [{"slug": "-c a=1 debug models"}]}


def test_a_program_without_it_is_no_obstacle(tmp_path: Path) -> None:
    for command in (
        (_program(tmp_path, "exit 2"), "app-server"),
        ("codex-that-is-not-there", "app-server"),
        (_program(tmp_path, "exit 0"),),
    ):
        assert asyncio.run(catalogue_of(command, tmp_path, dict(os.environ))) == b""


def test_a_program_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolwire.backends.codex.host._LIST_SECONDS", 0.1)
    since = time.monotonic()
    command = (_program(tmp_path, "sleep 60 & sleep 60"), "app-server")
    assert asyncio.run(catalogue_of(command, tmp_path, dict(os.environ))) == b""
    assert time.monotonic() - since < 5
