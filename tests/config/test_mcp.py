"""`[mcp.servers.NAME]`: a command or a URL, with secrets from elsewhere; errors name the key."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolwire.config.file import load
from toolwire.config.mcp import mcp_server_config
from toolwire.config.secret import Resolver
from toolwire.config.values import McpServerConfig
from toolwire.errors import ConfigError

ENVIRON = {"GITHUB_TOKEN": "ghp-secret"}


def loaded(folder: Path, text: str) -> tuple[McpServerConfig, ...]:
    file = folder / "toolwire.toml"
    file.write_text(text, encoding="utf-8")
    return load(file, ENVIRON).mcp_servers


def test_a_server_is_a_command_or_a_url(tmp_path: Path) -> None:
    text = """
        [mcp.servers.files]
        command = ["npx", "-y", "@modelcontextprotocol/server-filesystem", "."]
        env = { TOKEN = "env:GITHUB_TOKEN" }
        approvals = { "write_*" = "ask" }
        [mcp.servers.remote]
        url = "https://example.com/mcp"
        headers = { Authorization = "Bearer x" }
        models = ["local/*"]
        keys = ["team-*"]
    """
    files, remote = loaded(tmp_path, text)
    assert (files.name, files.command[0], files.env) == ("files", "npx", {"TOKEN": "ghp-secret"})
    assert (files.models, files.keys, files.approval, files.approvals) == (("*",), ("*",), "auto", {"write_*": "ask"})
    assert (remote.url, remote.models, remote.keys) == ("https://example.com/mcp", ("local/*",), ("team-*",))
    assert "ghp-secret" not in repr(files)
    assert "Bearer" not in repr(remote)


@pytest.mark.parametrize("name", ["a__b", "a_", "_a", "a b", "", "a" * 33])
def test_a_name_that_could_clash_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="single underscores"):
        mcp_server_config(name, {"command": ("x",)}, Resolver({}, tmp_path))


@pytest.mark.parametrize("name", ["a", "a_b-c", "9", "A" * 32])
def test_other_names_are_accepted(tmp_path: Path, name: str) -> None:
    assert mcp_server_config(name, {"command": ("x",)}, Resolver({}, tmp_path)).name == name


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("", "mcp.servers.x"),
        ('command = ["a"]\nurl = "https://example.com"', "mcp.servers.x"),
        ('command = [""]', "mcp.servers.x.command"),
        ('command = "npx"', "mcp.servers.x.command"),
        ('url = "example.com"', "mcp.servers.x.url"),
        ('url = "https://example.com"\nenv = { A = "b" }', "mcp.servers.x.env"),
        ('command = ["a"]\nheaders = { A = "b" }', "mcp.servers.x.headers"),
        ('command = ["a"]\nenv = { A = "env:MISSING" }', "mcp.servers.x.env"),
        ('command = ["a"]\nenv = { "A-B" = "c" }', "mcp.servers.x.env"),
        ('command = ["a"]\napproval = "maybe"', "mcp.servers.x.approval"),
        ('command = ["a"]\napprovals = { "*" = "maybe" }', "mcp.servers.x.approvals"),
        ('command = ["a"]\ntimeout = 0', "mcp.servers.x.timeout"),
        ('command = ["a"]\nshell = true', "mcp.servers.x.shell"),
    ],
)
def test_an_error_names_the_key(tmp_path: Path, line: str, place: str) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, f"[mcp.servers.x]\n{line}\n")
    assert place in caught.value.where


def test_a_value_of_the_environment_is_in_no_message(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, '[mcp.servers.x]\ncommand = ["a"]\nenv = { A = "hunter2\\nhunter3" }\n')
    assert "hunter" not in caught.value.sentence()
