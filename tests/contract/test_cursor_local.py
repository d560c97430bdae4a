"""Tools that the gateway runs on its own machine for Cursor's service, through a running gateway: what is confined, and what the owner learns."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.contract.cursor_stage import CursorStage, running
from toolwire.simulators.cursor import Native, Say, Seen
from toolwire.tools.workspace import Shell
from toolwire.tools.workspace.limits import Budget
from toolwire.tools.workspace.sandbox import walls

pytestmark = pytest.mark.slow


class Commanding:
    """A model that runs what the user wrote as a command, and tells what came of it."""

    def start(self, seen: Seen) -> Any:
        [result] = yield Native("shell", {"command": seen.user_text})
        yield Say(f"{result.kind}: {result.text}")


@contextmanager
def commanding(workspace: Path, **config: Any) -> Iterator[CursorStage]:
    with running(Commanding(), workspace=str(workspace), local_tools=("shell",), **config) as stage:
        yield stage


@pytest.fixture
def no_bubblewrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A PATH with bash and nothing else."""
    (tmp_path / "bin").mkdir()
    bash = shutil.which("bash")
    assert bash is not None
    (tmp_path / "bin/bash").symlink_to(bash)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.mark.usefixtures("no_bubblewrap")
def test_without_bubblewrap_no_command_runs_and_the_refusal_names_the_key(workspace: Path) -> None:
    with commanding(workspace) as stage:
        text = stage.text(stage.chat("echo > made"))
    assert text.startswith("rejected: commands may run only in a sandbox")
    assert "bubblewrap (bwrap) is not installed" in text
    assert 'set sandbox = "auto"' in text
    assert os.listdir(workspace) == []


@pytest.mark.usefixtures("no_bubblewrap")
@pytest.mark.parametrize("sandbox", ["auto", "never"])
def test_the_owner_can_do_without_a_sandbox(workspace: Path, sandbox: str) -> None:
    with commanding(workspace, sandbox=sandbox) as stage:
        assert stage.text(stage.chat("echo hi > made; echo done")) == "success: done\n"
    assert (workspace / "made").read_text() == "hi\n"


def test_in_the_sandbox_hooks_and_configuration_cannot_be_written(workspace: Path) -> None:
    found = walls(Shell(), str(workspace), "/bin/bash", Budget(20))
    if found.why_not:
        pytest.skip(f"commands cannot be sandboxed here: {found.why_not}")
    (workspace / ".git/hooks").mkdir(parents=True)
    (workspace / ".git/config").write_text("kept")
    command = "echo x > .git/config; echo x > .git/hooks/pre-commit; echo hi > made; echo done"
    with commanding(workspace) as stage:
        assert stage.text(stage.chat(command)).endswith("done\n")
    assert (workspace / "made").read_text() == "hi\n"
    assert (workspace / ".git/config").read_text() == "kept"
    assert os.listdir(workspace / ".git/hooks") == []
