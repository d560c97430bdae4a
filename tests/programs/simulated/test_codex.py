"""Codex on a model without tools completes the same tasks as with tools, including freeform tools and namespaces."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.programs import codex
from tests.programs.simulated.stage import CORRECTED, Setting, steps_of, straight
from tests.programs.stage import Task

pytestmark = pytest.mark.slow

WAYS: list[tuple[Callable[[Task], None], int]] = [
    (codex.use_functions, 3),
    (codex.use_freeform_tool, 3),
    (codex.use_namespace, 4),
    (codex.use_found_tool, 5),
    (codex.use_code_mode, 3),
]


@pytest.mark.parametrize(("way", "turns"), WAYS, ids=[way.__name__ for way, _ in WAYS])
@pytest.mark.parametrize("stage", [Setting("plain")], indirect=True)
def test_codex(task: Task, way: Callable[[Task], None], turns: int) -> None:
    way(task)
    assert steps_of(task.stage, task.project) == straight(turns)


@pytest.mark.parametrize("stage", [Setting("plain", "anthropic"), Setting("plain", "openai-responses")], indirect=True)
def test_codex_on_servers_of_other_dialects(task: Task) -> None:
    codex.use_freeform_tool(task)
    assert steps_of(task.stage, task.project) == straight(3)


@pytest.mark.parametrize("stage", [Setting("sloppy")], indirect=True)
@pytest.mark.parametrize("way", [codex.use_functions, codex.use_freeform_tool])
def test_codex_with_a_model_that_is_sloppy(task: Task, way: Callable[[Task], None]) -> None:
    way(task)
    assert steps_of(task.stage, task.project) == CORRECTED
