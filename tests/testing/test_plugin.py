"""The example that uses the fixture, run by pytest as a user would."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "examples" / "cassette_test"


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PYTHONPATH": str(Path(__file__).parents[2] / "src"),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, *arguments, "."]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLE, tmp_path / "project"))


def test_the_example_passes_without_a_model(project: Path) -> None:
    done = run(project)
    assert done.returncode == 0, done.stdout


def test_it_fails_when_the_prompt_changes(project: Path) -> None:
    agent = project / "agent.py"
    agent.write_text(agent.read_text().replace("one sentence", "two sentences"))
    done = run(project)
    assert done.returncode == 1
    assert "the instructions differ" in done.stdout
    assert "--toolwire-record" in done.stdout


def test_recording_writes_the_cassette_again(project: Path) -> None:
    (project / "toolwire.toml").write_text('[backends.local]\nkind = "scripted"\nscript = "script.json"\n')
    (project / "script.json").write_text('{"turns": [{"text": "It is 18 degrees."}]}')
    (cassette,) = (project / "cassettes").iterdir()
    before = cassette.read_text()
    agent = project / "agent.py"
    agent.write_text(agent.read_text().replace("demo/echo-tools", "local/scripted"))
    recorded = run(project, "--toolwire-record")
    assert recorded.returncode == 0, recorded.stdout
    assert cassette.read_text() != before
    (project / "toolwire.toml").unlink()
    assert run(project).returncode == 0
