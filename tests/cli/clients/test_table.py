"""The tables of clients: the settings of programs with and without a key, the code of libraries, and never the key itself."""

from __future__ import annotations

import ast
import json
import tomllib
from typing import Any

import pytest

from toolwire.backends.vscode.wire import shapes
from toolwire.cli.clients.client import Client, ConnectTarget, fill, settings_of
from toolwire.cli.clients.settings_file import FORMATS
from toolwire.cli.clients.table import clients, find_client, read_clients
from toolwire.errors import ConfigError

PROGRAMS, LIBRARIES = read_clients("programs"), read_clients("libraries")
BY_NAME = {program.name: program for program in PROGRAMS}
CASES = [(program.name, dialect) for program in PROGRAMS for dialect in program.dialects]


def written(name: str, dialect: str = "", *, has_key: bool = False, before: str = "", number: int = 0) -> str:
    program = BY_NAME[name]
    dialect = dialect or program.dialects[0]
    target = ConnectTarget(address="http://127.0.0.1:18741", model="demo/echo-tools", has_key=has_key)
    file = program.way(dialect).files[number]
    return FORMATS[file.format](before, settings_of(file, target, dialect))


def data(name: str, dialect: str = "", **options: Any) -> Any:
    text = written(name, dialect, **options)
    return tomllib.loads(text) if name == "codex" else json.loads(text)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("codex", "codex"),
        ("claude", "claude-code"),
        ("Claude Code", "claude-code"),
        ("claude_code", "claude-code"),
        ("copilot", "copilot-cli"),
        ("qwen", "qwen-code"),
        ("cn", "continue"),
        ("OpenCode", "opencode"),
    ],
)
def test_a_client_is_found_by_its_command_and_its_title(given: str, name: str) -> None:
    assert find_client(given).name == name


@pytest.mark.parametrize("given", ["code", "", "-"])
def test_an_unknown_client_is_refused(given: str) -> None:
    with pytest.raises(ConfigError, match="there is no client"):
        find_client(given)


def sized(name: str, before: str = "", context: int = 32_000, **tiers: str) -> Any:
    contexts = {"demo/echo-tools": context, "a/small": 8_000} if context else {}
    target = ConnectTarget(address="http://x", model="demo/echo-tools", has_key=False, contexts=contexts, **tiers)
    (file, *_), dialect = BY_NAME[name].ways[0].files, BY_NAME[name].dialects[0]
    text = FORMATS[file.format](before, settings_of(file, target, dialect))
    return tomllib.loads(text) if file.format == "toml" else json.loads(text)


def test_tiers_of_claude_code() -> None:
    environment = sized("claude-code", small="a/small", large="a/large")["env"]
    names = {name: environment[f"ANTHROPIC_DEFAULT_{name}_MODEL"] for name in ("HAIKU", "SONNET", "OPUS", "FABLE")}
    assert names == {"HAIKU": "a/small", "SONNET": "demo/echo-tools", "OPUS": "a/large", "FABLE": "a/large"}
    assert environment["CLAUDE_CODE_MAX_CONTEXT_TOKENS"] == "32000"


def test_tiers_of_opencode_are_its_models() -> None:
    settings = sized("opencode", small="a/small")
    assert settings["small_model"] == "toolwire/a/small"
    assert settings["provider"]["toolwire"]["models"] == {
        "demo/echo-tools": {"limit": {"context": 32000, "output": 8000}},
        "a/small": {"limit": {"context": 8000, "output": 2000}},
    }


@pytest.mark.parametrize(
    ("name", "has_it"),
    [
        ("codex", lambda data: data.get("model_context_window") == 32000),
        ("claude-code", lambda data: "CLAUDE_CODE_MAX_CONTEXT_TOKENS" in data["env"]),
        ("opencode", lambda data: "limit" in data["provider"]["toolwire"]["models"]["demo/echo-tools"]),
        ("pi", lambda data: "contextWindow" in data["providers"]["toolwire"]["models"][0]),
        ("qwen-code", lambda data: data["modelProviders"]["openai"][0].get("generationConfig") not in (None, {})),
    ],
)
def test_the_context_window_of_an_earlier_model_does_not_stay(name: str, has_it: Any) -> None:
    assert has_it(sized(name))
    file = BY_NAME[name].ways[0].files[0]
    target = ConnectTarget(
        address="http://x", model="demo/echo-tools", has_key=False, contexts={"demo/echo-tools": 32_000}
    )
    before = FORMATS[file.format]("", settings_of(file, target, BY_NAME[name].dialects[0]))
    assert not has_it(sized(name, before, context=0))


def test_limits_of_vscode() -> None:
    (model,) = sized("vscode")[0]["models"]
    assert (model["maxInputTokens"], model["maxOutputTokens"]) == (24000, 8000)
    (model,) = sized("vscode", context=0)[0]["models"]
    assert (model["maxInputTokens"], model["maxOutputTokens"]) == (128000, 16000)


def test_clients_without_a_place_for_another_model() -> None:
    tiers = {program.name for program in PROGRAMS if program.has_tier("small")}
    assert tiers == {"opencode", "claude-code", "vscode", "qwen-code", "aider", "pi"}
    assert not BY_NAME["aider"].has_tier("large")
    assert BY_NAME["claude-code"].has_tier("large")


@pytest.mark.parametrize(("name", "dialect"), CASES)
@pytest.mark.parametrize("has_key", [True, False])
def test_every_file_is_whole_and_stays_so(name: str, dialect: str, has_key: bool) -> None:
    for number in range(len(BY_NAME[name].way(dialect).files)):
        text = written(name, dialect, has_key=has_key, number=number)
        assert "demo/echo-tools" in text
        assert "@" not in text.replace("@ai-sdk/", "")
        assert written(name, dialect, has_key=has_key, before=text, number=number) == text


@pytest.mark.parametrize(("name", "dialect"), CASES)
def test_a_gateway_that_gets_keys_later_is_one_change_away(name: str, dialect: str) -> None:
    for number in range(len(BY_NAME[name].way(dialect).files)):
        there = written(name, dialect, has_key=True, before=written(name, dialect, number=number), number=number)
        assert written(name, dialect, has_key=True, before=there, number=number) == there


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_every_error_says_what_to_do(program: Any) -> None:
    for way in program.ways:
        assert way.files or way.environment or way.steps
        assert way.dialect in ("chat", "responses", "messages", "ollama")
    assert "|" not in program.notes


def test_opencode() -> None:
    provider = data("opencode", "responses", has_key=True)["provider"]["toolwire"]
    assert provider["npm"] == "@ai-sdk/openai"
    assert provider["options"] == {"baseURL": "http://127.0.0.1:18741/v1", "apiKey": "{env:TOOLWIRE_KEY}"}
    assert data("opencode")["provider"]["toolwire"]["options"]["apiKey"] == "toolwire"
    assert data("opencode")["model"] == "toolwire/demo/echo-tools"


def test_codex_asks_for_a_variable_only_where_there_is_a_key() -> None:
    keyed = written("codex", has_key=True)
    assert tomllib.loads(keyed)["model_providers"]["toolwire"]["env_key"] == "TOOLWIRE_KEY"
    assert "env_key" not in data("codex", before=keyed)["model_providers"]["toolwire"]


def test_claude_code_takes_the_key_from_a_command() -> None:
    assert data("claude-code", has_key=True)["apiKeyHelper"] == "printenv TOOLWIRE_KEY"
    settings = data("claude-code")
    assert settings["apiKeyHelper"] == "echo toolwire"
    assert settings["env"]["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:18741"


@pytest.mark.parametrize(
    ("dialect", "kind", "path"),
    [
        ("chat", "chat-completions", "/v1/chat/completions"),
        ("responses", "responses", "/v1/responses"),
        ("messages", "messages", "/v1/messages"),
    ],
)
def test_vs_code_has_all_three_api_types(dialect: str, kind: str, path: str) -> None:
    (group,) = data("vscode", dialect)
    assert (group["vendor"], group["apiType"]) == ("customendpoint", kind)
    (model,) = group["models"]
    assert model["url"] == f"http://127.0.0.1:18741{path}"
    assert model.get("zeroDataRetentionEnabled", False) == (dialect == "responses")
    assert model["requestHeaders"] == {shapes.ORIGIN_HEADER: shapes.NAME}


def test_vs_code_keeps_its_reference_to_the_key() -> None:
    before = '[{"name": "toolwire", "vendor": "customendpoint", "apiKey": "${input:chat.lm.secret.1}", "models": []}]'
    assert data("vscode", before=before)[0]["apiKey"] == "${input:chat.lm.secret.1}"


def test_obsidian_lists_the_model_once() -> None:
    settings = data("obsidian-copilot", before=written("obsidian-copilot"))
    (model,) = settings["configuredModels"]
    assert settings["backends"]["chat"]["enabledModels"] == [model["configuredModelId"]]
    assert settings["providers"]["toolwire"]["requiresApiKey"] is False


def test_pi_has_two_files() -> None:
    assert data("pi", "messages")["providers"]["toolwire"]["baseUrl"] == "http://127.0.0.1:18741"
    assert data("pi", number=1) == {"defaultProvider": "toolwire", "defaultModel": "demo/echo-tools"}


TARGET = ConnectTarget(address="http://127.0.0.1:18741", model="demo/echo-tools", has_key=True)
LIBRARY_CASES = [(client, dialect) for client in LIBRARIES for dialect in client.dialects]


@pytest.mark.parametrize(
    ("client", "dialect"), LIBRARY_CASES, ids=[f"{client.name}-{dialect}" for client, dialect in LIBRARY_CASES]
)
def test_the_code_is_whole(client: Client, dialect: str) -> None:
    code = fill(client.way(dialect).code, TARGET.placeholders(dialect))
    assert '"http://127.0.0.1:18741' in code
    assert 'demo/echo-tools"' in code
    assert "TOOLWIRE_KEY" in code
    assert not any(word in code for word in ("@key@", "@v1@", "@model@", "@address@", "@url@", "{}"))
    if code.startswith("import os"):
        ast.parse(code)


def test_the_python_key_falls_back_where_there_is_none() -> None:
    assert 'os.environ.get("TOOLWIRE_KEY", "toolwire")' in LIBRARIES[0].ways[0].code


def test_clients_are_listed_by_name_programs_first() -> None:
    assert list(clients()) == [client.name for client in (*PROGRAMS, *LIBRARIES)]
    assert next(iter(clients())) == "opencode"
    assert all(clients()[name].name == name for name in clients())
