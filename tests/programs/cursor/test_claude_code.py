"""Claude Code on Cursor's agent completes the same tasks as on a plain model, including tool search."""

from __future__ import annotations

import pytest

from tests.programs import claude_code
from tests.programs.cursor.journal import check
from tests.programs.cursor.stage import RUN_ANEW, RUN_PARKED, SETTINGS, SSE_ANEW, SSE_PARKED, CursorStage
from tests.programs.stage import Task
from tests.thorough import some

pytestmark = pytest.mark.slow

PAIRS = [(model, setting) for model in (claude_code.OLD, claude_code.CURRENT) for setting in SETTINGS]
KEPT = [(claude_code.OLD, RUN_PARKED), (claude_code.CURRENT, SSE_PARKED), (claude_code.CURRENT, RUN_ANEW)]


@pytest.mark.parametrize(("model", "stage"), some(PAIRS, KEPT), indirect=["stage"])
def test_claude_code(stage: CursorStage, task: Task, model: str) -> None:
    claude_code.complete_task(task, model)
    check(stage, task.project, steps=3)


@pytest.mark.parametrize("stage", some(SETTINGS, [SSE_ANEW]), indirect=True)
def test_claude_code_calls_a_tool_that_it_found(stage: CursorStage, task: Task) -> None:
    claude_code.call_found_tool(task)
    check(stage, task.project, steps=5, breaks=[3])  # a found tool is a new one, and a run cannot get new tools
