"""Runs of OpenCode with one of its providers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.programs.installed import node_program
from tests.programs.stage import CONTENT, KEY, Task, TwoReadsTask, calling, final_text, prompt, reading

PROVIDERS = ("@ai-sdk/openai-compatible", "@ai-sdk/openai", "@ai-sdk/anthropic")
OFFLINE = {
    f"OPENCODE_DISABLE_{what}": "1" for what in ("MODELS_FETCH", "AUTOUPDATE", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")
}


def complete_task(task: Task, provider: str) -> None:
    _play(task, provider, prompt(_read(task), _write(task), final_text()))


def read_two_files(task: TwoReadsTask, provider: str) -> None:
    _play(task, provider, task.prompt(_read(task), _write(task)))


def _read(task: Task) -> dict[str, Any]:
    return reading("read", arguments={"filePath": str(task.source)})


def _write(task: Task) -> dict[str, Any]:
    return calling("write", arguments={"filePath": str(task.target), "content": CONTENT})


def _play(task: Task, provider: str, text: str) -> None:
    program = node_program("opencode")
    configure(task.home, provider, task.stage.openai_url)
    task.check(task.run([program, "run", text], timeout=120, **OFFLINE))


def run_long_task(task: Task, text: str) -> str:
    """With its built-in provider, the only one for which it can use a WebSocket."""
    program = node_program("opencode")
    model = {"name": "a-model", "tool_call": True, "limit": {"context": 16000, "output": 4000}}
    options = {"baseURL": task.stage.openai_url}
    settings = {
        "provider": {"openai": {"options": options, "models": {"a-model": model}}},
        "model": "openai/a-model",
        "small_model": "openai/a-model",
        "permission": {"edit": "allow", "bash": "allow"},
    }
    login = {"openai": {"type": "api", "key": KEY}}
    for folder, name, value in (
        (task.home / ".config" / "opencode", "opencode.json", settings),
        (task.home / ".local" / "share" / "opencode", "auth.json", login),
    ):
        folder.mkdir(parents=True)
        (folder / name).write_text(json.dumps(value), encoding="utf-8")
    environment = {name: value for name, value in OFFLINE.items() if not name.endswith("PLUGINS")}
    return task.run([program, "run", text], timeout=120, OPENCODE_EXPERIMENTAL_WEBSOCKETS="true", **environment)


def configure(home: Path, provider: str, url: str) -> None:
    settings = {
        "provider": {
            "toolwire": {
                "npm": provider,
                "options": {"baseURL": url, "apiKey": KEY},
                "models": {"a-model": {"name": "a-model", "tool_call": True}},
            }
        },
        "model": "toolwire/a-model",
        "small_model": "toolwire/a-model",
        "permission": {"edit": "allow", "bash": "allow"},
    }
    folder = home / ".config" / "opencode"
    folder.mkdir(parents=True)
    (folder / "opencode.json").write_text(json.dumps(settings), encoding="utf-8")
