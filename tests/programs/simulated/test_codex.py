"""Codex on a model without tools does what it does on one that has them, freeform tools and namespaces included."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.programs import test_codex as native
from tests.programs.simulated.stage import CORRECTED, Setting, steps_of, straight
from tests.programs.stage import Task

pytestmark = pytest.mark.slow

WAYS: list[tuple[Callable[[Task], None], int]] = [
    (native.test_codex_by_functions, 3),
    (native.test_codex_by_a_freeform_tool, 3),
    (native.test_codex_by_a_namespace, 4),
    (native.test_codex_by_a_tool_that_it_found, 5),
    (native.test_codex_in_code, 3),
]


@pytest.mark.parametrize(("way", "turns"), WAYS, ids=[way.__name__.removeprefix("test_codex_") for way, _ in WAYS])
@pytest.mark.parametrize("stage", [Setting("plain")], indirect=True)
def test_codex(task: Task, way: Callable[[Task], None], turns: int) -> None:
    way(task)
    assert steps_of(task.stage, task.project) == straight(turns)


@pytest.mark.parametrize("stage", [Setting("plain", "anthropic"), Setting("plain", "openai-responses")], indirect=True)
def test_codex_on_servers_of_other_dialects(task: Task) -> None:
    native.test_codex_by_a_freeform_tool(task)
    assert steps_of(task.stage, task.project) == straight(3)


@pytest.mark.parametrize("stage", [Setting("sloppy")], indirect=True)
@pytest.mark.parametrize("way", [native.test_codex_by_functions, native.test_codex_by_a_freeform_tool])
def test_codex_with_a_model_that_is_sloppy(task: Task, way: Callable[[Task], None]) -> None:
    way(task)
    assert steps_of(task.stage, task.project) == CORRECTED
