"""`toolwire vscode`: programs of VS Code that only note what they are told, and a gateway that only lists models."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.free_port import free_port
from tests.server.harness import Upstream, reply
from toolwire import __version__
from toolwire.cli.vscode import EXTENSION, install, status, uninstall, vscode
from toolwire.errors import ConfigError

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the programs of these tests are shell scripts")
Shown = pytest.CaptureFixture[str]


class Programs:
    """A folder that is the whole PATH; what is in it writes down how it was called."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def put(self, name: str, does: str = "") -> Path:
        path = self.folder / name
        path.write_text(f'#!/bin/sh\necho "$@" >> {self.folder}/{name}.calls\n{does}\n', encoding="utf-8")
        path.chmod(stat.S_IRWXU)
        return path

    def calls(self, name: str) -> list[str]:
        path = self.folder / f"{name}.calls"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    programs = Programs(tmp_path / "bin")
    monkeypatch.setenv("PATH", str(programs.folder))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("TOOLWIRE_KEY", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    return programs


@pytest.fixture
def gateway() -> Iterator[Upstream]:
    upstream = Upstream()
    yield upstream
    upstream.close()


def configured(folder: Path, port: int, more: str = "") -> Path:
    path = folder / "toolwire.toml"
    path.write_text(f"[server]\nport = {port}\n{more}", encoding="utf-8")
    return path


def lists(gateway: Upstream, *models: str, code: str = "200 OK") -> None:
    body = json.dumps({"data": [{"id": model} for model in models]}).encode()
    gateway.plays["/v1/models"] = [[f"HTTP/1.1 {code}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body]]


def listing(version: str) -> str:
    return f'case "$*" in *--list*) echo other.extension@1.0.0; echo {EXTENSION}@{version};; esac'


def test_it_installs_what_the_package_ships_into_every_program_found(programs: Programs, capsys: Shown) -> None:
    programs.put("code")
    programs.put("code-server", '[ -f "$2" ]')
    assert install() == 0
    shown = capsys.readouterr().out
    assert f"code: the extension {EXTENSION} {__version__} is installed." in shown
    assert f"code-server: the extension {EXTENSION} {__version__} is installed." in shown
    assert "Reload Window" in shown
    assert '"chat.allowAnonymousAccess": true' in shown
    [call] = programs.calls("code")
    assert call.startswith("--install-extension ")
    assert call.endswith("toolwire.vsix --force")


def test_a_program_can_be_named_and_given_by_path(programs: Programs, tmp_path: Path) -> None:
    programs.put("code")
    other = programs.put("my-code")
    assert install(program=(str(other),)) == 0
    assert programs.calls("code") == []
    assert len(programs.calls("my-code")) == 1
    with pytest.raises(ConfigError, match='found no program "nowhere"'):
        install(program=("nowhere", "code"))


def test_without_any_program_it_says_what_to_do(programs: Programs) -> None:
    with pytest.raises(ConfigError) as caught:
        install()
    assert "found none of code, code-insiders, codium, code-server" in caught.value.message
    assert "Install from VSIX" in caught.value.hint
    assert "toolwire.vsix" in caught.value.hint


def test_a_program_that_fails_is_quoted_without_its_control_characters(programs: Programs, capsys: Shown) -> None:
    programs.put("code", 'echo one >&2; printf "\\033[31mno room\\n" >&2; exit 3')
    programs.put("codium", "exit 1")
    assert install() == 1
    shown = capsys.readouterr().out
    assert "code: it failed with code 3: " in shown
    assert "no room" in shown
    assert "\033" not in shown
    assert "codium: it failed with code 1: no output" in shown
    assert "Reload" not in shown


def test_a_missing_program_is_reported(programs: Programs, capsys: Shown) -> None:
    (programs.folder / "code").write_bytes(b"\x7fELF nonsense")
    (programs.folder / "code").chmod(stat.S_IRWXU)
    assert install() == 1
    assert "code: it cannot be started: " in capsys.readouterr().out


def test_it_is_removed_only_where_it_is(programs: Programs, capsys: Shown) -> None:
    programs.put("code", listing("0.0.1"))
    programs.put("codium")
    assert uninstall() == 0
    assert programs.calls("code")[-1] == f"--uninstall-extension {EXTENSION}"
    assert programs.calls("codium") == ["--list-extensions --show-versions"]
    shown = capsys.readouterr().out
    assert "code: the extension is removed." in shown
    assert "codium: the extension was not installed." in shown


def test_status_finds_everything_in_order(programs: Programs, gateway: Upstream, tmp_path: Path, capsys: Shown) -> None:
    programs.put("code", listing(__version__))
    lists(gateway, "demo/echo-tools", "vscode/gpt-5", "vscode/claude-sonnet-4.5")
    assert status(config=configured(tmp_path, gateway.port)) == 0
    shown = capsys.readouterr().out
    assert f"extension {__version__} is installed." in shown
    assert "VS Code offers vscode/gpt-5, vscode/claude-sonnet-4.5." in shown
    assert "MISSING" not in shown


def test_status_says_what_is_missing(programs: Programs, gateway: Upstream, tmp_path: Path, capsys: Shown) -> None:
    programs.put("code", listing("0.0.1"))
    programs.put("codium")
    programs.put("code-server", "exit 1")
    lists(gateway, "demo/echo-tools", "vscodelike/m")
    assert status(config=configured(tmp_path, gateway.port)) == 1
    shown = capsys.readouterr().out
    assert f"extension 0.0.1, gateway {__version__}; run `toolwire vscode install`." in shown
    assert "the extension is not installed" in shown
    assert "it failed with code 1" in shown
    assert "no window is connected" in shown
    assert shown.count("MISSING") == 4


def test_a_window_that_only_uses_the_gateways_models_is_in_order(
    programs: Programs, gateway: Upstream, tmp_path: Path, capsys: Shown
) -> None:
    programs.put("code", listing(__version__))
    lists(gateway, "demo/echo-tools")
    gateway.on("/bridge", [reply(200, b'{"windows":[{"vscode":"1.139.1","extension":"0.1.0","models":0}]}')])
    assert status(config=configured(tmp_path, gateway.port)) == 0
    shown = capsys.readouterr().out
    assert "1 window is connected and can use its models. VS Code offers none." in shown
    assert "MISSING" not in shown
    gateway.on("/bridge", [reply(200, b'{"windows":[]}')])
    assert status(config=configured(tmp_path, gateway.port)) == 1
    assert "no window is connected" in capsys.readouterr().out


def test_status_without_a_gateway_or_its_key(
    programs: Programs, gateway: Upstream, tmp_path: Path, capsys: Shown
) -> None:
    programs.put("code", listing(__version__))
    assert status(config=configured(tmp_path, free_port())) == 1
    assert "run `toolwire serve`" in capsys.readouterr().out
    lists(gateway, code="401 Unauthorized")
    assert status(config=configured(tmp_path, gateway.port)) == 1
    assert "it answers 401" in capsys.readouterr().out


def test_the_commands_are_there(programs: Programs, capsys: Shown) -> None:
    programs.put("code")
    assert vscode(["install", "--program", "code"], result_action="return_value") == 0
    assert len(programs.calls("code")) == 1
