"""`toolwire connect`: what it shows, writes and tries, and how it refuses."""

from __future__ import annotations

import json
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.free_port import free_port
from tests.server.harness import Gateway, Process, gateway, process, server_config
from toolwire.cli.app import run
from toolwire.cli.clients.table import clients
from toolwire.config.file import BackendConfig, Config, with_backends
from toolwire.config.secret import Secret

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "clients.md"
NOBODY = f"http://127.0.0.1:{free_port()}"
Shown = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, no variables of clients, and no toolwire.toml nearby."""
    for name in ("XDG_CONFIG_HOME", "TOOLWIRE_KEY", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "OPENCODE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with process(tmp_path_factory.mktemp("demo"), 'log = "warning"') as running:
        yield running


@pytest.fixture(scope="module")
def locked() -> Iterator[Gateway]:
    with gateway(with_backends(Config(server=server_config(keys=(Secret("k-secret-1"),))), ())) as running:
        yield running


def test_the_clients_are_listed(capsys: Shown) -> None:
    assert run(["connect"]) == 0
    shown = capsys.readouterr().out
    assert all(f"{name} " in shown for name in clients())
    assert "--write" in shown


def test_every_client_has_a_section_in_the_documents() -> None:
    titles = " ".join(line for line in DOCUMENT.read_text(encoding="utf-8").splitlines() if line.startswith("## "))
    assert [name for name in clients() if f"`{name}`" not in titles] == []


@pytest.mark.parametrize("client", clients())
def test_every_client_is_shown(client: str, capsys: Shown) -> None:
    for dialect in clients()[client].dialects:
        assert run(["connect", client, "--url", NOBODY, "--dialect", dialect]) == 0
        shown = capsys.readouterr().out
        assert NOBODY in shown
        assert "demo/echo-tools" in shown


def test_untested_settings_are_marked(capsys: Shown) -> None:
    run(["connect", "obsidian-copilot", "--url", NOBODY])
    run(["connect", "codex", "--url", NOBODY])
    assert capsys.readouterr().out.count("were not tested") == 1


def test_the_address_and_the_key_come_from_the_configuration(home: Path, capsys: Shown) -> None:
    (home / "toolwire.toml").write_text(f'[server]\nport = {free_port()}\nkeys = ["k-secret-1"]\n')
    assert run(["connect", "codex", "--model", "fast"]) == 0
    shown = capsys.readouterr().out
    assert (
        f'base_url = "http://127.0.0.1:{tomllib.loads((home / "toolwire.toml").read_text())["server"]["port"]}/v1"'
        in shown
    )
    assert 'env_key = "TOOLWIRE_KEY"' in shown
    assert 'model = "fast"' in shown
    assert "k-secret-1" not in shown


def test_the_default_is_the_usual_address(capsys: Shown) -> None:
    assert run(["connect", "anthropic-python", "--model", "m"]) == 0
    assert 'base_url="http://127.0.0.1:18741"' in capsys.readouterr().out


def test_a_gateway_that_others_can_reach_has_a_key(capsys: Shown) -> None:
    assert run(["connect", "copilot-cli", "--url", f"http://0.0.0.0:{free_port()}/v1/", "--model", "a;b"]) == 0
    shown = capsys.readouterr().out
    assert "export COPILOT_PROVIDER_BASE_URL=http://0.0.0.0:" in shown
    assert 'export COPILOT_PROVIDER_API_KEY="$TOOLWIRE_KEY"' in shown
    assert "export COPILOT_MODEL='a;b'" in shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["code"], 'there is no client "code"; did you mean'),
        (["codex", "--dialect", "chat"], "Codex CLI supports responses"),
        (["codex", "--url", "ftp://x"], "--url: found no complete URL"),
        (["codex", "--url", 'http://x/"'], "--url: found a URL with quotes"),
        (["codex", "--model", 'a"b', "--url", NOBODY], "--model: found"),
        (["codex", "--model", "", "--url", NOBODY], "--model: found"),
        (["claude", "--small-model", "a b", "--model", "m", "--url", NOBODY], "--small-model: found"),
        (["openai-python", "--write", "--url", NOBODY], "configured by code"),
        (["copilot-cli", "--write", "--url", NOBODY], "configured by environment variables"),
        (["obsidian-copilot", "--write", "--url", NOBODY], "--file: PATH/data.json"),
        (["pi", "--write", "--file", "x.json", "--url", NOBODY], "expected their folder"),
        (["obsidian-copilot", "--write", "--file", "vault/copilot", "--url", NOBODY], "--file: found nothing"),
        (["codex", "--write", "--file", "vault/config.toml", "--url", NOBODY], '--file: found no folder "vault"'),
        (["codex", "--file", "vault", "--url", NOBODY], "--file: found nothing"),
        (["pi", "--write", "--file", "~nobody-of-this-name", "--url", NOBODY], "expected their folder"),
        (["codex", "--config", "nowhere.toml"], "cannot be read"),
        (["codex", "--wrong"], "Run `toolwire connect --help` for help."),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_two(arguments: list[str], words: str, home: Path, capsys: Shown) -> None:
    assert run(["connect", *arguments]) == 2
    assert not list(home.iterdir())
    shown = capsys.readouterr()
    assert words in shown.err
    assert shown.out == ""


def test_a_key_that_cannot_be_sent_is_refused_unseen(monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
    monkeypatch.setenv("TOOLWIRE_KEY", "k-secret\n-2")
    assert run(["connect", "codex", "--url", NOBODY, "--check"]) == 2
    shown = capsys.readouterr()
    assert "TOOLWIRE_KEY: " in shown.err
    assert "secret\n" not in shown.err + shown.out


def test_writing_shows_a_diff_keeps_a_backup_and_is_done_once(home: Path, capsys: Shown) -> None:
    path = home / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_text('# mine\nmodel = "gpt-5.5"\n[tools]\nweb_search = true\n')
    assert run(["connect", "codex", "--url", NOBODY, "--model", "demo/echo-tools", "--write"]) == 0
    shown = capsys.readouterr().out
    assert '-model = "gpt-5.5"\n+model = "demo/echo-tools"\n' in shown
    (backup,) = path.parent.glob("config.toml.*.bak")
    assert f"the backup is {backup}." in shown
    assert backup.read_text().startswith('# mine\nmodel = "gpt-5.5"')
    settings = tomllib.loads(path.read_text())
    assert settings["tools"] == {"web_search": True}
    assert settings["model_provider"] == "toolwire"
    assert run(["connect", "codex", "--url", NOBODY, "--model", "demo/echo-tools", "--write"]) == 0
    assert f"{path}: nothing to change.\n" in capsys.readouterr().out
    assert list(path.parent.glob("*.bak")) == [backup]


def test_undo_shows_a_diff_and_restores_the_file(home: Path, capsys: Shown) -> None:
    path = home / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_text('# mine\nmodel = "gpt-5.5"\n')
    assert run(["connect", "codex", "--url", NOBODY, "--model", "m", "--write"]) == 0
    capsys.readouterr()
    assert run(["connect", "codex", "--undo"]) == 0
    shown = capsys.readouterr().out
    assert '-model = "m"\n' in shown
    assert '+model = "gpt-5.5"\n' in shown
    assert f"{path}: restored; the backup is " in shown
    assert path.read_text() == '# mine\nmodel = "gpt-5.5"\n'
    assert run(["connect", "codex", "--undo"]) == 0
    assert capsys.readouterr().out == f"{path}: nothing to undo, because --write has changed nothing there.\n"


def test_undo_removes_files_that_the_write_created(home: Path, capsys: Shown) -> None:
    assert run(["connect", "pi", "--url", NOBODY, "--model", "m", "--write"]) == 0
    assert run(["connect", "pi", "--undo"]) == 0
    assert capsys.readouterr().out.count("removed, because --write had created it.") == 2
    assert list((home / ".pi/agent").iterdir()) == []


def test_undo_of_a_conflict_changes_nothing(home: Path, capsys: Shown) -> None:
    assert run(["connect", "codex", "--url", NOBODY, "--model", "m", "--write"]) == 0
    path = home / ".codex" / "config.toml"
    path.write_text(path.read_text().replace('model = "m"', 'model = "mine"'))
    changed = path.read_text()
    assert run(["connect", "codex", "--undo"]) == 2
    assert "config.toml: this file was changed after `toolwire connect --write`" in capsys.readouterr().err
    assert path.read_text() == changed


def test_a_journal_that_cannot_be_written_is_reported(home: Path, capsys: Shown) -> None:
    (home / ".local").write_text("no folder")
    assert run(["connect", "codex", "--url", NOBODY, "--model", "m", "--write"]) == 0
    shown = capsys.readouterr()
    assert "the journal" in shown.err
    assert "written." in shown.out


def test_undo_of_a_client_without_a_file(capsys: Shown) -> None:
    assert run(["connect", "copilot", "--undo"]) == 0
    assert "has no settings file" in capsys.readouterr().out
    assert run(["connect", "codex", "--undo", "--write"]) == 2
    assert "expected --undo alone" in capsys.readouterr().err


def test_without_a_gateway_no_model_is_written(home: Path, capsys: Shown) -> None:
    path = home / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_text('model = "gpt-5.5"\n')
    assert run(["connect", "codex", "--url", NOBODY, "--write"]) == 2
    shown = capsys.readouterr()
    assert shown.err == (
        f"toolwire: no gateway answers at {NOBODY}. Start it with `toolwire serve`, or select a model with --model.\n"
    )
    assert shown.out == ""
    assert path.read_text() == 'model = "gpt-5.5"\n'
    assert list(path.parent.iterdir()) == [path]


def test_shown_settings_mark_a_placeholder(capsys: Shown) -> None:
    assert run(["connect", "codex", "--url", NOBODY]) == 0
    shown = capsys.readouterr()
    assert 'model = "demo/echo-tools"' in shown.out
    assert f"no gateway answers at {NOBODY}." in shown.err
    assert "demo/echo-tools is only a placeholder" in shown.err
    assert run(["connect", "codex", "--url", NOBODY, "--model", "m"]) == 0
    assert capsys.readouterr().err == ""


def test_the_demo_model_does_not_replace_back_ends_that_cannot_be_reached(home: Path, capsys: Shown) -> None:
    down = BackendConfig(name="down", kind="openai-chat", base_url=f"{NOBODY}/v1")
    with gateway(with_backends(Config(server=server_config()), (down,))) as running:
        url = f"http://127.0.0.1:{running.port}"
        assert run(["connect", "codex", "--url", url, "--write"]) == 2
        assert "lists no model of down, which cannot be reached. `toolwire doctor`" in capsys.readouterr().err
        assert not list(home.iterdir())
        assert run(["connect", "codex", "--url", url, "--check"]) == 1
        assert capsys.readouterr().out.startswith("WRONG the gateway at")
        assert run(["connect", "codex", "--url", url, "--model", "demo/echo-tools", "--write", "--check"]) == 0


def test_a_refused_key_is_reported_before_anything_is_written(locked: Gateway, home: Path, capsys: Shown) -> None:
    assert run(["connect", "codex", "--url", f"http://127.0.0.1:{locked.port}", "--write"]) == 2
    assert "refuses the key (401). Set TOOLWIRE_KEY to one of its keys." in capsys.readouterr().err
    assert not list(home.iterdir())


def test_the_first_model_that_can_chat_is_chosen(capsys: Shown) -> None:
    listed = BackendConfig(name="there", kind="openai-chat", base_url=f"{NOBODY}/v1", models=("text-embed-1", "talker"))
    with gateway(with_backends(Config(server=server_config()), (listed,))) as running:
        assert run(["connect", "codex", "--url", f"http://127.0.0.1:{running.port}"]) == 0
    shown = capsys.readouterr()
    assert 'model = "there/talker"' in shown.out
    assert shown.err == ""


def test_context_windows_come_from_the_gateway(home: Path, capsys: Shown) -> None:
    listed = BackendConfig(
        name="there", kind="openai-chat", base_url=f"{NOBODY}/v1", models=("talker",), context_windows={"talk*": 32_000}
    )
    with gateway(with_backends(Config(server=server_config()), (listed,))) as running:
        assert run(["connect", "codex", "--url", f"http://127.0.0.1:{running.port}", "--write"]) == 0
    assert tomllib.loads((home / ".codex" / "config.toml").read_text())["model_context_window"] == 32_000


def test_context_windows_come_from_the_configuration_if_no_gateway_runs(home: Path, capsys: Shown) -> None:
    (home / "toolwire.toml").write_text(
        f'[server]\nport = {free_port()}\n[models]\nfast = "there/talker"\n[backends.there]\nkind = "openai-chat"\n'
        f'base_url = "{NOBODY}/v1"\ncontext_windows = {{ "talk*" = 32000 }}\n'
    )
    assert run(["connect", "copilot", "--model", "fast"]) == 0
    assert "export COPILOT_PROVIDER_MAX_PROMPT_TOKENS=24000" in capsys.readouterr().out
    assert run(["connect", "copilot", "--model", "other"]) == 0
    assert "MAX_PROMPT" not in capsys.readouterr().out


def test_models_for_small_and_hard_tasks(home: Path, capsys: Shown) -> None:
    flags = ["--url", NOBODY, "--model", "m", "--small-model", "s", "--large-model", "l"]
    assert run(["connect", "claude", *flags]) == 0
    shown = capsys.readouterr().out
    assert '"ANTHROPIC_DEFAULT_HAIKU_MODEL": "s"' in shown
    assert "--small-model s --large-model l" in shown
    assert run(["connect", "codex", *flags]) == 2
    assert "--small-model: Codex CLI has no setting for another model." in capsys.readouterr().err


def test_writing_keeps_comments(home: Path) -> None:
    path = home / ".config" / "opencode" / "opencode.jsonc"
    path.parent.mkdir(parents=True)
    path.write_text('{\n  // my theme\n  "theme": "system",\n}\n')
    assert run(["connect", "opencode", "--url", NOBODY, "--model", "m", "--write", "--dialect", "messages"]) == 0
    assert path.read_text().startswith('{\n  // my theme\n  "theme": "system",\n  "$schema"')
    assert not (path.parent / "opencode.json").exists()


@pytest.mark.parametrize(
    ("client", "name"),
    [
        ("opencode", ".config/opencode/opencode.json"),
        ("codex", ".codex/config.toml"),
        ("claude-code", ".claude/settings.json"),
        ("vscode", ".config/Code/User/chatLanguageModels.json"),
        ("qwen-code", ".qwen/settings.json"),
        ("cline", ".cline/data/settings/providers.json"),
        ("continue", ".continue/config.yaml"),
        ("aider", ".aider.conf.yml"),
        ("pi", ".pi/agent/models.json"),
    ],
)
def test_each_file_is_where_its_client_looks(home: Path, client: str, name: str, capsys: Shown) -> None:
    assert run(["connect", client, "--url", NOBODY, "--model", "m", "--write"]) == 0
    assert (home / name).is_file()
    assert "written." in capsys.readouterr().out
    (home / name).write_text("{broken")
    assert run(["connect", client, "--url", NOBODY, "--write"]) == 2
    assert (home / name).read_text() == "{broken"
    assert str(home / name) in capsys.readouterr().err


def test_the_command_that_writes_makes_the_change_that_was_shown(home: Path, capsys: Shown) -> None:
    (home / "my files").mkdir()
    (home / "empty.toml").write_text("")
    flags = ["--url", NOBODY, "--model", "a;b", "--dialect", "chat", "--file", "my files", "--config", "empty.toml"]
    assert run(["connect", "opencode", *flags]) == 0
    (command,) = [line.split("`")[1] for line in capsys.readouterr().out.splitlines() if "makes this change" in line]
    assert shlex.split(command) == ["toolwire", "connect", "opencode", *flags, "--write"]
    assert run(shlex.split(command)[1:]) == 0
    written = (home / "my files" / "opencode.json").read_text()
    assert f"{NOBODY}/v1" in written
    assert "a;b" in written
    assert run(["connect", "obsidian-copilot", "--url", NOBODY]) == 0
    shown = capsys.readouterr().out
    assert f"`toolwire connect obsidian-copilot --url {NOBODY} --write --file FOLDER_OF/data.json`" in shown


@pytest.mark.parametrize(
    ("model", "named", "alias"),
    [
        ("demo/echo-tools", "gpt-5-toolwire", '"gpt-5-toolwire" = "demo/echo-tools"'),
        ("openai/gpt-5.5", "gpt-5.5", ""),
        ("gpt-5-mini", "gpt-5-mini", ""),
    ],
)
def test_a_dialect_that_a_client_chooses_by_the_models_name(
    home: Path, capsys: Shown, model: str, named: str, alias: str
) -> None:
    """Copilot for Obsidian speaks Responses only to names that begin with gpt-5."""
    (home / "copilot").mkdir()
    file = home / "copilot" / "data.json"
    flags = ["--url", NOBODY, "--dialect", "responses", "--model", model, "--file", str(file)]
    assert run(["connect", "obsidian-copilot", *flags, "--write"]) == 0
    shown = capsys.readouterr().out
    (written,) = json.loads(file.read_text())["configuredModels"]
    assert written["info"]["id"] == named
    assert (alias in shown, "[models]" in shown) == (True, bool(alias))


def test_the_check_reports_a_missing_alias(demo: Process, capsys: Shown) -> None:
    flags = ["--url", f"http://127.0.0.1:{demo.port}", "--dialect", "responses", "--model", "demo/echo-tools"]
    assert run(["connect", "obsidian-copilot", *flags, "--check"]) == 1
    assert '"gpt-5-toolwire" = "demo/echo-tools"' in capsys.readouterr().out


def test_a_vault_is_named_by_its_folder(home: Path) -> None:
    (home / "copilot").mkdir()
    (home / "copilot" / "data.json").write_text('{"settingsVersion": 8, "providers": {"mine": {}}}')
    arguments = ["connect", "obsidian-copilot", "--url", NOBODY, "--model", "m", "--file", str(home / "copilot")]
    assert run([*arguments, "--write"]) == 0
    data = json.loads((home / "copilot" / "data.json").read_text())
    assert list(data["providers"]) == ["mine", "toolwire"]


def test_a_real_gateway_is_found_and_tried(demo: Process, home: Path, capsys: Shown) -> None:
    url = f"http://127.0.0.1:{demo.port}"
    assert run(["connect", "claude-code", "--url", url, "--write", "--check"]) == 0
    shown = capsys.readouterr().out
    assert json.loads((home / ".claude" / "settings.json").read_text())["apiKeyHelper"] == "echo toolwire"
    assert f"As Claude Code: POST {url}/v1/messages?beta=true, streaming\n" in shown
    assert "ok    demo/echo-tools called get_weather with {" in shown


def test_a_real_gateway_with_keys(locked: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
    url = f"http://127.0.0.1:{locked.port}"
    assert run(["connect", "opencode", "--url", url, "--check"]) == 1
    assert "export TOOLWIRE_KEY=" in capsys.readouterr().out
    monkeypatch.setenv("TOOLWIRE_KEY", "k-secret-1")
    assert run(["connect", "opencode", "--url", url, "--check"]) == 0
    assert run(["connect", "opencode", "--url", url]) == 0
    shown = capsys.readouterr().out
    assert "{env:TOOLWIRE_KEY}" in shown
    assert "k-secret-1" not in shown


def test_the_key_of_the_configuration_is_enough_to_check(locked: Gateway, home: Path, capsys: Shown) -> None:
    (home / "mine.toml").write_text(f'[server]\nport = {locked.port}\nkeys = ["k-secret-1"]\n')
    assert run(["connect", "codex", "--config", "mine.toml", "--check"]) == 0
    assert "k-secret-1" not in capsys.readouterr().out


def test_an_unknown_model_is_reported_with_similar_names(demo: Process, capsys: Shown) -> None:
    assert run(["connect", "codex", "--url", f"http://127.0.0.1:{demo.port}", "--model", "echo-tool", "--check"]) == 1
    shown = capsys.readouterr().out
    assert "WRONG status 404: " in shown
    assert "demo/echo-tools" in shown


def test_a_gateway_that_does_not_run(capsys: Shown) -> None:
    assert run(["connect", "codex", "--url", NOBODY, "--check"]) == 1
    assert "Start the gateway with: toolwire serve" in capsys.readouterr().out


def test_the_key_is_written_with_write_key(home: Path, capsys: Shown) -> None:
    """VS Code sends headers of its file, but not a key of its file. A key may even hold our name."""
    key = "k-toolwire-secret-1"
    (home / "toolwire.toml").write_text(f'[server]\nport = {free_port()}\nkeys = ["{key}"]\n')
    file = home / "chatLanguageModels.json"
    file.write_text('[{"name": "other", "models": []}]')
    file.chmod(0o644)
    flags = ["connect", "vscode", "--model", "m", "--file", str(file), "--write"]
    assert run(flags) == 0
    assert "--write-key" in capsys.readouterr().out
    assert key not in file.read_text()
    assert run([*flags, "--write-key"]) == 0
    shown = capsys.readouterr().out
    assert key not in shown
    assert "do not share it" in shown
    (group,) = [group for group in json.loads(file.read_text()) if group["name"] == "toolwire"]
    assert group["models"][0]["requestHeaders"] == {"x-toolwire-from": "vscode", "x-api-key": key}
    assert file.stat().st_mode & 0o777 == 0o600
    assert run([*flags, "--write-key"]) == 0
    assert "nothing to change" in capsys.readouterr().out
    assert run(["connect", "vscode", "--file", str(file), "--undo"]) == 0
    assert key not in capsys.readouterr().out
    assert file.read_text() == '[{"name": "other", "models": []}]'


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["vscode", "--write-key"], "requires --write"),
        (["codex", "--write", "--write-key"], "does not need the key in its file"),
        (["vscode", "--write", "--write-key", "--url", "http://127.0.0.1:9"], "requires no key"),
        (["vscode", "--write", "--write-key", "--url", "http://192.0.2.1:9"], "set TOOLWIRE_KEY"),
    ],
)
def test_a_key_that_is_not_to_be_written(flags: list[str], told: str, home: Path, capsys: Shown) -> None:
    (home / "toolwire.toml").write_text('[server]\nkeys = ["k-secret-1"]\n')
    assert run(["connect", *flags]) == 2
    assert told in capsys.readouterr().err
    assert not list(home.rglob("*.json"))
