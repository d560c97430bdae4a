"""The real Codex CLI as a client of the Codex back end: its tools are called, whatever names the Codex behind the gateway reserves."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.programs.codex_backend.clients import KEY, Chat
from tests.programs.codex_backend.stage import Stage, backends_of
from tests.programs.installed import node_program, search_path

_SECONDS = 90
# Names that a version of Codex reserves or has a built-in tool for, and one that it rejects.
_CONTESTED = ("exec_command", "shell_command", "shell", "apply_patch", "view_image", "web_search", "update_plan", "mcp")


def test_codex_cli_runs_its_commands(codex_stage: Stage, tag: str, tmp_path: Path) -> None:
    for backend in backends_of(codex_stage.version):
        project = tmp_path / backend
        project.mkdir()
        (project / "README.md").write_text(f"The word is FOUND_{tag}0.\n", encoding="utf-8")
        said = _codex_cli(codex_stage, backend, project, f"SC=commands TAG={tag}")
        assert f"ALLDONE {tag} FOUND_{tag}0 FOUND_{tag}1" in said, f"{backend}: {said}"
        assert (project / "OUT.md").read_text(encoding="utf-8") == f"FOUND_{tag}1\n"


@pytest.mark.parametrize("name", _CONTESTED)
def test_a_tool_with_a_contested_name_reaches_the_model_and_is_called_by_it(
    codex_stage: Stage, backend: str, name: str, tag: str
) -> None:
    schema = {"type": "object", "properties": {"cmd": {"type": "string"}}}
    tool = {"name": name, "description": "Run a command.", "parameters": schema}
    client = Chat(codex_stage, backend, is_streamed=False, tools=[tool])
    client.say(f"SC=contested TAG={tag} NAME={name}.")
    answer = client.ask()
    assert [(call.name, call.arguments) for call in answer.calls] == [(name, {"cmd": tag})]
    client.give({answer.calls[0].id: f"FOUND_{tag}0"})
    assert client.ask().text == f"ALLDONE {tag} FOUND_{tag}0"


def _codex_cli(stage: Stage, backend: str, project: Path, prompt: str) -> str:
    """Its output; with a fresh HOME, a fake key, and a closed port for everything outside loopback."""
    home = project / "home"
    (home / ".codex").mkdir(parents=True)
    (home / ".codex" / "config.toml").write_text(
        f'model = "{stage.model(backend)}"\nmodel_provider = "toolwire"\n[model_providers.toolwire]\nname = "toolwire"\n'
        f'base_url = "{stage.address}/v1"\nwire_api = "responses"\nenv_key = "CODEX_KEY"\n',
        encoding="utf-8",
    )
    clean = {"PATH": search_path(), "HOME": str(home), "LANG": "C.UTF-8", "CODEX_KEY": KEY}
    clean |= {"HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1,localhost"}
    words = ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", prompt]
    process = subprocess.Popen(
        [str(node_program("codex")), *words],
        cwd=project,
        env=clean,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
    return output.decode("utf-8", "replace")
