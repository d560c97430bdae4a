"""Runs of Codex: with functions, a freeform tool, a namespace, a tool from tool search, and code mode."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.programs.installed import node_program
from tests.programs.stage import CONTENT, KEY, Task, TwoReadsTask, calling, final_text, prompt, reading

UNKNOWN = "a-model"
WITH_PATCHES = "gpt-5.5"
IN_CODE = "gpt-6.1-sol"
NO_AGENT = "01a1e06f-0000-7000-8000-000000000000"
# In the table of an MCP server: Codex sends its first request without the tools of a server that is still starting, unless it is required.
WAITS_FOR_SERVER = "required = true\nstartup_timeout_sec = 120\n"
_NOT_FOUND = f"agent with id {NO_AGENT} not found"
_PRINT = f"printf '%s\\n' '{CONTENT}' > OUT.md"


def use_functions(task: Task) -> None:
    task.check(_run(task, UNKNOWN, _read(task), _write(task), final_text()), line_end="\n")


def use_freeform_tool(task: Task) -> None:
    patch = f"*** Begin Patch\n*** Add File: OUT.md\n+{CONTENT}\n*** End Patch\n"
    task.check(_run(task, WITH_PATCHES, _read(task), calling("apply_patch", input=patch), final_text()), line_end="\n")


def work_in_shell(task: Task) -> None:
    """With commands that name no folder, so that the session can be replayed in another one."""
    read, write = (calling("exec_command", arguments={"cmd": command}) for command in ("cat README.md", _PRINT))
    task.check(_run(task, UNKNOWN, read, write, final_text()), line_end="\n")


def work_with_patches(task: Task) -> None:
    read = calling("exec_command", arguments={"cmd": "cat README.md"})
    patch = f"*** Begin Patch\n*** Add File: OUT.md\n+{CONTENT}\n*** End Patch\n"
    task.check(_run(task, WITH_PATCHES, read, calling("apply_patch", input=patch), final_text()), line_end="\n")


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


def read_two_files(task: TwoReadsTask) -> None:
    task.check(_play(task, UNKNOWN, task.prompt(_read(task), _write(task))), line_end="\n")


def _read(task: Task) -> dict[str, Any]:
    return reading("exec_command", arguments={"cmd": "cat README.md", "workdir": str(task.project)})


def _write(task: Task) -> dict[str, Any]:
    return calling("exec_command", arguments={"cmd": _PRINT, "workdir": str(task.project)})


def _code(task: Task, command: str) -> str:
    options = json.dumps({"cmd": command, "workdir": str(task.project)})
    return f"const r = await tools.exec_command({options});\ntext(r.output ?? r);\n"


def _run(task: Task, model: str, *turns: dict[str, Any]) -> str:
    return _play(task, model, prompt(*turns))


def _play(task: Task, model: str, text: str) -> str:
    program = node_program("codex")
    configure(task.home, model, task.stage.openai_url)
    words = ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    return task.run([program, *words, text], CODEX_KEY=KEY)


def run_long_task(task: Task, text: str, *, is_built_in: bool) -> str:
    """is_built_in: by Codex's own provider, which prefers a WebSocket and leaves compaction to the server."""
    program = node_program("codex")
    limits = "model_auto_compact_token_limit = 14000\nmodel_context_window = 60000\n"
    if is_built_in:
        folder = task.home / ".codex"
        folder.mkdir()
        settings = f'model = "{UNKNOWN}"\nopenai_base_url = "{task.stage.openai_url}"\n{limits}'
        (folder / "config.toml").write_text(settings, encoding="utf-8")
        login = json.dumps({"auth_mode": "apikey", "OPENAI_API_KEY": KEY})
        (folder / "auth.json").write_text(login, encoding="utf-8")
    else:
        configure(task.home, UNKNOWN, task.stage.openai_url)
        file = task.home / ".codex" / "config.toml"
        file.write_text(limits + file.read_text(encoding="utf-8"), encoding="utf-8")
    words = ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    return task.run([program, *words, text], timeout=90, CODEX_KEY=KEY)


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
