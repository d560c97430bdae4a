"""The model layer of Copilot for Obsidian: LangChain in the version of the plugin, configured from the file that `toolwire connect --write` wrote."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.free_port import free_port
from tests.programs.codex_backend.binaries import plugin_langchain
from tests.programs.installed import ROOT, node_program, search_path
from tests.programs.stage import serving

pytestmark = pytest.mark.slow

KEY = "k-obsidian"
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses"}


@pytest.mark.parametrize("dialect", PATHS)
def test_a_tool_is_called_in_the_chosen_dialect(dialect: str, tmp_path: Path) -> None:
    modules, port = plugin_langchain(), free_port()
    config = tmp_path / "toolwire.toml"
    alias = '[models]\n"gpt-5-toolwire" = "demo/echo-tools"\n'  # as connect shows it
    config.write_text(f'[server]\nport = {port}\nkeys = ["{KEY}"]\n[store]\nkind = "memory"\n{alias}', encoding="utf-8")
    vault = tmp_path / "vault" / "copilot"
    vault.mkdir(parents=True)
    chosen = ["--dialect", dialect, "--model", "demo/echo-tools", "--config", str(config)]
    with serving([sys.executable, "-m", "toolwire", "serve", "--config", str(config)], port, tmp_path / "gateway.log"):
        write = ["connect", "obsidian-copilot", *chosen, "--file", str(vault / "data.json"), "--write", "--check"]
        shown = _run([sys.executable, "-m", "toolwire", *write], tmp_path)
        assert ('"gpt-5-toolwire" = "demo/echo-tools"' in shown) == (dialect == "responses")
        (tmp_path / "node_modules").symlink_to(modules)
        script = shutil.copy(Path(__file__).parent / "js" / "obsidian.mjs", tmp_path)
        told = json.loads(_run([str(node_program("node")), script, str(vault / "data.json"), KEY], tmp_path))
    assert told == {
        "paths": [PATHS[dialect]] * 2,
        "called": [{"name": "get_weather", "args": {"city": "Paris"}}],
        "text": "get_weather said: 18 degrees and rain.",
    }


def _run(command: list[str], folder: Path) -> str:
    environment = {"PATH": search_path(), "HOME": str(folder), "LANG": "C.UTF-8", "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout
