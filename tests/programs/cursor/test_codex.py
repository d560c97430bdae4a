"""Codex on Cursor's agent completes the same tasks as on a plain model: functions, freeform tools, namespaces, tool search, code mode."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.programs import codex
from tests.programs.cursor.journal import check
from tests.programs.cursor.stage import RUN_ANEW, RUN_PARKED, SETTINGS, SSE_ANEW, SSE_PARKED, CursorStage, Setting
from tests.programs.stage import Task
from tests.thorough import some

pytestmark = pytest.mark.slow

# The number of answers, and the call after which a new run starts: a run cannot get new tools.
WAYS: dict[str, tuple[Callable[[Task], None], int, list[int]]] = {
    "functions": (codex.use_functions, 3, []),
    "freeform": (codex.use_freeform_tool, 3, []),
    "namespace": (codex.use_namespace, 4, []),
    "found": (codex.use_found_tool, 5, [3]),
    "code": (codex.use_code_mode, 3, []),
}
PAIRS = [(way, setting) for way in WAYS for setting in SETTINGS]
KEPT: list[tuple[str, Setting]] = [
    ("functions", RUN_PARKED),
    ("freeform", RUN_ANEW),
    ("namespace", SSE_PARKED),
    ("found", SSE_ANEW),
]


@pytest.mark.parametrize(("way", "stage"), some(PAIRS, KEPT), indirect=["stage"])
def test_codex(stage: CursorStage, task: Task, way: str) -> None:
    run, steps, breaks = WAYS[way]
    run(task)
    check(stage, task.project, steps, breaks)
