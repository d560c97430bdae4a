from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.backends.cursor.local.exec_results import answer, answers, shell, workspace_in
from toolwire.backends.cursor.wire import agent
from toolwire.tools.workspace.limits import Limits


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return workspace_in(tmp_path)


def test_a_command_gives_its_output_and_code(place: Path) -> None:
    success = shell(place, "echo out; echo err >&2", working_directory=str(place)).success
    assert (success.stdout, success.exit_code, success.command) == ("out\nerr\n", 0, "echo out; echo err >&2")
    failure = shell(place, "echo '[exit code 0; 0.0 s]'; exit 3").failure
    assert (failure.stdout, failure.exit_code, failure.aborted) == ("[exit code 0; 0.0 s]\n", 3, False)
    assert shell(place, "kill -9 $$").failure.exit_code == 137
    assert shell(place, "").WhichOneof("result") == "rejected"
    assert answer(place, "mini_swe_agent_bash", agent.ShellArgs(command="echo x")).success.stdout == "x\n"
    assert answer(place, "pi_bash", agent.PiBashExecArgs(command="echo x")).success.output == "x\n"
    assert "exit code 2" in answer(place, "pi_bash", agent.PiBashExecArgs(command="exit 2")).error.error


def test_a_stream_has_start_output_and_exit(place: Path) -> None:
    events = answers(place, "shell_stream", agent.ShellArgs(command="echo x; exit 4"))
    assert [event.WhichOneof("event") for event in events] == ["start", "stdout", "exit"]
    assert (events[1].stdout.data, events[2].exit.code, events[2].exit.aborted) == ("x\n", 4, False)
    (refused,) = answers(place, "shell_stream", agent.ShellArgs(command="x", working_directory="/"))
    assert refused.WhichOneof("event") == "rejected"


@pytest.mark.slow
def test_a_command_ends_in_time_with_all_that_it_started(place: Path) -> None:
    began = time.monotonic()
    result = shell(place, "sleep 60 & sleep 60", timeout=300)
    assert result.timeout.timeout_ms == 300
    talking = shell(place, "echo first; sleep 60", timeout=300).failure
    assert (talking.stdout, talking.aborted) == ("first\n", True)
    assert talking.abort_reason == agent.SHELL_ABORT_REASON_TIMEOUT
    events = answers(place, "shell_stream", agent.ShellArgs(command="sleep 60", timeout=300))
    assert events[-1].exit.aborted
    assert events[-1].exit.abort_reason == agent.SHELL_ABORT_REASON_TIMEOUT
    assert time.monotonic() - began < 10


def test_a_flood_is_bounded(place: Path) -> None:
    limits = Limits(command_output_bytes=1000, command_flood_bytes=1 << 20)
    failure = answer(place, "shell", agent.ShellArgs(command="yes flood", timeout=20_000), limits=limits).failure
    assert failure.aborted
    assert "printed more than" in failure.stderr
    assert len(failure.stdout) < 2000
    (place / "many.txt").write_text("match\n" * 100_000)
    found = answer(place, "grep", agent.GrepArgs(pattern="match")).success.workspace_results[str(place)].content
    assert found.client_truncated
    assert found.total_matched_lines == Limits().matches
    (place / "long.txt").write_text("long" + "x" * 1_000_000 + "\n")
    found = answer(place, "grep", agent.GrepArgs(pattern="long")).success.workspace_results[str(place)].content
    assert found.matches[0].matches[0].content_truncated
    assert len(found.matches[0].matches[0].content) == 500
