from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.free_port import free_port
from tests.server.harness import ask
from tests.server_process import server_process
from toolwire.cli.app import run

QUESTION = {"model": "demo/echo-tools", "messages": [{"role": "user", "content": "Hello there."}]}


def test_a_missing_cassette_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["replay", str(tmp_path / "none.jsonl")]) == 2
    assert "`toolwire record FILE` makes one" in capsys.readouterr().err


@pytest.mark.slow
def test_a_session_is_recorded_and_replayed_as_processes(tmp_path: Path) -> None:
    file, environment = tmp_path / "c.jsonl", {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "PYTHONPATH": "src"}
    environment["PYTHONPATH"] = str(Path(__file__).parents[2] / "src")
    answers = []
    for command in ("record", "replay"):
        port = free_port()
        arguments = [sys.executable, "-m", "toolwire", command, str(file), "--port", str(port)]
        with server_process(arguments, port, tmp_path / f"{command}.log", environment) as process:
            assert isinstance(process, subprocess.Popen)
            answers.append(ask(port, "POST", "/v1/chat/completions", QUESTION).body)
    assert len(file.read_text().splitlines()) == 1
    assert b"Hello" in answers[0]
    first, second = (answer.partition(b'"choices":')[2].partition(b'"usage"')[0] for answer in answers)
    assert first == second
