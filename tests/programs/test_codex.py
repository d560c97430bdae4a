"""Codex completes the task in five ways: with functions, a freeform tool, a namespace, a tool from tool search, and code mode."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.programs import codex
from tests.programs.stage import KINDS, ONLY_FUNCTIONS, Task

pytestmark = pytest.mark.slow

RUNS = [codex.use_functions, codex.use_freeform_tool, codex.use_namespace, codex.use_found_tool, codex.use_code_mode]


@pytest.mark.parametrize("stage", [*KINDS, ONLY_FUNCTIONS[0]], indirect=True)
@pytest.mark.parametrize("run", RUNS, ids=[run.__name__ for run in RUNS])
def test_codex(task: Task, run: Callable[[Task], None]) -> None:
    run(task)
