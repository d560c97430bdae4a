"""Claude Code completes the task: with an old model, with a current one, and with tools from tool search."""

from __future__ import annotations

import pytest

from tests.programs import claude_code
from tests.programs.stage import KINDS, ONLY_FUNCTIONS, Task

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("stage", [*KINDS, ONLY_FUNCTIONS[1]], indirect=True)]


@pytest.mark.parametrize("model", [claude_code.OLD, claude_code.CURRENT])
def test_claude_code(task: Task, model: str) -> None:
    claude_code.complete_task(task, model)


def test_claude_code_finds_a_tool(task: Task) -> None:
    claude_code.find_tool(task)


def test_claude_code_calls_a_tool_that_it_found(task: Task) -> None:
    claude_code.call_found_tool(task)
