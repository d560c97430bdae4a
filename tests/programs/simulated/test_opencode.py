"""OpenCode on a model without tools does what it does on one that has them."""

from __future__ import annotations

import pytest

from tests.programs import test_opencode as native
from tests.programs.simulated.stage import CORRECTED, Setting, steps_of, straight
from tests.programs.stage import Task

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("provider", native.PROVIDERS)
@pytest.mark.parametrize("stage", [Setting("plain")], indirect=True)
def test_opencode(task: Task, provider: str) -> None:
    native.test_opencode(task, provider)
    assert steps_of(task.stage, task.project) == straight(3)


@pytest.mark.parametrize("stage", [Setting("plain", "anthropic"), Setting("plain", "openai-responses")], indirect=True)
def test_opencode_on_servers_of_other_dialects(task: Task) -> None:
    native.test_opencode(task, native.PROVIDERS[0])
    assert steps_of(task.stage, task.project) == straight(3)


@pytest.mark.parametrize("stage", [Setting("sloppy")], indirect=True)
def test_opencode_with_a_model_that_is_sloppy(task: Task) -> None:
    native.test_opencode(task, native.PROVIDERS[0])
    assert steps_of(task.stage, task.project) == CORRECTED
