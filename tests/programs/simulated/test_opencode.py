"""OpenCode on a model without tools completes the same tasks as with tools."""

from __future__ import annotations

import pytest

from tests.programs import opencode
from tests.programs.simulated.stage import CORRECTED, Setting, steps_of, straight
from tests.programs.stage import Task
from tests.thorough import some

pytestmark = pytest.mark.slow


COMPATIBLE, OPENAI, ANTHROPIC = opencode.PROVIDERS
SETTINGS = [Setting("plain"), Setting("plain", "anthropic"), Setting("plain", "openai-responses")]
PAIRS = [(provider, setting) for provider in opencode.PROVIDERS for setting in SETTINGS]
# Each provider and each server once; that of the chat dialect is in test_beside_opencode.py.
KEPT = [(COMPATIBLE, SETTINGS[1]), (OPENAI, SETTINGS[2])]


@pytest.mark.parametrize(("provider", "stage"), some(PAIRS, KEPT), indirect=["stage"])
def test_opencode(task: Task, provider: str) -> None:
    opencode.complete_task(task, provider)
    assert steps_of(task.stage, task.project) == straight(3)


@pytest.mark.parametrize("provider", some(opencode.PROVIDERS, [ANTHROPIC]))
@pytest.mark.parametrize("stage", [Setting("sloppy")], indirect=True)
def test_opencode_with_a_model_that_is_sloppy(task: Task, provider: str) -> None:
    opencode.complete_task(task, provider)
    assert steps_of(task.stage, task.project) == CORRECTED
