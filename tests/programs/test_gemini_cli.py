"""Gemini CLI completes the task, with a model of its own generation and with one that it does not know."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.programs.installed import node_program
from tests.programs.stage import CONTENT, KEY, KINDS, Task, calling, final_text, prompt, reading
from tests.thorough import some

pytestmark = pytest.mark.slow

MODELS = ("gemini-2.5-flash", "gemini-3-pro-preview", "a-model")
PAIRS = [(model, kind) for model in MODELS for kind in KINDS]
KEPT = list(zip(MODELS, KINDS, strict=True))  # each model and each upstream once


@pytest.mark.parametrize(("model", "stage"), some(PAIRS, KEPT), indirect=["stage"])
def test_gemini_cli(task: Task, model: str) -> None:
    read = reading("read_file", arguments={"file_path": str(task.source)})
    write = calling("write_file", arguments={"file_path": str(task.target), "content": CONTENT})
    task.check(_run(task, model, read, write, final_text()))


def _run(task: Task, model: str, *turns: dict[str, Any]) -> str:
    program = node_program("gemini")
    folder = task.home / ".gemini"
    folder.mkdir()
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
    }
    (folder / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    return task.run(
        [program, "--model", model, "--approval-mode", "yolo", "--prompt", prompt(*turns)],
        GEMINI_API_KEY=KEY,
        GOOGLE_GEMINI_BASE_URL=task.stage.address,
        GEMINI_CLI_TRUST_WORKSPACE="true",
        CI="1",
    )
