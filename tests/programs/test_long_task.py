"""Tasks that are compacted at least twice: at their end the programs still know a word from the first message and one from the first result."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.programs import claude_code, codex, opencode
from tests.programs.long_task import LongTask
from tests.programs.stage import KINDS

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("kind", KINDS)]

SOCKET = "a WebSocket was opened"


@pytest.fixture
def task(kind: str, tmp_path: Path) -> LongTask:
    return LongTask(kind, tmp_path)


def test_codex_with_its_built_in_provider_uses_a_websocket_and_compaction_by_the_gateway(task: LongTask) -> None:
    log = task.run("exec_command", "cmd", partial(codex.run_long_task, text=task.prompt, is_built_in=True))
    assert SOCKET in log


def test_codex_with_our_provider_entry_compacts_by_itself(task: LongTask) -> None:
    task.run("exec_command", "cmd", partial(codex.run_long_task, text=task.prompt, is_built_in=False))


def test_claude_code_compacts_by_itself(task: LongTask) -> None:
    task.run("Bash", "command", partial(claude_code.run_long_task, text=task.prompt))


def test_opencode_over_a_websocket_compacts_by_itself(task: LongTask) -> None:
    log = task.run("bash", "command", partial(opencode.run_long_task, text=task.prompt))
    assert SOCKET in log
