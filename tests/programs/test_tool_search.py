"""Claude Code, Codex and OpenCode with an MCP server of 150 tools, on a back end that gets 40 at a time: they complete the task unchanged."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.programs import claude_code, codex, opencode
from tests.programs.installed import node_program
from tests.programs.stage import KEY, Stage, Task, calling, prompt, running

pytestmark = pytest.mark.slow

SERVER = str(Path(__file__).parent / "many_tools_server.py")
FINAL = {"text": "ALLDONE {{result:0:SECRET-[0-9a-f]+}}"}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with running("openai-chat", tmp_path_factory.mktemp("searched"), "tools_budget = 40") as opened:
        yield opened


@pytest.fixture
def task(stage: Stage, tmp_path: Path) -> Task:
    return Task(stage, tmp_path / "task")


def asking(tool: str) -> str:
    return "Reveal the code of the vault. " + prompt(calling(tool, arguments={"reason": "task"}), FINAL)


def checked(task: Task, output: str) -> None:
    assert task.final in output, task.story("it did not say the word", output, "")
    lines = (task.stage.folder / "journal").read_text(encoding="utf-8").splitlines()
    sent = [tools for line in lines if (tools := named(json.loads(line)["body"])) and "find_tools" in tools]
    assert sent
    assert all(len(tools) <= 41 for tools in sent)


def named(body: dict[str, Any]) -> list[str]:
    return [tool["function"]["name"] for tool in body.get("tools") or ()]


def test_claude_code(task: Task) -> None:
    server = {"type": "stdio", "command": sys.executable, "args": [SERVER, task.word]}
    file = task.folder / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"many": server}}), encoding="utf-8")
    tool = "mcp__many__reveal_vault_code"
    command = [node_program("claude"), "-p", asking(tool), "--model", claude_code.OLD, "--allowedTools", tool]
    output = task.run(
        [*command, "--mcp-config", file, "--strict-mcp-config"],
        ANTHROPIC_BASE_URL=task.stage.address,
        ANTHROPIC_API_KEY=KEY,
        ANTHROPIC_DEFAULT_HAIKU_MODEL=claude_code.OLD,
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
        DISABLE_TELEMETRY="1",
        DISABLE_AUTOUPDATER="1",
        ENABLE_TOOL_SEARCH="false",
    )
    checked(task, output)


def test_codex(task: Task) -> None:
    codex.configure(task.home, codex.UNKNOWN, task.stage.openai_url)
    file = task.home / ".codex" / "config.toml"
    server = f'\n[mcp_servers.many]\ncommand = "{sys.executable}"\nargs = ["{SERVER}", "{task.word}"]\n{codex.WAITS_FOR_SERVER}'
    file.write_text(file.read_text(encoding="utf-8") + server, encoding="utf-8")
    words = ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    output = task.run([node_program("codex"), *words, asking("mcp__many__reveal_vault_code")], CODEX_KEY=KEY)
    checked(task, output)


def test_opencode(task: Task) -> None:
    opencode.configure(task.home, opencode.PROVIDERS[0], task.stage.openai_url)
    file = task.home / ".config" / "opencode" / "opencode.json"
    settings = json.loads(file.read_text(encoding="utf-8"))
    command = [sys.executable, SERVER, task.word]
    settings["mcp"] = {"many": {"type": "local", "command": command, "enabled": True}}
    file.write_text(json.dumps(settings), encoding="utf-8")
    program = node_program("opencode")
    checked(task, task.run([program, "run", asking("many_reveal_vault_code")], timeout=120, **opencode.OFFLINE))
