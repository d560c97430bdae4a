"""Tools that the gateway runs locally for Cursor's service, through a running gateway: confinement and reports."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.contract.cursor_harness import VERSION, CursorStage, running, simulating
from tests.server.answers import PATHS
from tests.server.harness import ask, process, wait_until
from toolwire.backends.cursor.simulator.script import Native, Say, Seen
from toolwire.backends.cursor.simulator.server import Simulator
from toolwire.backends.cursor.simulator.settings import TOKEN
from toolwire.cli.doctor import doctor, of_local_tools
from toolwire.config.file import BackendConfig
from toolwire.tools.workspace import Shell
from toolwire.tools.workspace.limits import Budget
from toolwire.tools.workspace.sandbox import find_sandbox

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
def test_the_sandbox_can_be_disabled(workspace: Path, sandbox: str) -> None:
    with commanding(workspace, sandbox=sandbox) as stage:
        assert stage.text(stage.chat("echo hi > made; echo done")) == "success: done\n"
    assert (workspace / "made").read_text() == "hi\n"


def test_in_the_sandbox_hooks_and_configuration_cannot_be_written(workspace: Path) -> None:
    found = find_sandbox(Shell(), str(workspace), "/bin/bash", Budget(20))
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


class Deleting:
    def start(self, seen: Seen) -> Any:
        [result] = yield Native("delete", {"path": seen.user_text})
        yield Say(f"{result.kind}: {result.text}")


def test_files_are_deleted_only_where_the_owner_allows_it(workspace: Path) -> None:
    (workspace / ".git").mkdir()
    (workspace.parent / "secret.txt").write_text("secret")
    (workspace / "out").symlink_to(workspace.parent)
    (workspace / "link.txt").symlink_to("kept.txt")
    for name in ("gone.txt", "kept.txt", ".git/config", "folder/a.txt"):
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).write_text("x")
    with running(Deleting(), workspace=str(workspace), local_tools=("write",)) as stage:
        assert stage.text(stage.chat("gone.txt")).startswith("rejected")
    with running(Deleting(), workspace=str(workspace), local_tools=("delete",)) as stage:
        assert stage.text(stage.chat("gone.txt")).startswith("success")
        assert stage.text(stage.chat("gone.txt")).startswith("file_not_found")
        assert stage.text(stage.chat("link.txt")).startswith("success")
        for path in (".git/config", "folder", "../secret.txt", "out/secret.txt", "."):
            assert stage.text(stage.chat(path)).startswith("error"), path
    assert sorted(os.listdir(workspace)) == [".git", "folder", "kept.txt", "out"]
    assert (workspace.parent / "secret.txt").exists()


class Working:
    """Reads a file that is there and one that is not, and runs a command."""

    def start(self, seen: Seen) -> Any:
        yield Native("read", {"path": "note.txt"})
        yield Native("read", {"path": "missing.txt"})
        yield Native("shell", {"command": "exit 3"})
        yield Say("Done.")


@pytest.mark.parametrize("stream", [True, False])
def test_each_local_call_is_logged_counted_and_in_the_debug_report(workspace: Path, stream: bool) -> None:
    (workspace / "note.txt").write_text("plum")
    with simulating(Simulator(model=Working())) as simulator:
        toml = f"""
log = "info"
[backends.cursor]
kind = "cursor"
base_url = "{simulator.url}"
token = "{TOKEN}"
client_version = "{VERSION}"
workspace = "{workspace}"
local_tools = ["read", "shell"]
sandbox = "never"
"""
        folder = workspace.parent / "gateway"
        folder.mkdir()
        with process(folder, toml) as server:
            body = {"model": "cursor/default", "messages": [{"role": "user", "content": "go"}], "stream": stream}
            answer = ask(server.port, "POST", PATHS["chat"], body, {"x-toolwire-debug": "1"})
            assert answer.status == 200
            if stream:
                [report] = [data for event, data in answer.events if event == "toolwire.debug"]
            else:
                report = json.loads(answer.headers["x-toolwire-debug"])
            found = [(call["name"], call["outcome"], call["confinement"]) for call in report["local_calls"]]
            off = "not sandboxed: it is switched off"
            assert found == [("read", "ok", None), ("read", "failed", None), ("shell", "failed", off)]
            metrics = ask(server.port, "GET", "/metrics").body.decode()
            assert 'toolwire_tool_calls_total{backend="cursor",model="default"} 3.0' in metrics
            wait_until(lambda: "ran shell" in server.output)
            assert "ran read on this machine for cursor: ok" in server.output
            assert "ran read on this machine for cursor: failed" in server.output
            assert f", {off}" in server.output
            assert "calls=3" in server.output
            assert "commands of the service run WITHOUT a sandbox (it is switched off)" in server.output
            assert "exit 3" not in server.output  # the log has the outcome, not the command


def test_doctor_reports_whether_commands_are_sandboxed(
    workspace: Path, no_bubblewrap: None, capsys: pytest.CaptureFixture[str]
) -> None:
    with simulating(Simulator(model=Working())) as simulator:
        text = f"""
[backends.cursor]
kind = "cursor"
base_url = "{simulator.url}"
token = "{TOKEN}"
client_version = "{VERSION}"
workspace = "{workspace}"
local_tools = ["shell"]
"""
        (workspace.parent / "toolwire.toml").write_text(f"[store]\nkind = 'memory'\n{text}")
        assert doctor(config=workspace.parent / "toolwire.toml") == 1
        output = capsys.readouterr().out
        assert "WRONG back end cursor, commands: commands of the service are refused" in output
        assert 'set sandbox = "auto"' in output
        (workspace.parent / "toolwire.toml").write_text(f"[store]\nkind = 'memory'\n{text}sandbox = 'auto'\n")
        assert doctor(config=workspace.parent / "toolwire.toml") == 0
        assert "run WITHOUT a sandbox (bubblewrap (bwrap) is not installed)" in capsys.readouterr().out


def test_doctor_reports_that_commands_are_sandboxed(workspace: Path) -> None:
    backend = BackendConfig(name="c", kind="cursor", local_tools=("shell",), workspace=str(workspace))
    if (why_not := find_sandbox(Shell(), str(workspace), "/bin/bash", Budget(20)).why_not) != "":
        pytest.skip(f"commands cannot be sandboxed here: {why_not}")
    [finding] = of_local_tools(backend)
    assert finding.text == f"commands of the service are confined to {workspace} by bubblewrap."
    assert not finding.is_wrong
    assert list(of_local_tools(BackendConfig(name="c", kind="cursor", local_tools=("read",)))) == []
