"""Runs of Claude Code: the task alone, and with tools from tool search."""

from __future__ import annotations

from typing import Any

from tests.programs.installed import node_program
from tests.programs.stage import CONTENT, KEY, Task, TwoReadsTask, calling, final_text, prompt, reading

OLD = "claude-sonnet-4-5"
CURRENT = "claude-fable-5-1"


def complete_task(task: Task, model: str) -> None:
    task.check(_run(task, model, *_steps(task), final_text()))


def find_tool(task: Task) -> None:
    search = calling("ToolSearch", arguments={"query": "select:WebFetch", "max_results": 3})
    task.check(_run(task, CURRENT, *_steps(task), search, final_text()))


def call_found_tool(task: Task) -> None:
    search = calling("ToolSearch", arguments={"query": "select:WebFetch", "max_results": 3})
    # Nothing listens there; it is enough that the tool ran and failed.
    fetch = calling("WebFetch", arguments={"url": "https://127.0.0.1:9/", "prompt": "What is there?"})
    task.check(_run(task, CURRENT, *_steps(task), search, fetch, final_text()))


def work_in_shell(task: Task) -> None:
    """With commands that name no folder, so that the session can be replayed in another one."""
    read = reading("Bash", arguments={"command": "cat README.md", "description": "Read the file"})
    write = calling("Bash", arguments={"command": f"printf %s '{CONTENT}' > OUT.md", "description": "Write the file"})
    task.check(_play(task, CURRENT, prompt(read, write, final_text()), "Bash"))


def read_two_files(task: TwoReadsTask) -> None:
    task.check(_play(task, CURRENT, task.prompt(*_steps(task)), "Read,Write", CLAUDE_CODE_MAX_RETRIES="1"))


def _steps(task: Task) -> list[dict[str, Any]]:
    return [
        reading("Read", arguments={"file_path": str(task.source)}),
        calling("Write", arguments={"file_path": str(task.target), "content": CONTENT}),
    ]


def run_long_task(task: Task, text: str) -> str:
    """It compacts when a fifth of a small window is full."""
    limits = {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "100000", "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "20"}
    return _play(task, CURRENT, text, "Bash", **limits)


def _run(task: Task, model: str, *turns: dict[str, Any]) -> str:
    return _play(task, model, prompt(*turns), "Read,Write,WebFetch,ToolSearch")


def _play(task: Task, model: str, text: str, tools: str, **more: str) -> str:
    program = node_program("claude")
    return task.run(
        [program, "-p", text, "--model", model, "--allowedTools", tools],
        ANTHROPIC_BASE_URL=task.stage.address,
        ANTHROPIC_API_KEY=KEY,
        ANTHROPIC_SMALL_FAST_MODEL=model,
        ANTHROPIC_DEFAULT_HAIKU_MODEL=model,
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
        DISABLE_TELEMETRY="1",
        DISABLE_AUTOUPDATER="1",
        **more,
    )
