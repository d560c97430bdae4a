"""The agent uses the service's own tools, and each program runs them with its own: other names, other arguments, the same files."""

from __future__ import annotations

from typing import Any

import pytest

from tests.programs import claude_code, codex, opencode
from tests.programs.cursor.built_in import call_id, prompt
from tests.programs.cursor.journal import runs_of
from tests.programs.cursor.stage import RUN_ANEW, RUN_PARKED, SSE_ANEW, SSE_PARKED, CursorStage
from tests.programs.installed import NODE_MODULES, node_program, search_path
from tests.programs.stage import CONTENT, KEY, WORD, Task
from tests.thorough import some

pytestmark = pytest.mark.slow

SETTINGS = [setting._replace(is_built_in=True) for setting in (RUN_PARKED, SSE_PARKED, RUN_ANEW, SSE_ANEW)]
ON_RUN, ON_SSE, ANEW, SSE_AND_ANEW = SETTINGS
_WORD = WORD.partition(":")[2].partition(":")[2].rstrip("}")
USES = ("ls", "read", "grep", "grep", "write", "read", "shell", "shell_stream")
WELL = {call_id(number): "exit" if kind == "shell_stream" else "success" for number, kind in enumerate(USES)}


def script(task: Task) -> str:
    """List, read, write, and copy the file with the shell."""
    project, content = str(task.project), CONTENT.replace("{{result:0:", "{{result:1:")
    copy = {"command": "cp OUT.md COPY.md && cat COPY.md", "working_directory": project, "timeout": 30_000}
    count = {"command": "echo bytes=$(wc -c < COPY.md); exit 3", "working_directory": project, "timeout": 30_000}
    args: list[dict[str, Any]] = [
        {"path": project},
        {"path": str(task.source)},
        {"pattern": _WORD, "path": project},
        {"glob": "*.md", "path": project},
        {"path": str(task.target), "file_text": content},
        {"path": str(task.target)},
        copy,
        count,
    ]
    quoted = [f"{{{{result:{number}:{_WORD}}}}}" for number in (1, 2, 5, 6)]
    found = "{{result:0:README.md}} {{result:3:README.md}} {{result:7:bytes=[0-9]+}}"
    return prompt(*zip(USES, args, strict=True), text=f"ALLDONE {' '.join(quoted)} {found}")


def check(stage: CursorStage, task: Task, output: str) -> None:
    task.check(output)
    size = len(task.content.encode())
    words = f"ALLDONE {' '.join([task.word] * 4)} README.md README.md bytes={size}"
    assert words in output, task.story(f"it did not say {words!r}", output, "")
    assert (task.project / "COPY.md").read_text(encoding="utf-8") == task.content
    assert task.source.read_text(encoding="utf-8").count(task.word) == 1
    runs = runs_of(stage, task.word)
    assert not [run.offences for run in runs if run.offences]
    if stage.parks:
        (run,) = runs
        assert {name: run.results[name] for name in run.results if name} == WELL
        assert {name: count for name, count in run.given.items() if name} == dict.fromkeys(WELL, 1)
    else:
        # The first two, before the word is known, are not included; the history has all of them as calls of the client's tools.
        assert [len(run.parts("tool-result")) for run in runs] == list(range(2, len(USES) + 1))


@pytest.mark.parametrize("stage", some(SETTINGS, [ON_RUN]), indirect=True)
def test_opencode(stage: CursorStage, task: Task) -> None:
    program = node_program("opencode")
    opencode.configure(task.home, "@ai-sdk/anthropic", stage.openai_url)
    # It would download ripgrep; use the one of Codex.
    found = [node_program("codex"), *NODE_MODULES.glob("@openai/codex-*/vendor/*/*/rg")][-1]
    path = f"{found.parent}:{search_path()}"
    output = task.run([program, "run", script(task)], timeout=120, PATH=path, **opencode.OFFLINE)
    check(stage, task, output)


@pytest.mark.parametrize("stage", some(SETTINGS, [ON_SSE]), indirect=True)
def test_claude_code(stage: CursorStage, task: Task) -> None:
    program = node_program("claude")
    words = ["-p", script(task), "--model", claude_code.OLD, "--allowedTools", "Read,Write,Bash,Grep,Glob,LS"]
    output = task.run(
        [program, *words],
        ANTHROPIC_BASE_URL=stage.address,
        ANTHROPIC_API_KEY=KEY,
        ANTHROPIC_SMALL_FAST_MODEL=claude_code.OLD,
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
        DISABLE_TELEMETRY="1",
        DISABLE_AUTOUPDATER="1",
    )
    check(stage, task, output)


@pytest.mark.parametrize("stage", some(SETTINGS, [ON_RUN, SSE_AND_ANEW]), indirect=True)
def test_codex(stage: CursorStage, task: Task) -> None:
    program = node_program("codex")
    codex.configure(task.home, codex.UNKNOWN, stage.openai_url)
    words = ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", script(task)]
    check(stage, task, task.run([program, *words], CODEX_KEY=KEY))
