"""Where servers are and what they are called."""

from __future__ import annotations

import pytest

from toolwire.errors import ConfigError
from toolwire.tools.mcp.target import ServerFault, target_of


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


def test_secrets_are_redacted() -> None:
    target = target_of("run", None, {"KEY": "hunter2-secret", "DEBUG": "1"}, None)
    assert target.redact("failed with hunter2-secret at 1") == "failed with *** at 1"
    assert "hunter2" not in repr(target)
    remote = target_of("https://x.example/mcp", None, None, {"authorization": "Bearer abcdefgh"})
    assert remote.redact("401 for Bearer abcdefgh") == "401 for *** ***"


TARGET = target_of("run", "shop", {"KEY": "hunter2-secret"}, None)


def test_a_server_is_called_by_its_name() -> None:
    assert TARGET.title == 'MCP server "shop"'


def test_a_note_has_the_end_of_standard_error_without_secrets() -> None:
    assert TARGET.stderr_note("") == ""
    assert TARGET.stderr_note("one\n\n two hunter2-secret\n") == ' It last said: "one | two ***".'
    long = TARGET.stderr_note("x" * 10_000 + "the end")
    assert long.endswith('the end".')
    assert len(long) < 300


def test_text_of_the_server_is_one_bounded_line() -> None:
    text = TARGET.quote("a\n b\x07 hunter2-secret " + "y" * 10_000)
    assert text.startswith('"a b\\u0007 *** yyy')
    assert len(text) < 300


def test_a_fault_says_whether_the_session_is_over() -> None:
    assert not ServerFault("odd").is_over
    assert ServerFault("dead", is_over=True).is_over
