"""What `toolwire serve` says before it serves."""

from __future__ import annotations

import json
import os
import shlex
import socket
import sys

import pytest
from msgspec.structs import replace

from toolwire.catalog.router import router_for
from toolwire.cli.serve import UnusablePort, address_of, alias_warnings, banner, check_port, serve
from toolwire.config.file import BackendConfig, Config, McpServerConfig, ServerConfig, with_backends
from toolwire.config.secret import Secret
from toolwire.config.values import ModelGroup
from toolwire.errors import ConfigError

OPENAI = BackendConfig(
    name="openai", kind="openai-chat", base_url="https://api.openai.com/v1", missing="OPENAI_API_KEY is not set"
)


def test_the_banner_names_mounted_servers_without_their_secrets() -> None:
    server = McpServerConfig(name="files", command=("npx", "files"), env={"TOKEN": "tw-secret"})
    text = "\n".join(banner(Config(mcp_servers=(server,))))
    assert "MCP server         files (npx)" in text
    assert "tw-secret" not in text


def test_the_banner_says_where_to_go() -> None:
    lines = list(banner(with_backends(Config(path="toolwire.toml"), [OPENAI])))
    assert lines[0].endswith("at http://127.0.0.1:18741")
    text = "\n".join(lines)
    assert "toolwire.toml" in text
    assert "openai (openai-chat, https://api.openai.com/v1, OPENAI_API_KEY is not set, the default)" in text
    assert "base URL http://127.0.0.1:18741/v1\n" in text
    assert "any; it only separates stored responses of different clients" in text
    assert "state.db, for 30 days" in text


def test_the_first_request_can_be_pasted() -> None:
    command = shlex.split(list(banner(Config()))[-1])
    assert command[:2] == ["curl", "http://127.0.0.1:18741/v1/chat/completions"]
    assert json.loads(command[-1])["model"] == "demo/echo-tools"


@pytest.mark.parametrize(
    ("config", "model"),
    [
        (with_backends(Config(), [replace(OPENAI, missing="")]), "openai/MODEL"),
        (
            with_backends(Config(), [replace(OPENAI, missing="", models=("text-embedding-3", "gpt-5.5"))]),
            "openai/gpt-5.5",
        ),
        (with_backends(Config(), [OPENAI]), "demo/echo-tools"),  # its key is missing
        (with_backends(Config(aliases={"fast": "openai/gpt-5.5"}), [replace(OPENAI, missing="")]), "fast"),
    ],
)
def test_the_first_request_uses_a_real_model_if_there_is_one(config: Config, model: str) -> None:
    lines = list(banner(config))
    assert json.loads(shlex.split(lines[-1])[-1])["model"] == model
    assert ("`toolwire models` lists the names" in lines[-2]) == model.endswith("/MODEL")


def test_the_banner_shows_which_address_is_bound() -> None:
    server = ServerConfig(host="0.0.0.0", keys=(Secret("tw-secret"),))
    first = next(banner(Config(server=server)))
    assert first.endswith("at http://127.0.0.1:18741, listening on 0.0.0.0:18741, every address of this machine")


def test_an_alias_to_an_unknown_back_end_is_reported() -> None:
    aliases = {"fast": "opnai/gpt-5.5", "good": "openai/gpt-5.5", "any": "gpt-5.5", "all-*": "openai/*"}
    config = with_backends(Config(aliases=aliases), [OPENAI])
    (warning,) = alias_warnings(config, router_for(config))
    assert warning == (
        '[models] "fast": there is no back end "opnai". Unless a back end lists "opnai/gpt-5.5", requests go to the '
        'default, "openai". Did you mean "openai"?'
    )
    listed = with_backends(Config(aliases={"x": "meta/llama"}), [replace(OPENAI, models=("meta/llama",))])
    assert not list(alias_warnings(listed, router_for(listed)))
    group = with_backends(
        Config(aliases={"x": "demo/echo-tools"}, groups={"x": ModelGroup(models=("demo/echo-tools", "no/such"))}), []
    )
    assert "requests fail" in next(alias_warnings(group, router_for(group)))


def test_an_address_that_cannot_be_used_is_named() -> None:
    with pytest.raises(UnusablePort, match=r"192\.0\.2\.1:18741 cannot be used: .*--host and --port"):
        check_port(ServerConfig(host="192.0.2.1", keys=(Secret("tw-secret"),)))


def test_keys_are_mentioned_and_not_shown() -> None:
    text = "\n".join(banner(Config(server=ServerConfig(keys=(Secret("tw-secret"),)))))
    assert "tw-secret" not in text
    assert "-H 'Authorization: Bearer YOUR_KEY'" in text
    assert "one of the keys" in text


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "http://127.0.0.1:18741"),
        ("0.0.0.0", "http://127.0.0.1:18741"),
        ("::", "http://[::1]:18741"),
        ("::1", "http://[::1]:18741"),
        ("gateway.example", "http://gateway.example:18741"),
    ],
)
def test_the_address_is_one_a_client_can_use(host: str, address: str) -> None:
    assert address_of(ServerConfig(host=host)) == address


@pytest.mark.parametrize("workers", [-1, 0, 65, 100_000])
def test_what_is_no_number_of_processes(workers: int) -> None:
    with pytest.raises(ConfigError, match=f"found {workers}; expected a whole number from 1 to 64"):
        serve(workers=workers)


def test_a_port_in_use_names_the_program_and_a_free_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(UnusablePort) as caught:
            check_port(ServerConfig(port=port))
        assert f"127.0.0.1:{port} is already in use" in caught.value.message
        assert "toolwire serve --port " in caught.value.hint
        if sys.platform == "linux":
            assert f"(process {os.getpid()})" in caught.value.message
    check_port(ServerConfig(port=port))
