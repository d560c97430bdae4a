"""`toolwire tools`: lists, finds and calls."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.mcp_tools import recorded_tools
from tests.tools.mcp.servers import bare, with_sdk
from toolwire.cli.tools.command import tools
from toolwire.errors import ConfigError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "request.json"
    listed = [{"name": tool.name, "description": tool.description, "schema": tool.schema} for tool in recorded_tools()]
    path.write_text(json.dumps({"tools": listed}))
    return path


def test_a_request_is_listed_with_its_cost(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tools(file=file) == 0
    out, err = capsys.readouterr()
    assert "tokens in 500 tools" in out
    assert "same name: mcp__gitlocal__git_status, mcp__git__git_status" in err


def test_a_question_finds_tools(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tools(file=file, find="What time is it in Tokyo?", json=True) == 0
    found = json.loads(capsys.readouterr().out)
    assert "mcp__time__get_current_time" in [tool["name"] for tool in found["tools"]]


def test_the_limits_of_a_model(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "toolwire.toml"
    config.write_text('[backends.b]\nkind = "openai-chat"\nmax_tools = 9\ntools_budget = "20k tokens"\nkey = "k"\n')
    assert tools(file=file, model="b/m", config=config) == 0
    assert "b accepts 9 tools, with a tools_budget of 20,000 tokens." in capsys.readouterr().err


def test_without_tools_it_says_what_is_missing(tmp_path: Path) -> None:
    config = tmp_path / "toolwire.toml"
    config.write_text("")
    with pytest.raises(ConfigError, match="--mcp"):
        tools(config=config)


@pytest.mark.slow
def test_mounted_servers_are_listed_as_a_model_and_a_key_see_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "toolwire.toml"
    command = json.dumps(bare())
    config.write_text(
        f'[mcp.servers.box]\ncommand = {command}\napprovals = {{ "echo" = "allow", "*" = "deny" }}\nkeys = ["ann"]\n'
        f'[mcp.servers.other]\ncommand = {command}\nmodels = ["local/*"]\ntools = ["where"]\n'
    )

    def names(**options: str) -> list[str]:
        assert tools(config=config, json=True, **options) == 0  # type: ignore[arg-type]  # texts
        return [tool["name"] for tool in json.loads(capsys.readouterr().out)["tools"]]

    assert names() == ["box__echo", "other__where"]
    assert names(key="bob") == ["other__where"]
    assert names(model="demo/echo-tools", key="ann") == ["box__echo"]
    assert tools(config=config, call="box__echo", arguments='{"a": 1}') == 0
    assert capsys.readouterr().out == '{"a": 1}\n'
    with pytest.raises(ConfigError, match="no tool"):
        tools(config=config, call="box__where")


@pytest.mark.slow
def test_a_server_is_listed_and_called(capsys: pytest.CaptureFixture[str]) -> None:
    server = shlex.join(with_sdk())
    assert tools(mcp=(server,)) == 0
    assert "__add" in capsys.readouterr().out
    assert tools(mcp=(server,), call="add", arguments='{"a": 2, "b": 3}') == 0
    assert "5" in capsys.readouterr().out
    with pytest.raises(ConfigError, match="no tool"):
        tools(mcp=(server,), call="nothing")
    with pytest.raises(ConfigError, match="JSON object"):
        tools(mcp=(server,), call="add", arguments="[]")
