"""Recorded sessions of real programs: replayed without the model, in another folder and another home, the program completes the task again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.programs import claude_code, codex
from tests.programs.cassettes import recording, replaying
from tests.programs.stage import Task

pytestmark = pytest.mark.slow

RUNS = {
    "claude-code": claude_code.work_in_shell,
    "codex": codex.work_in_shell,
    "codex with freeform tools": codex.work_with_patches,
}


def replay(run: Callable[[Task], None], folder: Path, cassette: Path, recorded: Task, *options: str) -> None:
    with replaying(folder, cassette, *options) as stage:
        run(Task(stage, folder / "another" / "task", word=recorded.word))


@pytest.mark.parametrize("client", ["", "openai-chat"], ids=["same dialect", "recorded in chat"])
@pytest.mark.parametrize("name", RUNS)
def test_a_recorded_session_is_completed_again(tmp_path: Path, name: str, client: str) -> None:
    cassette = tmp_path / "session.jsonl"
    with recording("openai-chat", tmp_path, cassette, client=client) as stage:
        first = Task(stage, tmp_path / "task")
        RUNS[name](first)
    replay(RUNS[name], tmp_path, cassette, first)
