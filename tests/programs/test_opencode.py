"""OpenCode completes the task with each of its three providers."""

from __future__ import annotations

import pytest

from tests.programs import opencode
from tests.programs.stage import KINDS, Task
from tests.thorough import some

pytestmark = pytest.mark.slow

PAIRS = [(provider, kind) for provider in opencode.PROVIDERS for kind in KINDS]
# Each provider and each upstream once; the same dialect on both sides is in simulated/test_beside_native.py.
FEW = list(zip(opencode.PROVIDERS, ("anthropic", "openai-chat", "openai-responses"), strict=True))


@pytest.mark.parametrize(("provider", "stage"), some(PAIRS, FEW), indirect=["stage"])
def test_opencode(task: Task, provider: str) -> None:
    opencode.complete_task(task, provider)
