"""Where servers are and what they are called."""

from __future__ import annotations

import pytest

from toolwire.errors import ConfigError
from toolwire.tools.mcp.target import target_of

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("where", "name"),
    [
        ("npx -y @modelcontextprotocol/server-everything", "everything"),
        ("npx -y @modelcontextprotocol/server-filesystem@1.2.3 /tmp", "filesystem"),
        ("uvx mcp-server-git --repository .", "git"),
        ("python3.12 weather_server.py", "weather"),
        ("uv run --with mcp tools.py", "mcp"),
        ("/usr/local/bin/acme-mcp", "acme"),
        ("docker run -i --rm ghcr.io/acme/search:latest", "search"),
        (["/opt/my tools/run.sh"], "run"),
        ("node dist/index.js", "index"),
        ("https://mcp.acme.com/v1?key=secret", "acme"),
        ("https://api.search.example.org/mcp", "example"),
        ("http://127.0.0.1:9000/mcp", "local"),
        ("http://localhost/mcp", "local"),
        ("HTTP://[::1]:9000/mcp", "local"),
        ("./日本", "mcp"),
    ],
)
def test_names_say_what_it_is(where: str | list[str], name: str) -> None:
    assert target_of(where, None, None, None).name == name


def test_a_command_is_split_as_a_shell_does() -> None:
    target = target_of("run 'one two' --flag", "mine", None, None)
    assert (target.name, target.command, target.url) == ("mine", ("run", "one two", "--flag"), "")
    assert target_of("http://x.example/mcp", None, None, {"a": "b"}).headers == {"a": "b"}


@pytest.mark.parametrize("where", ["", "   ", [], "run 'unclosed"])
def test_what_is_neither_command_nor_address_is_refused(where: str | list[str]) -> None:
    with pytest.raises(ConfigError):
        target_of(where, None, None, None)


def test_secrets_are_not_told() -> None:
    target = target_of("run", None, {"KEY": "hunter2-secret", "DEBUG": "1"}, None)
    assert target.told("failed with hunter2-secret at 1") == "failed with *** at 1"
    assert "hunter2" not in repr(target)
    remote = target_of("https://x.example/mcp", None, None, {"authorization": "Bearer abcdefgh"})
    assert remote.told("401 for Bearer abcdefgh") == "401 for *** ***"
