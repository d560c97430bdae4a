"""`toolwire run` with programs that only report what they got; tests/programs runs the real ones."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.free_port import free_port
from tests.server.harness import Gateway, gateway, server_config
from toolwire.cli.app import run
from toolwire.cli.clients.table import read_clients
from toolwire.config.file import BackendConfig, Config, with_backends
from toolwire.config.secret import Secret

pytestmark = pytest.mark.slow
Shown = pytest.CaptureFixture[str]
# Writes its arguments, its environment and the files of its folders to a file, and a file to each of its folders.
REPORTER = """#!{python}
import json, os, sys, pathlib
names = [name for name, value in os.environ.items() if name.endswith(("HOME", "_DIR")) and name in value]
files = {{}}
for name in names:
    for path in pathlib.Path(os.environ[name]).rglob("*"):
        if path.is_file() and not path.is_symlink() and path.stat().st_size < 20000:
            files[name + "/" + str(path.relative_to(os.environ[name]))] = path.read_text(errors="replace")
report = {{"arguments": sys.argv[1:], "environment": dict(os.environ), "files": files}}
pathlib.Path({report!r}).write_text(json.dumps(report))
for name in names:
    (pathlib.Path(os.environ[name]) / "written-by-the-client").write_text("state")
sys.exit(int(os.environ.get("CODE", "0")))
"""


class Machine:
    """A home, a folder with programs on PATH, and what the last program reported."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.programs = folder / "bin"
        self.report_path = folder / "report.json"
        self.home.mkdir()
        self.programs.mkdir()

    def install(self, command: str) -> None:
        program = self.programs / command
        program.write_text(REPORTER.format(python=sys.executable, report=str(self.report_path)))
        program.chmod(0o755)

    @property
    def report(self) -> Any:
        return json.loads(self.report_path.read_text())

    def tree(self) -> dict[str, str]:
        paths = sorted(self.home.rglob("*"))
        return {
            str(path): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder" for path in paths
        }


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path)
    for name in list(os.environ):
        if name.startswith(
            ("XDG_", "TOOLWIRE_KEY", "CODEX_", "CLAUDE", "OPENCODE", "ANTHROPIC_", "OPENAI_", "GEMINI_")
        ):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(made.home))
    monkeypatch.setenv("PATH", f"{made.programs}:/usr/bin:/bin")
    monkeypatch.chdir(tmp_path)
    # An address of its own, so that a gateway on this machine is not found.
    (tmp_path / "toolwire.toml").write_text(f"[server]\nport = {free_port()}\n")
    return made


@pytest.fixture(scope="module")
def locked() -> Iterator[Gateway]:
    config = Config(server=server_config(keys=(Secret("k-secret-1"),)))
    there = BackendConfig(
        name="there", kind="openai-chat", base_url="http://127.0.0.1:9/v1", models=("m",), context_windows={"m": 32_000}
    )
    with gateway(with_backends(config, (there,))) as running:
        yield running


RUNNABLE = [client for client in read_clients("programs") if client.run is not None]


@pytest.mark.parametrize("client", RUNNABLE, ids=lambda client: client.name)
def test_every_client_gets_the_gateway_and_leaves_the_home_as_it_was(client: Any, machine: Machine) -> None:
    machine.install(client.run.command)
    (machine.home / ".gitconfig").write_text("[user]\n")
    before = machine.tree()
    assert run(["run", client.name, "--model", "demo/echo-tools", "--", "-p", "hello", "--model"]) == 0
    assert machine.tree() == before
    assert machine.report["arguments"] == ["-p", "hello", "--model"]
    everything = json.dumps(machine.report)
    assert "http://127.0.0.1:" in everything
    assert "demo/echo-tools" in everything


def test_a_running_gateway_is_used_with_its_key(
    locked: Gateway, machine: Machine, tmp_path: Path, capsys: Shown
) -> None:
    (tmp_path / "toolwire.toml").write_text(f'[server]\nport = {locked.port}\nkeys = ["k-secret-1"]\n')
    machine.install("claude")
    assert run(["run", "claude", "--small-model", "there/s", "--large-model", "there/l"]) == 0
    settings = json.loads(machine.report["files"]["CLAUDE_CONFIG_DIR/settings.json"])
    assert settings["env"]["ANTHROPIC_BASE_URL"] == f"http://127.0.0.1:{locked.port}"
    assert settings["env"]["ANTHROPIC_DEFAULT_HAIKU_MODEL"] == "there/s"
    assert settings["env"]["ANTHROPIC_DEFAULT_OPUS_MODEL"] == "there/l"
    assert settings["env"]["CLAUDE_CODE_MAX_CONTEXT_TOKENS"] == "32000"
    assert settings["disableDeepLinkRegistration"] == "disable"
    assert machine.report["environment"]["TOOLWIRE_KEY"] == "k-secret-1"
    assert json.loads(machine.report["files"]["CLAUDE_CONFIG_DIR/.claude.json"]) == {"hasCompletedOnboarding": True}
    shown = capsys.readouterr()
    assert shown.err == f"toolwire: Claude Code uses there/m at http://127.0.0.1:{locked.port}\n"
    assert "k-secret-1" not in json.dumps(machine.report["files"])


def test_settings_of_the_user_apply_and_stay(machine: Machine) -> None:
    machine.install("codex")
    folder = machine.home / ".codex"
    folder.mkdir()
    (folder / "config.toml").write_text('model = "mine"\n[tools]\nweb_search = true\n')
    (folder / "auth.json").write_text("login")
    before = machine.tree()
    assert run(["run", "codex", "--model", "demo/echo-tools"]) == 0
    assert machine.tree() == before
    files = machine.report["files"]
    assert 'model = "demo/echo-tools"' in files["CODEX_HOME/config.toml"]
    assert "web_search = true" in files["CODEX_HOME/config.toml"]
    assert "daemon_auto_start = false" in files["CODEX_HOME/config.toml"]
    assert "CODEX_HOME/auth.json" not in files


def test_variables_that_would_take_precedence_are_removed(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.install("claude")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "mine")
    monkeypatch.setenv("KEPT", "yes")
    assert run(["run", "claude", "--model", "demo/echo-tools"]) == 0
    environment = machine.report["environment"]
    assert "ANTHROPIC_AUTH_TOKEN" not in environment
    assert environment["KEPT"] == "yes"
    assert environment["ANTHROPIC_MODEL"] == "demo/echo-tools"


def test_settings_in_a_variable(machine: Machine) -> None:
    machine.install("opencode")
    assert run(["run", "opencode", "--model", "demo/echo-tools"]) == 0
    environment = machine.report["environment"]
    settings = json.loads(environment["OPENCODE_CONFIG_CONTENT"])
    assert settings["model"] == "toolwire/demo/echo-tools"
    assert {Path(environment[f"XDG_{name}_HOME"]).exists() for name in ("DATA", "CONFIG", "STATE", "CACHE")} == {False}


def test_the_exit_code_of_the_client_is_ours(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.install("codex")
    monkeypatch.setenv("CODE", "23")
    assert run(["run", "codex", "--model", "demo/echo-tools"]) == 23


def test_without_other_models_the_demo_model_is_used_with_a_note(machine: Machine, capsys: Shown) -> None:
    machine.install("codex")
    assert run(["run", "codex"]) == 0
    assert "uses demo/echo-tools at http://127.0.0.1:" in capsys.readouterr().err


def test_sessions_stay_in_the_folder_of_state(machine: Machine, tmp_path: Path) -> None:
    machine.install("codex")
    command = ["run", "codex", "--model", "demo/echo-tools", "--state", "sessions"]
    assert run(command) == 0
    written = tmp_path / "sessions/CODEX_HOME/written-by-the-client"
    assert written.read_text() == "state"
    assert (tmp_path / "sessions").stat().st_mode & 0o077 == 0
    assert run(command) == 0
    assert "CODEX_HOME/written-by-the-client" in machine.report["files"]


ASKING = """#!{python}
import json, os, urllib.error, urllib.request
body = json.dumps({{"model": os.environ["COPILOT_MODEL"], "messages": [{{"role": "user", "content": "hello"}}]}}).encode()
url = os.environ["COPILOT_PROVIDER_BASE_URL"] + "/chat/completions"
try:
    urllib.request.urlopen(urllib.request.Request(url, body, {{"content-type": "application/json"}}))
except urllib.error.HTTPError as error:
    print("status", error.code)
"""


def test_problems_of_the_gateway_are_shown_afterwards(machine: Machine, tmp_path: Path, capfd: Shown) -> None:
    (tmp_path / "toolwire.toml").write_text(
        f'[server]\nport = {free_port()}\n[backends.down]\nkind = "openai-chat"\nbase_url = "http://127.0.0.1:9/v1"\n'
        'retries = 0\nmodels = ["m"]\n'
    )
    program = machine.programs / "copilot"
    program.write_text(ASKING.format(python=sys.executable))
    program.chmod(0o755)
    assert run(["run", "copilot"]) == 0
    shown = capfd.readouterr()
    assert shown.out.startswith("status 5")
    first, *problems = shown.err.splitlines()
    assert first.startswith("toolwire: GitHub Copilot CLI uses down/m at http://127.0.0.1:")
    assert any("down" in line for line in problems)  # a busy machine adds warnings


def test_a_log_that_is_wanted_is_written(machine: Machine, tmp_path: Path) -> None:
    machine.install("codex")
    assert run(["run", "codex", "--model", "demo/echo-tools", "--log", "gateway.log"]) == 0
    assert (tmp_path / "gateway.log").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["vscode"], "cannot be configured for a single start. `toolwire connect vscode --write` changes its settings"),
        (["open-webui"], "`toolwire connect open-webui` shows what to enter"),
        (["openai-python"], "`toolwire connect openai-python` shows what to enter or to write"),
        (["nothing"], 'there is no client "nothing"'),
        (["codex"], 'found no program "codex" on PATH. Install Codex CLI'),
        (["codex", "-p", "x"], "Run `toolwire run --help`"),
    ],
)
def test_what_cannot_be_started(arguments: list[str], words: str, machine: Machine, capsys: Shown) -> None:
    assert run(["run", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_a_gateway_that_does_not_answer_at_the_given_address(machine: Machine, capsys: Shown) -> None:
    machine.install("codex")
    assert run(["run", "codex", "--url", f"http://127.0.0.1:{free_port()}"]) == 2
    assert "no gateway answers at" in capsys.readouterr().err


def test_a_refused_key_is_reported(locked: Gateway, machine: Machine, capsys: Shown) -> None:
    machine.install("codex")
    assert run(["run", "codex", "--url", f"http://127.0.0.1:{locked.port}"]) == 2
    assert "Set TOOLWIRE_KEY to one of its keys." in capsys.readouterr().err


def test_the_clients_are_listed_with_those_that_are_missing(machine: Machine, capsys: Shown) -> None:
    machine.install("codex")
    assert run(["run"]) == 0
    shown = capsys.readouterr().out
    assert "codex             Codex CLI\n" in shown
    assert "(found no claude on PATH)" in shown
    assert "vscode" not in shown
