"""Runs of Codex: with functions, a freeform tool, a namespace, a tool from tool search, and code mode."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.programs.installed import node_program
from tests.programs.stage import CONTENT, KEY, Task, calling, final_text, prompt, reading

UNKNOWN = "a-model"
WITH_PATCHES = "gpt-5.5"
IN_CODE = "gpt-6.1-sol"
NO_AGENT = "01a1e06f-0000-7000-8000-000000000000"
_NOT_FOUND = f"agent with id {NO_AGENT} not found"
_PRINT = f"printf '%s\\n' '{CONTENT}' > OUT.md"


def use_functions(task: Task) -> None:
    task.check(_run(task, UNKNOWN, _read(task), _write(task), final_text()), line_end="\n")


def use_freeform_tool(task: Task) -> None:
    patch = f"*** Begin Patch\n*** Add File: OUT.md\n+{CONTENT}\n*** End Patch\n"
    task.check(_run(task, WITH_PATCHES, _read(task), calling("apply_patch", input=patch), final_text()), line_end="\n")


def use_namespace(task: Task) -> None:
    close = calling("multi_agent_v1.close_agent", arguments={"target": NO_AGENT})
    said = _run(task, UNKNOWN, _read(task), _write(task), close, final_text(" AND {{result:2:agent.*}}"))
    task.check(said, line_end="\n")
    assert f"{task.final} AND {_NOT_FOUND}" in said, task.story("the namespaced tool did not run", said, "")


def use_found_tool(task: Task) -> None:
    search = calling("tool_search", arguments={"query": "close agent", "limit": 8})
    close = calling("multi_agent_v1.close_agent", arguments={"target": NO_AGENT})
    said = _run(task, WITH_PATCHES, _read(task), _write(task), search, close, final_text(" AND {{result:3:agent.*}}"))
    task.check(said, line_end="\n")
    assert f"{task.final} AND {_NOT_FOUND}" in said, task.story("the found tool did not run", said, "")


def use_code_mode(task: Task) -> None:
    read = reading("functions.exec", input=_code(task, "cat README.md"))
    task.check(
        _run(task, IN_CODE, read, calling("functions.exec", input=_code(task, _PRINT)), final_text()), line_end="\n"
    )


def _read(task: Task) -> dict[str, Any]:
    return reading("exec_command", arguments={"cmd": "cat README.md", "workdir": str(task.project)})


def _write(task: Task) -> dict[str, Any]:
    return calling("exec_command", arguments={"cmd": _PRINT, "workdir": str(task.project)})


def _code(task: Task, command: str) -> str:
    options = json.dumps({"cmd": command, "workdir": str(task.project)})
    return f"const r = await tools.exec_command({options});\ntext(r.output ?? r);\n"


def _run(task: Task, model: str, *turns: dict[str, Any]) -> str:
    program = node_program("codex")
    configure(task.home, model, task.stage.openai_url)
    words = ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    return task.run([program, *words, prompt(*turns)], CODEX_KEY=KEY)


def configure(home: Path, model: str, url: str) -> None:
    folder = home / ".codex"
    folder.mkdir()
    (folder / "config.toml").write_text(
        f"""
model = "{model}"
model_provider = "toolwire"
[model_providers.toolwire]
name = "toolwire"
base_url = "{url}"
wire_api = "responses"
env_key = "CODEX_KEY"
""",
        encoding="utf-8",
    )
