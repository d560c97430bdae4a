"""Servers that accept tools and return the model's text unparsed: each format of calls is parsed, with real clients."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs import claude_code, codex, opencode
from tests.programs.libraries import LIBRARIES
from tests.programs.simulated.manners import OWN
from tests.programs.simulated.stage import Setting, steps_of, straight
from tests.programs.stage import Stage, Task
from tests.thorough import some

pytestmark = pytest.mark.slow

# Each format also has its own tests. Here, some formats run with one program each.
ALL = [Setting(manner) for manner in OWN]
QWEN, MISTRAL, LLAMA = FAMILIAR = [Setting(manner) for manner in ("qwen-xml", "mistral-list", "llama-json")]


@pytest.mark.parametrize("stage", some(ALL, [Setting("hermes"), Setting("kimi")]), indirect=True)
def test_langchain(stage: Stage, tmp_path: Path) -> None:
    LIBRARIES["langchain"].run(stage, tmp_path)
    steps = {case: steps_of(stage, tmp_path / case / "project") for case in LIBRARIES["langchain"].cases}
    assert steps == dict.fromkeys(LIBRARIES["langchain"].cases, straight(3))


@pytest.mark.parametrize("stage", some(FAMILIAR, [LLAMA]), indirect=True)
def test_opencode(task: Task) -> None:
    opencode.complete_task(task, opencode.PROVIDERS[0])
    assert steps_of(task.stage, task.project) == straight(3)


@pytest.mark.parametrize("stage", some(FAMILIAR, [QWEN]), indirect=True)
def test_codex(task: Task) -> None:
    codex.use_freeform_tool(task)
    assert steps_of(task.stage, task.project) == straight(3)


@pytest.mark.parametrize("stage", some(FAMILIAR, [MISTRAL]), indirect=True)
def test_claude_code(task: Task) -> None:
    claude_code.complete_task(task, claude_code.OLD)
    assert steps_of(task.stage, task.project) == straight(3)
