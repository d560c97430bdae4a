"""The same task takes the same number of requests on a model with tools and on one without."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.programs import claude_code, codex, opencode
from tests.programs.simulated.model import script_in
from tests.programs.simulated.stage import Setting, requests_of
from tests.programs.stage import Stage, Task

pytestmark = pytest.mark.slow

PROGRAMS: dict[str, Callable[[Task], None]] = {
    "opencode": lambda task: opencode.complete_task(task, opencode.PROVIDERS[0]),
    "codex": codex.use_freeform_tool,
    "claude-code": lambda task: claude_code.complete_task(task, claude_code.CURRENT),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_same_requests(
    stages: Callable[[str], Stage], simulated: Callable[[Setting], Stage], tmp_path: Path, program: str
) -> None:
    native = Task(stages("openai-chat"), tmp_path / "native")
    PROGRAMS[program](native)
    words = Task(simulated(Setting("plain")), tmp_path / "words")
    PROGRAMS[program](words)
    offered = _tools_offered(native)
    assert offered
    assert [line["tools"] for line in requests_of(words.stage, words.project)] == offered


def _tools_offered(task: Task) -> list[list[str]]:
    """For each request to the native upstream with tools, their names."""
    lines = map(json.loads, (task.stage.folder / "journal").read_text(encoding="utf-8").splitlines())
    bodies = [line["body"] for line in lines if str(task.project) in script_in(json.dumps(line["body"]))]
    return [[tool["function"]["name"] for tool in body["tools"]] for body in bodies if body.get("tools")]
