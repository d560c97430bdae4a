"""Claude Code on Cursor's agent does what it does on a plain model, tools that it has to find included."""

from __future__ import annotations

import pytest

from tests.programs import test_claude_code as native
from tests.programs.cursor.journal import check
from tests.programs.cursor.stage import RUN_ANEW, RUN_PARKED, SETTINGS, SSE_ANEW, SSE_PARKED, CursorStage
from tests.programs.stage import Task
from tests.thorough import some

pytestmark = pytest.mark.slow

PAIRS = [(model, setting) for model in (native.OLD, native.CURRENT) for setting in SETTINGS]
KEPT = [(native.OLD, RUN_PARKED), (native.CURRENT, SSE_PARKED), (native.CURRENT, RUN_ANEW)]


@pytest.mark.parametrize(("model", "stage"), some(PAIRS, KEPT), indirect=["stage"])
def test_claude_code(stage: CursorStage, task: Task, model: str) -> None:
    native.test_claude_code(task, model)
    check(stage, task.project, steps=3)


@pytest.mark.parametrize("stage", some(SETTINGS, [SSE_ANEW]), indirect=True)
def test_claude_code_calls_a_tool_that_it_found(stage: CursorStage, task: Task) -> None:
    native.test_claude_code_calls_a_tool_that_it_found(task)
    check(stage, task.project, steps=5, breaks=[3])  # a tool that is found is a new one, and no run can be told of it
