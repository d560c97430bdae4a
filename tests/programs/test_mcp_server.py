"""Claude Code and Codex use the gateway as their MCP server: the model of one request is a tool of another."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.programs import claude_code, codex
from tests.programs.installed import ROOT, node_program
from tests.programs.stage import KEY, Stage, Task, calling, prompt, running

pytestmark = pytest.mark.slow

FINAL = {"text": "ALLDONE {{result:0:SECRET-[0-9a-f]+}}"}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with running("openai-chat", tmp_path_factory.mktemp("served")) as opened:
        yield opened


@pytest.fixture
def task(stage: Stage, tmp_path: Path) -> Task:
    return Task(stage, tmp_path / "task")


def asking(task: Task, tool: str, model: str) -> str:
    """The outer model asks the inner one for the word."""
    inner = prompt({"text": f"The word is {task.word}."})
    return "Ask the other model. " + prompt(calling(tool, arguments={"prompt": inner, "model": model}), FINAL)


def test_claude_code_over_http(task: Task) -> None:
    server = {"type": "http", "url": f"{task.stage.address}/mcp", "headers": {"Authorization": f"Bearer {KEY}"}}
    file = task.folder / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"models": server}}), encoding="utf-8")
    tool = "mcp__models__ask_model"
    command = [node_program("claude"), "-p", asking(task, tool, "a-model"), "--model", claude_code.OLD]
    output = task.run(
        [*command, "--allowedTools", tool, "--mcp-config", file, "--strict-mcp-config"],
        ANTHROPIC_BASE_URL=task.stage.address,
        ANTHROPIC_API_KEY=KEY,
        ANTHROPIC_DEFAULT_HAIKU_MODEL=claude_code.OLD,
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
        DISABLE_TELEMETRY="1",
        DISABLE_AUTOUPDATER="1",
        ENABLE_TOOL_SEARCH="false",
    )
    assert task.final in output, task.story("it did not say the word", output, "")


def test_codex_over_standard_input_and_output(task: Task) -> None:
    config = task.folder / "toolwire.toml"
    config.write_text('[store]\nkind = "memory"\n[backends.scripted]\nkind = "scripted"\n', encoding="utf-8")
    codex.configure(task.home, codex.UNKNOWN, task.stage.openai_url)
    file = task.home / ".codex" / "config.toml"
    server = (
        f'\n[mcp_servers.models]\ncommand = "{sys.executable}"\n'
        f'args = ["-m", "toolwire", "mcp", "--config", "{config}"]\nenv = {{ PYTHONPATH = "{ROOT / "src"}" }}\n'
        f"{codex.WAITS_FOR_SERVER}"
    )
    file.write_text(file.read_text(encoding="utf-8") + server, encoding="utf-8")
    words = ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    asked = asking(task, "mcp__models__ask_model", "scripted/scripted")
    output = task.run([node_program("codex"), *words, asked], CODEX_KEY=KEY)
    assert task.final in output, task.story("it did not say the word", output, "")
