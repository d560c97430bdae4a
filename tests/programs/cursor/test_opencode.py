"""OpenCode on Cursor's agent completes the same tasks as on a plain model."""

from __future__ import annotations

import pytest

from tests.programs import opencode
from tests.programs.cursor.journal import check
from tests.programs.cursor.stage import RUN_PARKED, SETTINGS, SSE_ANEW, CursorStage
from tests.programs.stage import Task
from tests.thorough import some

pytestmark = pytest.mark.slow

COMPATIBLE, OPENAI, ANTHROPIC = opencode.PROVIDERS
PAIRS = [(provider, setting) for provider in opencode.PROVIDERS for setting in SETTINGS]
# Its third provider is in test_built_in_tools.py.
KEPT = [(COMPATIBLE, RUN_PARKED), (OPENAI, SSE_ANEW)]


@pytest.mark.parametrize(("provider", "stage"), some(PAIRS, KEPT), indirect=["stage"])
def test_opencode(stage: CursorStage, task: Task, provider: str) -> None:
    opencode.complete_task(task, provider)
    check(stage, task.project, steps=3)
