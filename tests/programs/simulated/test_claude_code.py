"""Claude Code on a model without tools completes the same tasks as with tools, including tool search."""

from __future__ import annotations

import pytest

from tests.programs import claude_code
from tests.programs.simulated.stage import CORRECTED, Setting, steps_of, straight
from tests.programs.stage import Task

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("model", [claude_code.OLD, claude_code.CURRENT])
@pytest.mark.parametrize("stage", [Setting("plain")], indirect=True)
def test_claude_code(task: Task, model: str) -> None:
    claude_code.complete_task(task, model)
    assert steps_of(task.stage, task.project) == straight(3)


@pytest.mark.parametrize("stage", [Setting("plain")], indirect=True)
def test_claude_code_calls_a_tool_that_it_found(task: Task) -> None:
    claude_code.call_found_tool(task)
    assert steps_of(task.stage, task.project) == straight(5)


@pytest.mark.parametrize("stage", [Setting("plain", "anthropic"), Setting("plain", "openai-responses")], indirect=True)
def test_claude_code_on_servers_of_other_dialects(task: Task) -> None:
    claude_code.complete_task(task, claude_code.OLD)
    assert steps_of(task.stage, task.project) == straight(3)


@pytest.mark.parametrize("stage", [Setting("sloppy")], indirect=True)
def test_claude_code_with_a_model_that_is_sloppy(task: Task) -> None:
    claude_code.complete_task(task, claude_code.CURRENT)
    assert steps_of(task.stage, task.project) == CORRECTED
